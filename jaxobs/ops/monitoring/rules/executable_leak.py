"""Compiled programs that accumulate."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxExecutableLeak",
    severity="warning",
    concern="capacity",
    summary="Compiled programs accumulate and are never released.",
    description="The number of programs that {{ $labels.instance }} ({{ $labels.job }}) keeps loaded "
    "grows without a bound.",
    expr='jax_findings{@, finding="executable_leak"} > 0',
    for_="15m",
    keep_firing_for="10m",
    panel=("debug", "executables"),
    texts=Beside(__name__),
)
