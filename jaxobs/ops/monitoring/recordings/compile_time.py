"""How long functions take to compile, now and in the last weeks.

By job and function alone: whatever else a target is called by, as the name of its pod, ends with the process.
"""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Group, Recording

_MEAN = "job_function:jax_function_compile_seconds:mean"


def _rise(what: str) -> str:
    series = f'jax_function_compile_seconds_{what}{{@fn, phase="compile"}}'
    return f"sum by (job, function) (({series} unless {series} offset 1d) or increase({series}[1d]))"


GROUP = Group(
    name="compile-time",
    interval="3m",
    rules=(
        Recording(
            name=_MEAN,
            expr=f"{_rise('sum')}\n/ ({_rise('count')} > 0)",
            why=(
                "For JaxCompileTimeRegression and JaxThunderingCompile: of the compilations of the last day. Most are "
                "those of a start, which create the series, so a series that did not exist a day ago counts whole."
            ),
        ),
        Recording(
            name="job_function:jax_function_compile_seconds:median13d_mean",
            expr=(
                f"quantile_over_time(0.5, {_MEAN}{{@fn}}[13d] offset 1d)\n"
                f"and max_over_time({_MEAN}{{@fn}}[13d] offset 1d)"
                f" < 1.5 * quantile_over_time(0.5, {_MEAN}{{@fn}}[13d] offset 1d)\n"
                f"and last_over_time({_MEAN}{{@fn}}[1d] offset 40h)"
            ),
            why=(
                "For JaxCompileTimeRegression: the baseline. The last day is left out, so that new "
                "values are not compared with themselves; without older history there is no value. Nor is there one "
                "if the mean rose by half before: then different programs share the name. "
                "It reaches back 14 of the 15 days that Prometheus keeps by default."
            ),
        ),
    ),
)
