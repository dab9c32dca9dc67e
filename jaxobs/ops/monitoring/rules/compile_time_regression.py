"""A function that takes longer to compile than in the last weeks."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

_NOW = "job_function:jax_function_compile_seconds:mean{@fn}"
_USUAL = "job_function:jax_function_compile_seconds:median13d_mean{@fn}"


ALERT = Alert(
    name="JaxCompileTimeRegression",
    severity="warning",
    concern="performance",
    summary="A function takes longer to compile than in the last weeks.",
    description=(
        "{{ $labels.function }} of {{ $labels.job }} takes {{ $value | humanizeDuration }} to "
        "compile, far more than its median in the two weeks before today."
    ),
    expr=f"{_NOW} > <factor> * {_USUAL}\nand\n{_NOW} - {_USUAL} > <seconds>",
    for_="2h",
    labels={"phase": "compile"},
    thresholds={
        "factor": Threshold(
            value=1.5,
            unit="factor",
            least=1.05,
            most=100,
            why="Compile times of one program vary by some 20 % with the load of the host; an "
            "increase by half is not chance.",
        ),
        "seconds": Threshold(
            value=10,
            unit="seconds",
            least=0,
            most=86_400,
            why="The time lost at each start of each process; nobody notices less than this.",
        ),
    },
    panel=("debug", "compile_seconds"),
    texts=Beside(__name__),
)
