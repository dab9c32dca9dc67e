"""`weak_type_at_start`: compiled at the first call and again at the second, where only a weak type differs."""

import functools
from collections.abc import Sequence

from jaxobs.facts.compilations import Change, Compilation
from jaxobs.findings.compilations.support.at_start import AT_START as AT_START
from jaxobs.findings.compilations.support.at_start import AtStart
from jaxobs.reasons.cures import cure

NAME = "weak_type_at_start"


def _changed(event: Compilation, _: bool) -> Sequence[Change]:
    return [each for each in event.changes if each.what == "weak_type"] if event.cause == "weak_type" else ()


watch = functools.partial(AtStart, NAME, "argument", _changed, functools.partial(cure, "weak_type"))
