"""Arrays or programs pile up until memory is full."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import SLOW, Alert, Event, Knowledge

KNOWN = Knowledge(
    title="Memory fills with arrays or programs that nobody frees",
    impact=SLOW,
    signs=(
        Event("finding:(?:array_leak|executable_leak|host_memory_leak)"),
        Event(r"out_of_memory:\w+:(?:leaked_arrays|executables).*"),
        Alert("JaxArrayLeak", weak=False),
        Alert("JaxExecutableLeak", weak=False),
    ),
    follows=("recompilation",),
    needs=("event-log", "target", "prometheus"),
    shown_by=("event-log",),
    fix=("Drop the references: lists of losses or states, caches, closures. Convert what is kept to NumPy or floats."),
    collect="An event log that covers more of the run.",
    runbook="JaxArrayLeak",
)
