"""Goodput: time goes into steps."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.ops.monitoring.objective_types import Example, Objective
from jaxobs.ops.monitoring.promql import TRAINING
from jaxobs.ops.monitoring.rule_texts import guide

_TIME = "sum by (job, instance) (increase(jax_time_seconds_total{@%s}[5m]))"
_PROCESSES = f"(count by (job) ({TRAINING}{{@}}) > 0)"


def _mean(chosen: str) -> str:
    return f"sum by (job) ({_TIME % chosen} and on (job, instance) {TRAINING}{{@}})\n/ on (job) {_PROCESSES}"


OBJECTIVE = Objective(
    name="goodput",
    title="Goodput",
    description="While a job trains, its time goes into steps and evaluations.",
    denominator=(
        "It is a share of the time of a mean process, in minutes in which the process makes steps: neither what comes "
        "before its first steps nor a pause of more than five minutes counts. Saving checkpoints counts neither as "
        "good nor as bad: the program was asked for it."
    ),
    absent="A job without steps, such as a server, has no goodput, and no alert about it.",
    service="training",
    extended=True,
    target=Decimal("0.9"),
    bad=_mean(', category!~"step|eval|checkpoint|unattributed"'),
    total=_mean(', category!~"checkpoint|unattributed"'),
    unit="seconds",
    least=Decimal(1800),
    guide=guide(__name__),
    example=Example(
        good={
            'jax_steps_total{job="train", instance="a:9464", loop="train"}': 60,
            'jax_time_seconds_total{job="train", instance="a:9464", category="step"}': 60,
            'jax_time_seconds_total{job="train", instance="a:9464", category="input_wait"}': 0,
        },
        bad={
            'jax_steps_total{job="train", instance="a:9464", loop="train"}': 6,
            'jax_time_seconds_total{job="train", instance="a:9464", category="step"}': 6,
            'jax_time_seconds_total{job="train", instance="a:9464", category="input_wait"}': 54,
        },
        share=Decimal("0.9"),
        delay=10,
    ),
)  # fmt: skip
