"""Requests wait for compilations."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import SLOW, Alert, Event, Knowledge

KNOWN = Knowledge(
    title="Requests wait for compilations",
    impact=SLOW,
    signs=(
        Event("finding:cold_requests"),
        Alert("JaxColdRequestsHigh", weak=False),
    ),
    follows=("recompilation", "cache_lost", "cache_unusable"),
    needs=("event-log", "target", "prometheus"),
    fix=(
        "Warm up every shape before traffic arrives (`jaxobs.warmup`, `jaxobs cache warm`), and "
        "pad requests to a few shapes."
    ),
    runbook="JaxColdRequestsHigh",
)
