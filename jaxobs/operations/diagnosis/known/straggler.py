"""One process or device is slower than all others."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import SLOW, Alert, Event, Knowledge

KNOWN = Knowledge(
    title="One process is slower than the others, and all wait for it",
    impact=SLOW,
    signs=(
        Event("finding:straggler"),
        Alert("JaxStraggler", weak=False),
    ),
    follows=("device_throttled", "gpu_hardware", "input_bound"),
    needs=("event-log", "target", "prometheus"),
    fix=(
        "Check that host: throttling, another load, its network and disk; move its work to another host if it repeats."
    ),
    runbook="JaxStraggler",
)
