"""Step success: steps end without an error."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.objective_types import Example, Guide, Objective
from jaxobs.promql import increase
from jaxobs.rule_types import Step

_ERRORS = increase("jax_function_errors_total{@}")

OBJECTIVE = Objective(
    name="step-success",
    title="Step success",
    description="Calls of the training's functions end without an exception.",
    service="training",
    target=Decimal("0.999"),
    bad=f"sum by (job) ({_ERRORS})",
    # A sum over both: where one of them is missing, the other is the sum.
    total=f"sum by (job) ({_ERRORS}\nor {increase('jax_steps_total{@}')})",
    unit="steps",
    least=Decimal(100),
    guide=Guide(
        impact="Work is lost or made again: what was done since the last checkpoint, or the batch that failed.",
        diagnosis=(
            Step(
                do="Ask which function fails, and with what.",
                query="sum by (job, instance, function, error) (increase(jax_function_errors_total{@}[1h])) > 0",
                answers=(
                    ("`XlaRuntimeError` with RESOURCE_EXHAUSTED", "Memory ran out: JaxOutOfMemory."),
                    ("`FloatingPointError`", "Numbers went bad: JaxNonFiniteValues."),
                    ("One instance alone", "Its device or its input: look at the device's faults."),
                ),
            ),
            Step(
                do="Read the last minutes of a process that failed.",
                command="ls -t jaxobs-*.txt | head -1 | xargs less",
                answers=(("The file's first lines", "The exception, the function and the line of the program."),),
            ),
        ),
        mitigation=(
            "Stop what retries: a step that failed twice with the same message fails again.",
            "Take the instance out that fails alone, and let the job go on from its last checkpoint.",
        ),
        look_alikes=(
            ("Errors that the program expects and catches", "the steps go on at their pace",
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
