"""Results of lookups in the persistent cache, and of attempts to store in it."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Group, Recording

_UNSAVED = "jax_persistent_cache_unsaved_total{@}"
_START = "jax_process_start_timestamp_seconds{@}"

GROUP = Group(
    name="persistent-cache",
    rules=(
        Recording(
            name="job_function:jax_persistent_cache_hits:count",
            expr='count by (job, function) (jax_persistent_cache_requests_total{@fn, result="hit"} > 0)',
            why=(
                "For JaxPersistentCacheLostAfterRestart: that the cache once had a function for the "
                "job; the processes that observed it are gone by then."
            ),
        ),
        Recording(
            name="job_function:jax_persistent_cache_lookups:count",
            expr='count by (job, function) (jax_persistent_cache_requests_total{@fn, result=~"hit|miss"} > 0)',
            why="For JaxPersistentCacheIneffective: that the job looked a function up before, and "
            "might have stored it.",
        ),
        Recording(
            name="job_instance_reason:jax_persistent_cache_unsaved:increase30m",
            expr=(
                f"(({_UNSAVED} unless {_UNSAVED} offset 30m)\n"
                f"  and on (job, instance) ({_START} offset 30m or (time() - {_START} < 1800)))\n"
                f"or increase({_UNSAVED}[30m])"
            ),
            why="For JaxPersistentCacheNotSaving: the first failure creates the series, which "
            "`increase` does not count.",
        ),
    ),
)
