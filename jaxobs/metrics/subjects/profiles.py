"""The devices' time, by samples of the profiler."""

from __future__ import annotations

from jaxobs.facts.profiles import CATEGORIES
from jaxobs.metrics.metric import Metric

METRICS = (
    Metric(
        name="jax_profile_device_seconds_total", kind="counter", labels=("function", "category"), unit="seconds",
        read=lambda s: [
            ((function, category), seconds)
            for function, each in (s.profile.device_seconds.items() if s.profile is not None else ())
            for category, seconds in each.items()
        ],
        values=(("category", CATEGORIES),),
        help=("Time of operations on the devices in the samples that the setting `profile_interval` takes, by function "
              "and what the operations do."),
    ),
    Metric(
        name="jax_profile_window_seconds_total", kind="counter", unit="seconds",
        read=lambda s: [((), s.profile.window_seconds)] if s.profile is not None else [],
        help="Time in which samples of the devices' time were recorded.",
    ),
    Metric(
        name="jax_device_busy_ratio", kind="gauge", labels=("device",), unit="ratio",
        read=lambda s: [] if s.profile is None else [((device,), busy) for device, busy in s.profile.busy.items()],
        help="Share of the latest sample in which at least one operation ran on the device.",
    ),
    Metric(
        name="jax_collective_exposed_seconds_total", kind="counter", labels=("function",), unit="seconds",
        read=lambda s: [
            ((function,), seconds)
            for function, seconds in (s.profile.exposed_seconds.items() if s.profile is not None else ())
        ],
        help="Time of exchanges between devices in the samples in which nothing else ran on the device, by function.",
    ),
)  # fmt: skip
