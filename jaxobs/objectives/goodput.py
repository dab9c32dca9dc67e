"""Goodput: time goes into steps."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.objective_types import Example, Guide, Objective
from jaxobs.promql import increase
from jaxobs.rule_types import Step

OBJECTIVE = Objective(
    name="goodput",
    title="Goodput",
    description="Time of the training processes goes into steps and evaluations.",
    service="training",
    target=Decimal("0.9"),
    bad=f"""sum by (job) ({increase('jax_time_seconds_total{@, category!~"step|eval"}')})""",
    total=f"sum by (job) ({increase('jax_time_seconds_total{@}')})",
    unit="seconds",
    least=Decimal(1800),
    guide=Guide(
        impact="Accelerators are paid for and do not train: at this pace the run ends later and costs more.",
        diagnosis=(
            Step(
                do="Ask what the time went into instead.",
                query='topk(5, sum by (job, category) (rate(jax_time_seconds_total{@, category!~"step|eval"}[1h])))',
                answers=(
                    ("`compile` or `trace`", "Functions compile again, or the cache misses: JaxRecompilationStorm."),
                    ("`cache_load`, `init`", "Processes start again and again: see the dashboard's restarts."),
                    ("`input_wait`", "The loader is the bottleneck: JaxInputBound."),
                    ("`checkpoint`", "Saving holds the steps up: save less often, or asynchronously."),
                    ("`idle`", "The program does something that jaxobs is not told of: wrap it in `jaxobs.phase`."),
                ),
            ),
            Step(
                do="See in the process itself what goes on now.",
                command="jaxobs top http://HOST:9464",
                answers=(("The bar of the time", "The category that grows is the cause."),),
            ),
        ),
        mitigation=(
            "Take away the largest category, as the diagnosis of it says.",
            "Where restarts cost most, turn the persistent compilation cache on and save more often.",
        ),
        look_alikes=(
            ("A job that has just begun", "most of the time is `init` and `compile`, and it is younger than an hour",
             "wait: fewer than 30 minutes in the window fire nothing"),
            ("Steps that are slow by themselves", "the share of `step` is high, the step time is not what it was",
             "JaxStepTimeRegression"),
        ),
        evidence=("`jaxobs report` of the event log of the process with the lowest goodput.",),
    ),
    example=Example(
        good={
            'jax_time_seconds_total{job="train", instance="a:9464", category="step"}': 60,
            'jax_time_seconds_total{job="train", instance="a:9464", category="input_wait"}': 0,
        },
        bad={
            'jax_time_seconds_total{job="train", instance="a:9464", category="step"}': 6,
            'jax_time_seconds_total{job="train", instance="a:9464", category="input_wait"}': 54,
        },
        share=Decimal("0.9"),
    ),
)  # fmt: skip
