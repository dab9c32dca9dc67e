"""Live arrays that accumulate."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxArrayLeak",
    severity="warning",
    concern="capacity",
    summary="Arrays accumulate and are never released.",
    description="{{ $labels.instance }} ({{ $labels.job }}) has {{ $value | humanize }} groups of arrays that grow "
    "with each step.",
    expr='jax_findings{@, finding="array_leak"} > 0',
    for_="15m",
    keep_firing_for="10m",
    panel=("devices", "live_array_bytes"),
    texts=Beside(__name__),
)
