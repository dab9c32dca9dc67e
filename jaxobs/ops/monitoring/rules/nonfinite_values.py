"""Watched values that hold a NaN or an infinity."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxNonFiniteValues",
    severity="warning",
    concern="availability",
    summary="A watched value contains NaNs or infinities.",
    description=(
        "{{ $labels.name }} of {{ $labels.instance }} ({{ $labels.job }}) was not finite {{ $value | humanize }} "
        "times in the last half hour."
    ),
    expr=(
        "max_over_time(job_instance_name:jax_nonfinite:increase30m{@}[10m]) > <values>\n"
        "unless\n"
        "max_over_time(job_instance_name:jax_nonfinite:increase30m{@}[10m])\n"
        "< on (job, instance) group_left () (<share> * sum by (job, instance) (increase(jax_steps_total{@}[30m])))"
    ),
    for_="2m",
    thresholds={
        "values": Threshold(
            value=0, unit="count", least=0, most=1_000_000,
            why="A loss is always finite.",
        ),
        "share": Threshold(
            value=0.0006, unit="ratio", least=0, most=1,
            why="Of the steps of half an hour: loss scaling in float16 overflows in one of 2,000, as it is meant to.",
        ),
    },
    panel=("oncall", "nonfinite"),
    texts=Beside(__name__),
)  # fmt: skip
