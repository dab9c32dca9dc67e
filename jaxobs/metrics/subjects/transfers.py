"""Transfers between host and devices."""

from jaxobs.facts.transfers import DIRECTIONS
from jaxobs.metrics.metric import Metric

METRICS = (
    Metric("jax_host_transfers_total",
           "Arrays moved between host and devices, by the line that moves them; needs `transfers` or torch_xla.",
           lambda s: [((each.site, each.direction), each.count) for each in s.transfers], ("site", "direction"),
           values=(("direction", DIRECTIONS),)),
    Metric("jax_host_transfer_bytes_total",
           "Size of the arrays moved between host and devices, by the line that moves them.",
           lambda s: [((each.site, each.direction), each.bytes) for each in s.transfers], ("site", "direction"),
           values=(("direction", DIRECTIONS),)),
    Metric("jax_cpu_fallbacks_total",
           "Operators that torch_xla ran on the CPU because it has no lowering of them to XLA.",
           lambda s: [((each.operator,), each.count) for each in s.fallbacks], ("operator",)),
)  # fmt: skip
