"""A loss that stays NaN."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxNonFiniteLasting",
    severity="critical",
    concern="availability",
    summary="A watched value has not been finite for half an hour.",
    description=(
        "{{ $labels.name }} of {{ $labels.job }} has been NaN or infinite for half an hour: {{ $value | humanize }} "
        "times in the last 10 minutes."
    ),
    expr="max by (job, name) (increase(jax_nonfinite_total{@}[10m])) >= <values>",
    for_="30m",
    panel=("oncall", "nonfinite"),
    thresholds={
        "values": Threshold(
            value=4, unit="count", least=1, most=1_000_000,
            why=(
                "Loss scaling in float16 overflows once in two thousand steps, and recovers; a loss that stays NaN "
                "is one at each look."
            ),
        )
    },
    texts=Beside(__name__),
)  # fmt: skip
