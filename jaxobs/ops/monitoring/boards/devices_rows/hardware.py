"""Figures of each device's driver: load, power, heat, faults, links."""

from __future__ import annotations

from jaxobs.ops.monitoring.panel_queries import highest, lowest
from jaxobs.ops.monitoring.panel_types import Panel, Row, Target

_CHOSEN = '{@, device=~"$device"}'
_LEGEND = "{{instance}} device {{device}}"

LOAD = Row(
    title="Load, power, heat",
    panels=(
        Panel(
            key="utilization",
            title="Utilization",
            description="The least busy devices: share of the driver's sample period in which any program ran.",
            kind="timeseries", alert="JaxDeviceIdle", unit="percentunit", width=8,
            good="high", least=0, most=1, needs="accelerator",
            targets=(Target(expr=lowest(f"accelerator_utilization_ratio{_CHOSEN}"), legend=_LEGEND),),
        ),
        Panel(
            key="tensorcore",
            title="TPU matrix units",
            description="The least busy TPUs: how much of their matrix units' capacity they used.",
            kind="timeseries", unit="percentunit", width=8, good="high", least=0, most=1, needs="tpu",
            targets=(Target(expr=lowest(f"accelerator_tensorcore_utilization_ratio{_CHOSEN}"), legend=_LEGEND),),
        ),
        Panel(
            key="bandwidth",
            title="Memory traffic",
            description=(
                "GPU: share of time in which memory was read or written. TPU: share of the memory "
                "bandwidth in use."
            ),
            kind="timeseries", unit="percentunit", width=8, good="none", least=0, most=1, needs="accelerator",
            targets=(
                Target(
                    expr=highest(f"accelerator_memory_controller_utilization_ratio{_CHOSEN}", 10),
                    legend=_LEGEND + " busy",
                ),
                Target(
                    expr=highest(f"accelerator_memory_bandwidth_utilization_ratio{_CHOSEN}", 10),
                    legend=_LEGEND + " bandwidth",
                ),
            ),
        ),
        Panel(
            key="power",
            title="Power, share of the limit",
            description="At 100% the driver lowers the clocks to stay below the limit.",
            kind="timeseries", unit="percentunit", width=8, good="none", least=0, needs="gpu",
            targets=(
                Target(
                    expr=highest(f"accelerator_power_watts{_CHOSEN} / (accelerator_power_limit_watts{_CHOSEN} > 0)"),
                    legend=_LEGEND,
                ),
            ),
        ),
        Panel(
            key="energy",
            title="Energy",
            description=(
                "Energy of each board in each interval, from the driver's own counter, so that no "
                "peak is missed."
            ),
            kind="timeseries", unit="joule", width=8, good="none", least=0, needs="gpu",
            targets=(
                Target(
                    expr=highest(f"increase(accelerator_energy_joules_total{_CHOSEN}[$__rate_interval])"),
                    legend=_LEGEND,
                ),
            ),
        ),
        Panel(
            key="temperature",
            title="Temperature",
            description="The hottest chips. Most boards throttle from 80 °C to 90 °C.",
            kind="timeseries", alert="JaxDeviceTemperatureHigh", unit="celsius", width=8, good="low", needs="gpu",
            targets=(Target(expr=highest(f"accelerator_temperature_celsius{_CHOSEN}"), legend=_LEGEND),),
        ),
        Panel(
            key="clocks",
            title="Clocks",
            description="The slowest devices, by clock. Equal boards under equal load have equal clocks.",
            kind="timeseries", unit="hertz", width=12, good="none", least=0, needs="gpu",
            targets=(
                Target(expr=lowest(f"accelerator_clock_hertz{_CHOSEN}"), legend=_LEGEND + " {{clock}}"),
            ),
        ),
        Panel(
            key="slowdown",
            title="Slowdown of TPUs",
            description="How much the most throttled TPUs are throttled; 0 means not at all.",
            kind="timeseries", unit="percentunit", width=12, good="low", least=0, most=1, needs="tpu",
            targets=(Target(expr=highest(f"accelerator_slowdown_ratio{_CHOSEN}"), legend=_LEGEND),),
        ),
        Panel(
            key="throttled",
            title="Throttled",
            description=(
                "GPUs that were throttled within the last half hour, by reason. `sw_power_cap` under "
                "full load is normal; thermal reasons and `hw_power_brake_slowdown` are not."
            ),
            kind="state-timeline", unit="short", width=24, good="low", needs="trouble", least=0,
            no_value="No GPU is throttled.",
            mappings={"0": ("no", "green"), "1": ("throttled", "orange")},
            targets=(
                Target(
                    expr=highest(
                        f"accelerator_throttled{_CHOSEN} and max_over_time(accelerator_throttled{_CHOSEN}[30m]) > 0"
                    ),
                    legend=_LEGEND + " {{reason}}",
                ),
            ),
        ),
    ),
)  # fmt: skip

