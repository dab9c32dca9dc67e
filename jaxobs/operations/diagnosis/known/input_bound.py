"""The device waits for data."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import SLOW, Alert, Event, Knowledge

KNOWN = Knowledge(
    title="The devices wait for input",
    impact=SLOW,
    signs=(
        Event("finding:input_bound"),
        Alert("JaxInputBound", weak=False),
    ),
    needs=("event-log", "target", "prometheus"),
    fix=("Give the input pipeline more workers, prefetch to the device, or store the data prepared."),
    runbook="JaxInputBound",
)
