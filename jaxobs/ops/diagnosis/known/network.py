"""Functions for the faults of coordination."""

import re
from collections.abc import Mapping, Sequence

from jaxobs.ops.diagnosis.evidence import PROGRESS, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import Functions

_TOO_LATE = re.compile(r"must be called before any JAX|should only be called once")
_REFUSED = ("failed to connect to all addresses", "Connection refused", "Failed to connect to remote host")


def _at_the_start(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A connection that is refused after steps were made shows that a process was lost; a call too late is no wait."""
    stepped = {(each.source, each.process) for each in evidence.of_kind(PROGRESS)}
    return [
        each
        for each in signs
        if not _TOO_LATE.search(each.text)
        and ((each.source, each.process) not in stepped or not any(one in each.text for one in _REFUSED))
    ]


FUNCTIONS: Mapping[str, Functions] = {"coordinator_unreachable": {"narrow": _at_the_start}}
