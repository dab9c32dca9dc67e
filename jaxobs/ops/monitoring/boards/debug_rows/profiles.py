"""Time of the devices by function and operation, from samples of the profiler."""

from __future__ import annotations

from jaxobs.ops.monitoring.panel_queries import highest
from jaxobs.ops.monitoring.panel_types import Panel, Row, Target

ROW = Row(
    title="Profiles",
    panels=(
        Panel(
            key="profile_categories",
            title="Device time by kind of operation",
            description=(
                "Share of the devices' computing time in samples, if the setting `profile_interval` is on. Much "
                "`copy`, `transfer` or `collective` is time in which nothing is computed."
            ),
            kind="timeseries", unit="percentunit", width=8, stacked=True, good="none", least=0, most=1,
            needs="profiles",
            targets=(
                Target(
                    expr=(
                        "sum by (category) (rate(jax_profile_device_seconds_total{@fn}[$__rate_interval])) "
                        "/ on () group_left () "
                        "(sum (rate(jax_profile_device_seconds_total{@fn}[$__rate_interval])) > 0)"
                    ),
                    legend="{{category}}",
                ),
            ),
        ),
        Panel(
            key="profile_functions",
            title="Device time by function",
            description=(
                "Seconds of device time per second of sampling: 1 is one device that does nothing else. Functions "
                "that take more than before got slower, or are called more often."
            ),
            kind="timeseries", unit="short", width=8, good="none", least=0, needs="profiles",
            targets=(
                Target(
                    expr=highest(
                        "sum by (job, instance, function) "
                        "(rate(jax_profile_device_seconds_total{@fn}[$__rate_interval])) "
                        "/ on (job, instance) group_left () "
                        "(rate(jax_profile_window_seconds_total{@}[$__rate_interval]) > 0)"
                    ),
                    legend="{{instance}} {{function}}",
                ),
            ),
        ),
        Panel(
            key="device_busy",
            title="Devices at work",
            description=(
                "Share of the latest sample in which at least one operation ran. The least busy devices. The finding "
                "`idle_devices` says what the host does meanwhile."
            ),
            kind="timeseries", unit="percentunit", width=8, good="high", least=0, most=1, needs="profiles",
            targets=(
                Target(expr="bottomk(10, jax_device_busy_ratio{@})", legend="{{instance}} {{device}}"),
                Target(
                    expr=highest(
                        "sum by (job, instance) (rate(jax_collective_exposed_seconds_total{@}[$__rate_interval])) "
                        "/ on (job, instance) (rate(jax_profile_window_seconds_total{@}[$__rate_interval]) > 0) "
                        "/ on (job, instance) (count by (job, instance) (jax_device_busy_ratio{@}) > 0)",
                        10,
                    ),
                    legend="{{instance}} only exchanging data",
                ),
            ),
        ),
    ),
)  # fmt: skip
