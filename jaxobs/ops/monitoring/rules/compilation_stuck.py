"""A compilation that does not end."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxCompilationStuck",
    severity="critical",
    concern="availability",
    summary="A compilation has been in progress for very long.",
    description="{{ $labels.instance }} ({{ $labels.job }}) has been compiling one program for {{ $value | "
    "humanizeDuration }}.",
    expr="time() - jax_compilation_oldest_start_timestamp_seconds{@} > <seconds>",
    for_="5m",
    thresholds={
        "seconds": Threshold(
            value=3600,
            unit="seconds",
            least=60,
            most=604_800,
            why="The largest programs compile for tens of minutes. A compilation that takes an hour "
            "is waiting for something, or was unrolled.",
        )
    },
    panel=("debug", "in_progress"),
    texts=Beside(__name__),
)
