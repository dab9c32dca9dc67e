"""A device runs slower to protect itself."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import SLOW, Alert, Knowledge, Line, Metric

KNOWN = Knowledge(
    title="A device is throttled",
    impact=SLOW,
    signs=(
        Metric(
            "accelerator_throttled",
            labels=(
                (
                    "reason",
                    "hw_slowdown|hw_thermal|sw_thermal|hw_power_brake|thermal|power_brake|"
                    "hw_thermal_slowdown|sw_thermal_slowdown|hw_power_brake_slowdown",
                ),
            ),
        ),
        Metric("accelerator_slowdown_ratio", over=0.05),
        Line(
            r"(?:HW|SW) (?:Thermal |Power Brake )?[Ss]lowdown(?:: Active|\s+: Active| is active)|"
            "clocks? throttled.{0,60}thermal|[Tt]hermal throttling",
            info=True,
            passes=False,
        ),
        Alert("JaxDeviceThrottled", weak=False),
        Alert("JaxDeviceTemperatureHigh"),
        Line("clock throttled", info=True, passes=False),
    ),
    needs=("log", "metrics-file", "target", "prometheus"),
    located_by=("straggler",),
    fix=("Check cooling and power of that host: airflow, fans, power caps (`nvidia-smi -q -d PERFORMANCE,POWER`)."),
    runbook="JaxDeviceThrottled",
)
