"""A process that grows on its host."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxHostMemoryGrowth",
    severity="warning",
    concern="capacity",
    summary="The memory of a process on its host keeps growing.",
    description=("The memory of {{ $labels.instance }} ({{ $labels.job }}) on its host grows for as long as it runs."),
    expr='jax_findings{@, finding="host_memory_leak"} > 0',
    for_="15m",
    keep_firing_for="10m",
    panel=("debug", "host"),
    texts=Beside(__name__),
)
