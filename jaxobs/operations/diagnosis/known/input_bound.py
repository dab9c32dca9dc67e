"""The device waits for data."""

from __future__ import annotations

from jaxobs.operations.diagnosis import counters
from jaxobs.operations.diagnosis.evidence import Evidence, Observation
from jaxobs.operations.diagnosis.knowledge import SLOW, Alert, Event, Knowledge, Metric

_SECONDS = 300.0
_SHARE = 0.5
"""Of the time in steps and waiting for input. As in the finding `input_bound`."""


def _is_small(evidence: Evidence, sign: Observation) -> bool:
    """Whether a process waits for its input for a small part of its time."""
    if sign.name != counters.TIME:
        return False
    steps = counters.total(evidence, sign, counters.TIME, category="step")
    waiting = counters.total(evidence, sign, counters.TIME, category="input_wait")
    return steps == 0 or waiting < _SHARE * (waiting + steps)


KNOWN = Knowledge(
    title="The devices wait for input",
    impact=SLOW,
    signs=(
        Event("finding:input_bound"),
        Alert("JaxInputBound", weak=False),
        Metric(counters.TIME, over=_SECONDS, labels=(("category", "input_wait"),)),
    ),
    needs=("event-log", "metrics-file", "target", "prometheus"),
    fix=("Give the input pipeline more workers, prefetch to the device, or store the data prepared."),
    runbook="JaxInputBound",
    ordinary=_is_small,
)
