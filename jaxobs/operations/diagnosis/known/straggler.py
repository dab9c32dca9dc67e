"""One process or device is slower than all others."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import FINDINGS, SLOW, Alert, Event, Knowledge, Metric

KNOWN = Knowledge(
    title="One process is slower than the others, and all wait for it",
    impact=SLOW,
    signs=(
        Event("finding:straggler", counted=False),
        # Process 0 counts it. Which process it is about, a metric does not say.
        Metric(FINDINGS, labels=(("finding", "straggler"),), weak=True),
        Alert("JaxStraggler", weak=False),
    ),
    follows=("device_throttled", "gpu_hardware", "input_bound", "recompilation"),
    needs=("event-log", "metrics-file", "target", "prometheus"),
    collect="The event log or the address of process 0: its finding names the process that is slow, and its line.",
    fix=(
        "Check that host: throttling, another load, its network and disk; move its work to another host if it repeats."
    ),
    runbook="JaxStraggler",
)
