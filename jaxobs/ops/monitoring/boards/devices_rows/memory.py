"""Memory of each device: what is used, what is left, when it will be full."""

from __future__ import annotations

from jaxobs.ops.monitoring.panel_queries import highest, lowest
from jaxobs.ops.monitoring.panel_types import Column, Panel, Row, Target

_CHOSEN = '{@, device=~"$device"}'
_LEGEND = "{{instance}} device {{device}}"
_FREE = f"(jax_device_memory_limit_bytes{_CHOSEN} - jax_device_memory_in_use_bytes{_CHOSEN})"


def _instant(expr: str, by: str = "instance, device") -> Target:
    return Target(expr=f"max by ({by}) ({expr})")


TABLE = Row(
    title="All devices",
    panels=(
        Panel(
            key="device_table",
            title="Devices",
            description=(
                "Every selected device, its kind and its state; unknown values are empty."
            ),
            kind="table", unit="short", width=24, height=9, good="none",
            targets=(
                Target(expr=f"max by (instance, device, platform, kind) (jax_device_info{_CHOSEN})"),
                _instant(f"jax_live_arrays{_CHOSEN}"),
                _instant(f"jax_live_array_bytes{_CHOSEN}"),
                _instant(f"jax_device_memory_in_use_bytes{_CHOSEN}"),
                _instant(f"jax_device_memory_limit_bytes{_CHOSEN}"),
                _instant(f"accelerator_utilization_ratio{_CHOSEN}"),
                _instant(f"accelerator_temperature_celsius{_CHOSEN}"),
                _instant(f"accelerator_power_watts{_CHOSEN}"),
                _instant(f"accelerator_up{_CHOSEN}"),
            ),
            columns=(
                Column(source="instance", title="Process", link="debug"),
                Column(source="device", title="Device"),
                Column(source="platform", title="Platform"),
                Column(source="kind", title="Kind"),
                Column(source="B", title="Live arrays", unit="short"),
                Column(source="C", title="Their bytes", unit="bytes"),
                Column(source="D", title="In use", unit="bytes"),
                Column(source="E", title="Limit", unit="bytes"),
                Column(source="F", title="Utilization", unit="percentunit"),
                Column(source="G", title="Temperature", unit="celsius"),
                Column(source="H", title="Power", unit="watt"),
                Column(
                    source="I", title="Driver", unit="none", mappings={"0": ("lost", "red"), "1": ("answers", "green")}
                ),
            ),
        ),
    ),
)  # fmt: skip

ROW = Row(
    title="Memory",
    panels=(
        Panel(
            key="memory_in_use",
            title="Memory in use",
            description="Share of the allocator's limit that is in use, on the fullest devices.",
            kind="timeseries", unit="percentunit", width=8, good="low", least=0, most=1, needs="accelerator",
            targets=(
                Target(
                    expr=highest(
                        f"jax_device_memory_in_use_bytes{_CHOSEN} / (jax_device_memory_limit_bytes{_CHOSEN} > 0)"
                    ),
                    legend=_LEGEND,
                ),
            ),
        ),
        Panel(
            key="memory_headroom",
            title="Headroom at peak use",
            description=(
                "Share of the limit that was free at peak use within the last minute, including "
                "peaks between scrapes. Below a few percent, the next larger batch fails."
            ),
            kind="timeseries", alert="JaxDeviceMemoryHeadroomLow", unit="percentunit", width=8,
            good="high", least=0, most=1, needs="accelerator",
            targets=(
                Target(
                    expr=lowest(
                        f"1 - jax_device_memory_high_water_bytes{_CHOSEN} "
                        f"/ (jax_device_memory_limit_bytes{_CHOSEN} > 0)"
                    ),
                    legend=_LEGEND,
                ),
            ),
        ),
        Panel(
            key="time_to_full",
            title="Time until the memory is full",
            description=(
                "Extrapolated from the last half hour. Only devices that would be full within a day; "
                "a line that falls steadily is a leak."
            ),
            kind="timeseries", alert="JaxDeviceMemoryFillingUp", unit="s", width=8,
            good="high", least=0, needs="accelerator",
            no_value="No device fills up within a day.",
            targets=(
                Target(
                    expr=lowest(
                        f"{_FREE} / (deriv(jax_device_memory_in_use_bytes{_CHOSEN}[30m]) > 1024) < 86400"
                    ),
                    legend=_LEGEND,
                ),
            ),
        ),
        Panel(
            key="fragmentation",
            title="Fragmentation",
            description=(
                "Share of the free memory that is not in one piece. A high value with little "
                "headroom means that an allocation can fail although enough is free."
            ),
            kind="timeseries", alert="JaxDeviceMemoryFragmented", unit="percentunit", width=8,
            good="low", least=0, most=1, needs="accelerator",
            targets=(
                Target(
                    expr=highest(
                        f"1 - jax_device_memory_largest_free_block_bytes{_CHOSEN} / ({_FREE} > 0)"
                    ),
                    legend=_LEGEND,
                ),
            ),
        ),
        Panel(
            key="live_arrays",
            title="Live arrays",
            description=(
                "Arrays that the program keeps. A line that rises for hours is a leak: see the "
                "finding `array_leak`."
            ),
            kind="timeseries", unit="short", width=8, good="low", least=0, decimals=0,
            targets=(Target(expr=highest(f"jax_live_arrays{_CHOSEN}"), legend=_LEGEND),),
        ),
        Panel(
            key="live_array_bytes",
            title="Bytes of live arrays",
            description=(
                "Without the temporaries of a running program. If memory in use is far above this, "
                "the difference is temporaries or fragmentation."
            ),
            kind="timeseries", unit="bytes", width=8, good="low", least=0,
            targets=(Target(expr=highest(f"jax_live_array_bytes{_CHOSEN}"), legend=_LEGEND),),
        ),
        Panel(
            key="driver_memory",
            title="Memory by process, as the driver counts it",
            description=(
                "`self` is this process, `others` are other processes on the same device. JAX "
                "preallocates, so `self` is high from the start; `others` should be 0 if the device "
                "is meant to be yours."
            ),
            kind="timeseries", unit="bytes", width=24, good="none", least=0, needs="gpu",
            targets=(
                Target(
                    expr=highest(f"accelerator_process_memory_bytes{_CHOSEN}"), legend=_LEGEND + " {{process}}"
                ),
            ),
        ),
    ),
)  # fmt: skip
