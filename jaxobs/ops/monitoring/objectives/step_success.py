"""Step success: steps end without an error."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.ops.monitoring.objective_types import Example, Guide, Objective
from jaxobs.ops.monitoring.promql import increase
from jaxobs.ops.monitoring.rule_types import Step

_ERRORS = increase('jax_function_errors_total{@, error!~"KeyboardInterrupt|StopIteration"}')
_STEPPING = "sum by (job, instance) (last_over_time(jax_steps_total{@}[5m])) > 0"
_FAILED = f"({_ERRORS}) and on (job, instance) {_STEPPING}"

OBJECTIVE = Objective(
    name="step-success",
    title="Step success",
    description="Calls of instrumented functions in training processes end without an exception.",
    denominator="It is a share of steps and failed calls together, in processes that have made a step.",
    absent="A process without steps is not counted: errors of a server are in request-availability.",
    service="training",
    target=Decimal("0.999"),
    bad=f"sum by (job) ({_FAILED})",
    # A sum over both: where one of them is missing, the other is the sum.
    total=f"sum by (job) (({_FAILED})\nor {increase('jax_steps_total{@}')})",
    unit="steps",
    least=Decimal(100),
    guide=Guide(
        impact="Work is lost or repeated: everything since the last checkpoint, or the failed batch.",
        diagnosis=(
            Step(
                do="See which function fails, and how.",
                query="sum by (job, instance, function, error) (increase(jax_function_errors_total{@}[1h])) > 0",
                answers=(
                    ("`XlaRuntimeError` with RESOURCE_EXHAUSTED", "Out of memory: JaxOutOfMemory."),
                    ("`FloatingPointError`", "Non-finite numbers: JaxNonFiniteValues."),
                    ("One instance alone", "Its device or its input: look at the device's faults."),
                ),
            ),
            Step(
                do="Read the last minutes of a process that failed.",
                command="ls -t last-minutes-*.txt | head -n 1 | xargs cat",
                answers=(("The file's first lines", "The exception, the function and the line of the program."),),
            ),
        ),
        mitigation=(
            "Stop retries: a step that failed twice with the same message fails again.",
            "Take out an instance that fails alone, and let the job continue from its last checkpoint.",
        ),
        look_alikes=(
            ("Errors that the program expects and catches", "the steps continue at their rate",
             "raise the objective's budget, or do not instrument that function"),
        ),
    ),
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
