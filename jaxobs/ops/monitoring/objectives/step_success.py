"""Step success: steps end without an error."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.ops.monitoring.objective_types import Example, Objective
from jaxobs.ops.monitoring.promql import increase
from jaxobs.ops.monitoring.rule_texts import guide

_FAILING = 'jax_function_errors_total{@, error!~"KeyboardInterrupt|StopIteration"}'
_ERRORS = increase(_FAILING)
_STEPPING = "sum by (job, instance) (last_over_time(jax_steps_total{@}[5m])) > 0"
_FAILED = f"({_ERRORS}) and on (job, instance) {_STEPPING}"

OBJECTIVE = Objective(
    name="step-success",
    title="Step success",
    description="Calls of instrumented functions in training processes end without an exception.",
    denominator="It is a share of steps and failed calls together, in processes that have made a step.",
    absent="A process without steps is not counted: errors of a server are in request-availability.",
    service="training",
    extended=True,
    target=Decimal("0.999"),
    bad=f"sum by (job) ({_FAILED})",
    # A sum over both: where one of them is missing, the other is the sum.
    total=f"sum by (job) (({_FAILED})\nor {increase('jax_steps_total{@}')})",
    unit="steps",
    culprit=("function", _FAILING),
    least=Decimal(100),
    guide=guide(__name__),
    example=Example(
        good={
            'jax_steps_total{job="train", instance="a:9464", loop="train"}': 60,
            'jax_function_errors_total{job="train", instance="a:9464", function="f", error="ValueError"}': 0,
        },
        bad={
            'jax_steps_total{job="train", instance="a:9464", loop="train"}': 30,
            'jax_function_errors_total{job="train", instance="a:9464", function="f", error="ValueError"}': 30,
        },
        share=Decimal("0.5"),
    ),
)  # fmt: skip
