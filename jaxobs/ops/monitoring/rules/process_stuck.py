"""Processes that are alive and get no further, as they themselves or their peers tell."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxProcessStuck",
    severity="critical",
    concern="availability",
    summary="Processes are alive but make no progress.",
    description=(
        "{{ $value | humanize }} processes of {{ $labels.job }} are reported as stuck: alive, not "
        "compiling, and without a step."
    ),
    expr=(
        "sum by (job) (\n"
        '  jax_findings{@, finding="stuck"}\n'
        "  unless on (job, instance)\n"
        '  sum by (job, instance) (rate(jax_time_seconds_total{@, category=~"checkpoint|eval"}[5m])) > 0.5\n'
        ") >= <processes>"
    ),
    for_="10m",
    thresholds={
        "processes": Threshold(
            value=1, unit="count", least=1, most=1_000_000,
            why="One process that does not enter a collective stops all that wait in it.",
        )
    },
    panel=("oncall", "stalled"),
    texts=Beside(__name__),
)  # fmt: skip
