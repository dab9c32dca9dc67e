"""Arrays or programs pile up until memory is full."""

from __future__ import annotations

import itertools

from jaxobs.ops.diagnosis.evidence import Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import SLOW, Alert, Event, Knowledge, Metric

_BYTES = "jax_live_array_bytes"
_PARTS = 6
_LEAST_POINTS = 30
_LEAST_GROWTH = 0.2
"""Of a history: the lowest value of each part is above that of the part before, by so much of the first in all."""
_LEAST_PACE = 0.5
"""Growth of the second half against the first: what fills up slows down."""


def _does_not_pile_up(_: Evidence, sign: Observation) -> bool:
    """Whether the bytes of live arrays rest, come and go, or have no history."""
    if sign.name != _BYTES:
        return False
    values = [value for _, value in sign.history]
    if len(values) < _LEAST_POINTS:
        return True
    size = len(values) / _PARTS
    lows = [min(values[int(part * size) : int((part + 1) * size)]) for part in range(_PARTS)]
    early, late = lows[_PARTS // 2] - lows[0], lows[-1] - lows[_PARTS // 2 - 1]
    rising = all(after > before for before, after in itertools.pairwise(lows))
    return not rising or late < _LEAST_PACE * early or lows[-1] - lows[0] < _LEAST_GROWTH * lows[0]


KNOWN = Knowledge(
    title="Memory fills with arrays or programs that nobody frees",
    impact=SLOW,
    signs=(
        Event("finding:(?:array_leak|executable_leak|host_memory_leak)"),
        Event(r"out_of_memory:\w+:(?:leaked_arrays|executables).*"),
        Alert("JaxArrayLeak", weak=False),
        Alert("JaxExecutableLeak", weak=False),
        Metric(_BYTES, weak=True),
    ),
    follows=("recompilation",),
    needs=("event-log", "target", "prometheus"),
    shown_by=("event-log",),
    fix=("Drop the references: lists of losses or states, caches, closures. Convert what is kept to NumPy or floats."),
    collect="An event log that covers more of the run.",
    runbook="JaxArrayLeak",
    ordinary=_does_not_pile_up,
)
