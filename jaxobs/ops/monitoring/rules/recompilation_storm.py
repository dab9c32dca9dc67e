"""A function that recompiles and again."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxRecompilationStorm",
    severity="warning",
    concern="performance",
    summary="A function keeps recompiling.",
    description=(
        "{{ $labels.function }} of {{ $labels.instance }} ({{ $labels.job }}) was recompiled {{ "
        'printf "%.0f" $value }} times in the last 30 minutes.'
    ),
    expr=(
        "sum without (cause, cache) (\n"
        '  increase(jax_compilations_total{@fn, cause!="first_call", function!="<eager>"}[30m])\n'
        ") > <compilations>\n"
        "unless on (job, instance) time() - last_over_time(jax_process_start_timestamp_seconds{@}[30m]) < 2700"
    ),
    for_="5m",
    keep_firing_for="10m",
    labels={"phase": "compile"},
    thresholds={
        "compilations": Threshold(
            value=10,
            unit="count",
            least=1,
            most=100_000,
            why=(
                "A program that has warmed up compiles nothing; an evaluation and a last short batch "
                "add a few compilations."
            ),
        )
    },
    panel=("debug", "recompilations"),
    texts=Beside(__name__),
)
