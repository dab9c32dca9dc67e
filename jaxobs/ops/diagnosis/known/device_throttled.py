"""A device runs slower to protect itself."""

from __future__ import annotations

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import SLOW, Alert, Knowledge, Line, Metric
from jaxobs.ops.monitoring import rules

THROTTLED, SLOWDOWN, BUSY = "accelerator_throttled", "accelerator_slowdown_ratio", "accelerator_utilization_ratio"
WINDOW = 900.0
"""Seconds up to now, as in the alert."""
LEAST_SHARE = {THROTTLED: rules.declared()["device_throttled"].thresholds["share"].value, SLOWDOWN: 0.05}
"""Of the window: short spells come with bursts of load."""
LEAST_BUSY = 0.1
"""An idle device slows nobody down."""


def _mean(sign: Observation) -> float:
    """Over the window, where there is a history; else its value."""
    latest = [value for at, value in sign.history if at > sign.history[-1][0] - WINDOW]
    return sum(latest) / len(latest) if latest else sign.value or 0.0


def _is_short(evidence: Evidence, sign: Observation) -> bool:
    """Whether a device is not slowed down, only for a small part of the time, or idle."""
    if sign.name not in LEAST_SHARE:
        return False
    if _mean(sign) < LEAST_SHARE[sign.name]:
        return True
    device = sign.data.get("device")
    busy = [_mean(each) for each in counters.samples(evidence, sign, BUSY) if each.data.get("device") == device]
    return max(busy, default=1) < LEAST_BUSY


def _since(evidence: Evidence, sign: Observation) -> float | None:
    """Since when spells have followed each other within the window."""
    began = sign.history[-1][0] if sign.history else sign.time
    for at, value in reversed(sign.history):
        if began is not None and began - at > WINDOW:
            break
        began = at if value else began
    return began


KNOWN = Knowledge(
    title="A device is throttled",
    impact=SLOW,
    signs=(
        # At the last sample it may be 0.
        Metric(
            THROTTLED,
            over=-1,
            labels=(
                (
                    "reason",
                    "hw_slowdown|hw_thermal|sw_thermal|hw_power_brake|thermal|power_brake|"
                    "hw_thermal_slowdown|sw_thermal_slowdown|hw_power_brake_slowdown",
                ),
            ),
        ),
        Metric(SLOWDOWN, over=-1),
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
    beside=(BUSY,),
    ordinary=_is_short,
    since=_since,
)
