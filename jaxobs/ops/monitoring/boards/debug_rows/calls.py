"""Calls of the instrumented functions: how many, how long they take on the host and on the device, what they raise."""

from __future__ import annotations

from jaxobs.ops.monitoring.panel_queries import highest
from jaxobs.ops.monitoring.panel_types import Panel, Row, Target

ROW = Row(
    title="Calls",
    panels=(
        Panel(
            key="calls",
            title="Calls per second",
            description=("Calls of instrumented functions. Calls made while another function is "
                        "traced do not count."),
            kind="timeseries", unit="cps", width=8, good="none", least=0,
            targets=(
                Target(
                    expr=highest("sum by (instance, function) (rate(jax_function_calls_total{@fn}[$__rate_interval]))"),
                    legend="{{instance}} {{function}}",
                ),
            ),
        ),
        Panel(
            key="dispatch",
            title="Time from call to return",
            description=(
                "99th percentile and median. JAX returns before the device is done, so this is the "
                "cost in Python: 10 to 100 µs. Seconds mean a compilation, or a call that waits for "
                "results."
            ),
            kind="timeseries", unit="s", width=8, good="low", least=0,
            targets=(
                Target(
                    expr=highest("quantile_of(0.99, jax_function_dispatch_seconds{@fn}, instance, function)", 10),
                    legend="{{instance}} {{function}} p99",
                ),
                Target(
                    expr=highest("quantile_of(0.5, jax_function_dispatch_seconds{@fn}, instance, function)", 10),
                    legend="{{instance}} {{function}} median",
                ),
            ),
        ),
        Panel(
            key="device_seconds",
            title="Time on the device",
            description=(
                "95th percentile of an upper bound on the device time of sampled calls, measured "
                "without waiting. Compare with the time from call to return: if that is longer, "
                "Python is the bottleneck."
            ),
            kind="timeseries", unit="s", width=8, good="low", least=0,
            targets=(
                Target(
                    expr=highest("quantile_of(0.95, jax_function_device_seconds{@fn}, instance, function)"),
                    legend="{{instance}} {{function}}",
                ),
            ),
        ),
        Panel(
            key="errors",
            title="Calls that raised, last 30 min",
            description="By exception type, including the first of its kind.",
            kind="timeseries", alert="JaxFunctionErrors", unit="short", width=8,
            good="low", least=0, decimals=0, needs="trouble",
            no_value="No call raised.",
            targets=(
                Target(
                    expr=highest(
                        "sum by (instance, function, error) "
                        "(job_instance_function_error:jax_function_errors:increase30m{@fn})"
                    ),
                    legend="{{instance}} {{function}} {{error}}",
                ),
            ),
        ),
        Panel(
            key="out_of_memory",
            title="Out of memory, last 30 min",
            description="Calls that ran out of memory, by function and by device if the error names it.",
            kind="timeseries", unit="short", width=8, good="low", least=0, decimals=0, needs="trouble",
            no_value="No call ran out of memory.",
            targets=(
                Target(
                    expr=highest(
                        "sum by (instance, function, device) "
                        "(job_instance_function_device:jax_out_of_memory:increase30m{@fn})"
                    ),
                    legend="{{instance}} {{function}} {{device}}",
                ),
            ),
        ),
        Panel(
            key="fastpath_misses",
            title="Calls past the fast path",
            description=(
                "Calls that JAX dispatched from Python although nothing compiled, each some 10 to "
                "100 µs slower. Fewer than one per second does not matter."
            ),
            kind="timeseries", unit="cps", width=8, good="low", least=0,
            targets=(
                Target(
                    expr=highest(
                        "sum by (instance, function) (rate(jax_fastpath_misses_total{@fn}[$__rate_interval]))"
                    ),
                    legend="{{instance}} {{function}}",
                ),
            ),
        ),
    ),
)  # fmt: skip
