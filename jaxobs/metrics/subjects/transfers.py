"""Transfers between host and devices."""

from __future__ import annotations

from jaxobs.facts.transfers import DIRECTIONS
from jaxobs.metrics.metric import Metric

METRICS = (
    Metric(
        name="jax_host_transfers_total", kind="counter", labels=("site", "direction"),
        read=lambda s: [((each.site, each.direction), each.count) for each in s.transfers],
        values=(("direction", DIRECTIONS),),
        help=("Arrays moved between host and devices, by the line that moves them, if the setting "
             "`transfers` is on."),
    ),
    Metric(
        name="jax_host_transfer_bytes_total", kind="counter", labels=("site", "direction"), unit="bytes",
        read=lambda s: [((each.site, each.direction), each.bytes) for each in s.transfers],
        values=(("direction", DIRECTIONS),),
        help="Size of the arrays moved between host and devices, by the line that moves them.",
    ),
)  # fmt: skip
