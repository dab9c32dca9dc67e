"""A start that compiles most of what the job's earlier processes had looked up already."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxPersistentCacheIneffective",
    severity="info",
    concern="performance",
    summary="Most lookups in the persistent cache miss, although the job ran before.",
    description=(
        "{{ $labels.instance }} ({{ $labels.job }}) did not find {{ $value | humanizePercentage }} "
        "of its programs in the persistent cache, for functions that earlier processes of the job "
        "had also looked up."
    ),
    expr=(
        "sum without (function, result) (\n"
        '  jax_persistent_cache_requests_total{@fn, result="miss"}\n'
        "  and on (job, function) last_over_time(job_function:jax_persistent_cache_lookups:count{@fn}[1d] offset 1h)\n"
        ")\n"
        "/\n"
        '(sum without (function, result) (jax_persistent_cache_requests_total{@fn, result=~"hit|miss"}) > <lookups>)\n'
        "> <share>\n"
        "and on (job, instance) (time() - jax_process_start_timestamp_seconds{@} < 3600)"
    ),
    for_="10m",
    labels={"phase": "compile"},
    thresholds={
        "share": Threshold(
            value=0.5,
            unit="ratio",
            least=0.01,
            most=0.99,
            why="A new version changes some programs, and small ones are never stored; if most are "
            "missing, the cache is of no use.",
        ),
        "lookups": Threshold(
            value=10,
            unit="count",
            least=1,
            most=100_000,
            why=(
                "With fewer lookups the share says little: a few single operations that compile too fast to be stored."
            ),
        ),
    },
    panel=("oncall", "cache_hit_ratio"),
    texts=Beside(__name__),
)
