"""The devices' time, by samples of the profiler."""

from jaxobs.facts.profiles import CATEGORIES
from jaxobs.metrics.metric import Metric

METRICS = (
    Metric("jax_profile_device_seconds_total",
           ("Time of operations on the devices in the samples that the setting `profile_interval` takes, by function "
            "and what the operations do."),
           lambda s: [
               ((function, category), seconds)
               for function, each in (s.profile.device_seconds.items() if s.profile is not None else ())
               for category, seconds in each.items()
           ],
           ("function", "category"), values=(("category", CATEGORIES),)),
    Metric("jax_profile_window_seconds_total", "Time in which samples of the devices' time were recorded.",
           lambda s: [((), s.profile.window_seconds)] if s.profile is not None else []),
    Metric("jax_device_busy_ratio", "Share of the latest sample in which at least one operation ran on the device.",
           lambda s: [] if s.profile is None else [((device,), busy) for device, busy in s.profile.busy.items()],
           ("device",)),
    Metric("jax_collective_exposed_seconds_total",
           "Time of exchanges between devices in the samples in which nothing else ran on the device, by function.",
           lambda s: [((name,), n) for name, n in ({} if s.profile is None else s.profile.exposed_seconds).items()],
           ("function",)),
)  # fmt: skip
