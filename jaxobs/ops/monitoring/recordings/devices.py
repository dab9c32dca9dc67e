"""How busy devices are, and for what part of the time they are slowed down."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Group, Recording

_BUSY = "job_instance_device:accelerator_utilization_ratio:avg15m"

GROUP = Group(
    name="devices",
    rules=(
        Recording(
            name=_BUSY,
            expr="avg_over_time(accelerator_utilization_ratio{@}[15m])",
            why="For JaxDeviceIdle, and for JaxDeviceThrottled, which leaves idle devices out.",
        ),
        Recording(
            name="job_instance_device_reason:accelerator_throttled:ratio15m",
            expr=(
                '(avg_over_time(accelerator_throttled{@, reason!~"sw_power_cap|sync_boost"}[15m])\n'
                f"  and on (job, instance, device) {_BUSY}{{@}} > 0.1)\n"
                "or label_replace(\n"
                '  avg_over_time((accelerator_slowdown_ratio{@} > bool 0)[15m:1m]), "reason", "tpu", "", ""\n'
                ")"
            ),
            why=(
                "For JaxDeviceThrottled: the share of time. A busy device typically hits its power "
                "cap, and `sync_boost` follows another device; both are left out."
            ),
        ),
    ),
)  # fmt: skip
