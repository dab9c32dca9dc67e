"""The program raised an exception that nothing caught."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.damaged_files import DAMAGED
from jaxobs.ops.diagnosis.evidence import EVENT, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, Event, Knowledge, Raised

_FIRST = ("jax._src.source_info_util.JaxStackTraceBeforeTransformation", "jax.errors.SimplifiedTraceback")
"""What JAX tells before the exception itself."""
_ENDS = (*_FIRST, "KeyboardInterrupt", "SystemExit", "GeneratorExit", "asyncio.CancelledError", "CancelledError")
_AFTERMATH = re.compile(
    r"Event loop (?:is|was) closed|cannot schedule new futures after|at interpreter shutdown|"
    r"sys\.meta_path is None|InvalidStateError|[Ll]oop .{0,40}already (?:closed|stopped)"
)
"""What callbacks and threads raise when the work that they belong to has failed or ended."""
_ANSWERED = re.compile(r"HTTP/[12]\.[01]\S{0,8}\" 500\b|\"POST \S{1,200} HTTP/[12]\.[01]\S{0,8}\" 2\d\d\b")
"""A server told its client of it, or answers the next request: it goes on."""


def _uncaught(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """The last lines of tracebacks, and what jaxobs saw leave the program."""
    raised = [
        each
        for each in signs
        if not each.text.startswith(_ENDS)
        and "caught" not in each.data
        and not _ANSWERED.search(each.data.get("next", ""))
        and not re.search(DAMAGED, each.text)
        and (each.kind != EVENT or each.data.get("uncaught") == "yes")
    ]
    of_its_own = {(each.source, each.process) for each in raised if not _AFTERMATH.search(each.text)}
    return [
        each for each in raised if not _AFTERMATH.search(each.text) or (each.source, each.process) not in of_its_own
    ]


KNOWN = Knowledge(
    title="The program raised an exception that nothing caught",
    impact=ENDED,
    general=3,
    signs=(Raised(), Event("error:.*")),
    narrow=_uncaught,
    follows=("collective_stuck",),
    fix="Read the traceback above that line: it names the line of the program.",
    runbook="JaxFunctionErrors",
)
