"""Arguments that take always new sizes, values or forms."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxUnboundedShapes",
    severity="warning",
    concern="performance",
    summary="A function keeps compiling for new sizes or values, without a bound.",
    description=(
        "{{ $labels.instance }} ({{ $labels.job }}) has {{ $value | humanize }} findings `{{ "
        "$labels.finding }}`, and keeps compiling: the values that change have no bound."
    ),
    expr=(
        'jax_findings{@, finding=~"unbounded_shapes|unbounded_structures|static_values|eager_recompiles"} > 0\n'
        "and on (job, instance)\n"
        "sum without (function, cause, cache) (\n"
        '  increase(jax_compilations_total{@, cause!="first_call"}[1h])\n'
        ") > <compilations>"
    ),
    for_="10m",
    keep_firing_for="15m",
    labels={"phase": "compile"},
    thresholds={
        "compilations": Threshold(
            value=3,
            unit="count",
            least=0,
            most=100_000,
            why=(
                "A finding alone may be about a phase that is over; a process that still has the "
                "problem compiles several times an hour."
            ),
        )
    },
    panel=("debug", "causes"),
    texts=Beside(__name__),
)
