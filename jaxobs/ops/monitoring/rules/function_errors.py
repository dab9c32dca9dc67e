"""A function whose calls raise again and again."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxFunctionErrors",
    severity="warning",
    concern="availability",
    summary="Calls of a function keep failing.",
    description=(
        "Calls of {{ $labels.function }} of {{ $labels.instance }} ({{ $labels.job }}) raised {{ $value | humanize }} "
        "times in the last half hour."
    ),
    expr=(
        "sum without (error) (\n"
        '  job_instance_function_error:jax_function_errors:increase30m{@fn, error!~"KeyboardInterrupt|StopIteration"}\n'
        ") >= <errors>"
    ),
    for_="2m",
    keep_firing_for="10m",
    thresholds={
        "errors": Threshold(
            value=3, unit="count", least=1, most=1_000_000,
            why=("An error that ends the program shows in JaxTargetDown; three errors mean that "
                "something catches them and retries."),
        )
    },
    panel=("oncall", "errors"),
    texts=Beside(__name__),
)  # fmt: skip
