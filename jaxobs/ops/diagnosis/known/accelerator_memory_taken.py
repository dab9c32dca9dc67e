"""Another process holds the device's memory."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import LINE, Evidence, Observation
from jaxobs.ops.diagnosis.full_devices import ROW, full_before, is_row
from jaxobs.ops.diagnosis.knowledge import ENDED, Event, Knowledge, Line

_SHORT = re.compile(
    r"[Oo]ut of memory|OUT_OF_MEMORY|RESOURCE_EXHAUSTED|ALLOC_FAILED|resource allocation failed|"
    r"CU\w+_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR)|[Ff]ailed to (?:create|initialize)|[Cc]ould not create"
)


def _missed(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A device that is full is a fault only for a program that then lacks memory."""
    missed = {
        each.source for each in evidence.of_kind(LINE) if _SHORT.search(each.text) and full_before(evidence, each)
    }
    return [each for each in signs if not is_row(each) or each.source in missed]


KNOWN = Knowledge(
    title="Another process holds the memory of the device",
    impact=ENDED,
    signs=(
        Line("may be due to JAX pre-allocating too much device memory"),
        Line("failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY"),
        Event("out_of_memory:start:.*"),
        Event(r"out_of_memory:\w+:other_process.*"),
        Line("Free memory on device .{0,80}is less than desired GPU memory utilization"),
        Line(ROW, info=True, passes=False),
    ),
    narrow=_missed,
    fix=(
        "See who holds it (`nvidia-smi`) and end that process, or share the device: "
        "XLA_PYTHON_CLIENT_PREALLOCATE=false, or a smaller XLA_CLIENT_MEM_FRACTION."
    ),
    runbook="JaxOutOfMemory",
)