FAULTS = Row(
    title="Faults",
    panels=(
        Panel(
            key="xid_errors",
            title="Xid errors, last 30 min",
            description=(
                "What the driver reported, by code. 13 and 31 come from programs; 48, 63, 74, 79, 94, 95 from "
                "hardware."
            ),
            kind="timeseries", unit="short", width=12, good="low", least=0, decimals=0, needs="trouble",
            no_value="The driver reported no errors.",
            targets=(
                Target(
                    expr=highest(f"job_instance_device_xid:accelerator_xid_errors:increase30m{_CHOSEN}"),
                    legend=_LEGEND + " Xid {{xid}}",
                ),
            ),
        ),
        Panel(
            key="ecc_errors",
            title="Memory errors, last 30 min",
            description=(
                "Corrected errors are harmless in small numbers. After an uncorrected one, the "
                "device needs a reset."
            ),
            kind="timeseries", unit="short", width=12, good="low", least=0, decimals=0, needs="gpu",
            targets=(
                Target(
                    expr=highest(
                        'increase(accelerator_ecc_errors_total{@, device=~"$device", counter="volatile"}[30m])'
                    ),
                    legend=_LEGEND + " {{error}}",
                ),
            ),
        ),
    ),
)  # fmt: skip

LINKS = Row(
    title="Links",
    panels=(
        Panel(
            key="pcie",
            title="PCI Express",
            description=(
                "Bytes per second according to the device. Much traffic in one direction during steps "
                "means that data moves with each step."
            ),
            kind="timeseries", unit="Bps", width=8, good="none", least=0, needs="gpu",
            targets=(
                Target(
                    expr=highest(f"rate(accelerator_pcie_bytes_total{_CHOSEN}[$__rate_interval])"),
                    legend=_LEGEND + " {{direction}}",
                ),
            ),
        ),
        Panel(
            key="nvlink",
            title="NVLink",
            description=("Bytes per second over all NVLinks of a device. Devices of one job that share "
                        "work look alike."),
            kind="timeseries", unit="Bps", width=8, good="none", least=0, needs="gpu",
            targets=(
                Target(
                    expr=highest(f"rate(accelerator_nvlink_bytes_total{_CHOSEN}[$__rate_interval])"),
                    legend=_LEGEND + " {{direction}}",
                ),
            ),
        ),
        Panel(
            key="links",
            title="State of the links",
            description=(
                "TPU: 0 is healthy, 1 to 5 a transient fault, 6 to 9 a persistent one, 10 unusable. "
                "GPU: number of working NVLinks."
            ),
            kind="timeseries", unit="short", width=8, good="none", least=0, decimals=0, needs="accelerator",
            targets=(
                Target(
                    expr=highest(f"accelerator_link_fault_level{_CHOSEN}", 10), legend=_LEGEND + " link {{link}} fault"
                ),
                Target(expr=lowest(f"accelerator_nvlink_links{_CHOSEN}", 10), legend=_LEGEND + " NVLinks"),
            ),
        ),
    ),
)  # fmt: skip
