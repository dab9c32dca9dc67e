"""How much memory a device has left, and when it is full."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Group, Recording

_FLOOR = "job_instance_device:jax_device_memory_in_use_bytes:min15m"
_LIMIT = "jax_device_memory_limit_bytes{@}"

GROUP = Group(
    name="memory",
    rules=(
        Recording(
            name="job_instance_device:jax_device_memory_headroom_ratio:min",
            expr=f"1 - jax_device_memory_high_water_bytes{{@}} / ({_LIMIT} > 0)",
            why="For JaxDeviceMemoryHeadroomLow and panels: what was left at peak use in the last minute.",
        ),
        Recording(
            name=_FLOOR,
            expr="min_over_time(jax_device_memory_in_use_bytes{@}[15m])",
            why=("For the time to full: what rises and falls with steps and evaluations is not growth; the floor is."),
        ),
        Recording(
            name="job_instance_device:jax_device_memory_time_to_full_seconds:deriv1h",
            expr=f"({_LIMIT} - jax_device_memory_high_water_bytes{{@}}) / (deriv({_FLOOR}{{@}}[1h]) > 0)",
            why=("For JaxDeviceMemoryFillingUp and panels: what is left, divided by the rate at which the floor rose."),
        ),
    ),
)
