"""Which functions were compiled in the last minutes, by process."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Group, Recording

_SELECTOR = 'jax_compilations_total{@fn, cache!="hit"}'
_START = "jax_process_start_timestamp_seconds{@}"

GROUP = Group(
    name="compilation",
    rules=(
        Recording(
            name="job_instance_function:jax_compilations:increase10m",
            expr=(
                "sum without (cause, cache) (\n"
                f"  (({_SELECTOR} unless {_SELECTOR} offset 10m)\n"
                f"    and on (job, instance) ({_START} offset 10m or (time() - {_START} < 600)))\n"
                f"  or increase({_SELECTOR}[10m])\n"
                ")"
            ),
            why=(
                "For JaxThunderingCompile and the fleet dashboard: what was compiled, not loaded. "
                "`increase` takes the first sample of a series as its start, and a first compilation "
                "creates the series."
            ),
        ),
    ),
)
