"""Many processes that compile one and the same program at once."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxThunderingCompile",
    severity="info",
    concern="performance",
    summary="Many processes compile the same program at once.",
    description=(
        "{{ $value | humanize }} processes of {{ $labels.job }} compiled {{ $labels.function }} in "
        "the last 10 minutes, each by itself: none found it in a persistent cache."
    ),
    expr=(
        "count by (job, function) (job_instance_function:jax_compilations:increase10m{@fn} > 0) >= <processes>\n"
        "and\n"
        "job_function:jax_function_compile_seconds:mean{@fn} > <seconds>"
    ),
    for_="2m",
    keep_firing_for="10m",
    labels={"phase": "compile"},
    thresholds={
        "processes": Threshold(
            value=10,
            unit="count",
            least=2,
            most=1_000_000,
            why=(
                "A few processes that start together are normal; with ten or more, the same work is "
                "worth doing only once."
            ),
        ),
        "seconds": Threshold(
            value=20,
            unit="seconds",
            least=0,
            most=86_400,
            why="Loading from a cache takes up to some seconds as well: less than this is not worth sharing.",
        ),
    },
    panel=("fleet", "compiling_processes"),
    texts=Beside(__name__),
)
