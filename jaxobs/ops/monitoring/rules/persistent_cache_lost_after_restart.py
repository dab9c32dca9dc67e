"""A start that compiles what its job used to load from the persistent cache."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxPersistentCacheLostAfterRestart",
    severity="info",
    concern="performance",
    summary="After a restart, programs are compiled that were previously loaded from the persistent cache.",
    description=(
        "{{ $labels.instance }} ({{ $labels.job }}) has compiled for {{ $value | humanizeDuration }} "
        "since it started, for functions that earlier processes of the job had loaded from the "
        "persistent cache."
    ),
    expr=(
        "sum without (function, phase) (\n"
        '  jax_function_compile_seconds_sum{@fn, phase="compile"}\n'
        '  and on (job, instance, function) jax_persistent_cache_requests_total{@fn, result="miss"}\n'
        "  and on (job, function) last_over_time(job_function:jax_persistent_cache_hits:count{@fn}[7d] offset 1h)\n"
        ") > <seconds>\n"
        "and on (job, instance) (time() - jax_process_start_timestamp_seconds{@} < 3600)"
    ),
    for_="5m",
    labels={"phase": "compile"},
    thresholds={
        "seconds": Threshold(
            value=60,
            unit="seconds",
            least=0,
            most=86_400,
            why="A restart may cost a minute beyond loading; single small programs do not add up to it.",
        )
    },
    panel=("debug", "cache_results"),
    texts=Beside(__name__),
)
