"""The device waits for data."""

from __future__ import annotations

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import SLOW, Alert, Event, Knowledge, Metric

LEAST_SECONDS = 30.0
"""Seconds of waiting: a cold file cache or a shuffle buffer that fills is over by then."""
_LEAST_OF_A_SHORT_RUN = 10.0
"""Seconds of waiting in a run so short that the process itself counts the finding as information."""
_SECONDS_OF_DECLARED = 300.0
"""The same where an input is declared: its first wait, which may be long, is counted, and the finding leaves it out."""
_SHARE = 0.5
"""Of the time in steps and waiting for input. As in the finding `input_bound`."""
_SHARE_OF_ALL = 0.25
"""Of all the time: what started a minute ago is compiling, and has made a few steps."""


def _is_small(evidence: Evidence, sign: Observation) -> bool:
    """Whether a process waits for its input for a small part of its time, or for a few seconds in all."""
    if sign.data.get("severity") == "info":
        return float(sign.data.get("lost", 0)) < _LEAST_OF_A_SHORT_RUN
    if sign.name != counters.TIME:
        return False
    steps = counters.total(evidence, sign, counters.TIME, category="step")
    waiting = counters.total(evidence, sign, counters.TIME, category="input_wait")
    if steps == 0 or waiting < _SHARE * (waiting + steps):
        return True
    declared = counters.total(evidence, sign, counters.BATCHES) > 0
    everything = counters.total(evidence, sign, counters.TIME)
    return waiting <= (_SECONDS_OF_DECLARED if declared else LEAST_SECONDS) or waiting < _SHARE_OF_ALL * everything


KNOWN = Knowledge(
    title="The devices wait for input",
    impact=SLOW,
    signs=(
        Event("finding:input_bound"),
        Alert("JaxInputBound", weak=False),
        Metric(counters.TIME, over=LEAST_SECONDS, labels=(("category", "input_wait"),)),
    ),
    needs=("event-log", "metrics-file", "target", "prometheus"),
    fix=("Give the input pipeline more workers, prefetch to the device, or store the data prepared."),
    runbook="JaxInputBound",
    ordinary=_is_small,
    beside=(counters.BATCHES,),
)
