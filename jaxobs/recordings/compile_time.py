"""How long functions take to compile, now and in the last weeks.

By job and function alone: whatever else a target is called by, as the name of its pod, ends with the process.
"""

from __future__ import annotations

from jaxobs.rule_types import Group, Recording

_MEAN = "job_function:jax_function_compile_seconds:mean"

GROUP = Group(
    name="compile-time",
    interval="3m",
    rules=(
        Recording(
            name=_MEAN,
            expr=(
                'sum by (job, function) (jax_function_compile_seconds_sum{@fn, phase="compile"})\n'
                '  / (sum by (job, function) (jax_function_compile_seconds_count{@fn, phase="compile"}) > 0)'
            ),
            why=(
                "For JaxCompileTimeRegression and JaxThunderingCompile: over the lives of the job's processes, for "
                "most compile at their start, before they were ever scraped, where a rate sees nothing."
            ),
        ),
        Recording(
            name="job_function:jax_function_compile_seconds:median13d_mean",
            expr=f"quantile_over_time(0.5, {_MEAN}{{@fn}}[13d] offset 1d)",
            why=(
                "For JaxCompileTimeRegression: what was usual. The last day is left out, so that what is new is not "
                "compared with itself; what has no older history has no value. It reaches back 14 of the 15 days that "
                "Prometheus keeps by default."
            ),
        ),
    ),
)
