"""Goodput: time goes into steps."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.ops.monitoring.objective_types import Example, Guide, Objective
from jaxobs.ops.monitoring.promql import TRAINING
from jaxobs.ops.monitoring.rule_types import Step

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
    target=Decimal("0.9"),
    bad=_mean(', category!~"step|eval|checkpoint|unattributed"'),
    total=_mean(', category!~"checkpoint|unattributed"'),
    unit="seconds",
    least=Decimal(1800),
    guide=Guide(
        impact="You pay for accelerators that do not train: at this rate the run ends later and costs more.",
        diagnosis=(
            Step(
                do="See what the time went into instead.",
                query='topk(5, sum by (job, category) (rate(jax_time_seconds_total{@, category!~"step|eval"}[1h])))',
                answers=(
                    ("`compile` or `trace`", "Functions recompile, or the cache misses: JaxRecompilationStorm."),
                    ("`cache_load`, `init`", "Processes keep restarting: see the dashboard's restarts."),
                    ("`input_wait`", "The loader is the bottleneck: JaxInputBound."),
                    ("`checkpoint`", "Saving delays the steps: save less often, or asynchronously."),
                    ("`idle`", "The program does something that jaxobs cannot see: wrap it in `jaxobs.phase`."),
                ),
            ),
            Step(
                do="See in the process itself what is happening now.",
                command="jaxobs top http://HOST:9464",
                answers=(("The bar of the time", "The growing category is the cause."),),
            ),
        ),
        mitigation=(
            "Reduce the largest category, as its diagnosis says.",
            "If restarts cost most, turn on the persistent cache and save more often.",
        ),
        look_alikes=(
            ("A job that keeps restarting", "its processes are young; what comes before the first steps is not counted",
             "JaxCrashLoop"),
            ("The steps themselves are slow", "the share of `step` is high, the step time has risen",
             "JaxStepTimeRegression"),
        ),
        evidence=("`jaxobs report` of the event log of the process with the lowest goodput.",),
    ),
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
