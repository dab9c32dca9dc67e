"""Devices of which `nvidia-smi`, as jobs print it at their start, shows that others hold their memory."""

import re

from jaxobs.ops.diagnosis.evidence import LINE, PROGRESS, Evidence, Observation

ROW = r"^\|.*\d+MiB */ *\d+MiB *\|.*%"
"""The row of a device."""
_USED = re.compile(r"(\d+)MiB */ *(\d+)MiB *\|")
_TAKEN = 0.8
"""Of the memory: a process that wants three quarters of it at its start misses so much."""


def is_row(one: Observation) -> bool:
    """Whether it is the row of a device."""
    return one.kind == LINE and re.match(ROW, one.text) is not None


def full_before(evidence: Evidence, failure: Observation) -> bool:
    """Whether all devices that a log shows before a failure, and before the first step, are nearly full."""
    own = [each for each in evidence.observations if each.source == failure.source and each.place < failure.place]
    begun = min((each.place for each in own if each.kind == PROGRESS), default=failure.place)
    rows = [_USED.search(each.text) for each in own if is_row(each) and each.place < begun]
    return bool(rows) and all(row is not None and float(row.group(1)) > _TAKEN * float(row.group(2)) for row in rows)
