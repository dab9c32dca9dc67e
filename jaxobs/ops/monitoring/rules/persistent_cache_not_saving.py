"""Compiled programs that could not be written to the persistent cache."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxPersistentCacheNotSaving",
    severity="warning",
    concern="performance",
    summary="Compiled programs cannot be written to the persistent cache.",
    description=(
        "{{ $labels.instance }} ({{ $labels.job }}) failed to store programs in the persistent "
        'cache: {{ printf "%.0f" $value }} in the last 30 minutes, reason `{{ $labels.reason }}`. '
        "The next start recompiles them."
    ),
    expr='job_instance_reason:jax_persistent_cache_unsaved:increase30m{@, reason=~"error|unknown"} > <programs>',
    for_="5m",
    labels={"phase": "compile"},
    thresholds={
        "programs": Threshold(
            value=0,
            unit="count",
            least=0,
            most=100_000,
            why="Every failed write is a program that each later start recompiles, until somebody repairs it.",
        )
    },
    panel=("debug", "cache_unsaved"),
    texts=Beside(__name__),
)
