"""Processes that made steps, are at work, and have stopped making steps."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxStepsStalled",
    severity="critical",
    concern="availability",
    summary="Active processes no longer make steps.",
    description=(
        "{{ $value | humanize }} processes of {{ $labels.job }} are in a step, or wait for input, "
        "and have made no step for many times as long as one takes."
    ),
    expr="count by (job) (job_instance:jax_steps_stalled:bool{@}) > 0",
    for_="5m",
    panel=("oncall", "stalled"),
    texts=Beside(__name__),
)  # fmt: skip
