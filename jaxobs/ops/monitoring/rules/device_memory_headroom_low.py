"""A device that is almost full."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxDeviceMemoryHeadroomLow",
    severity="warning",
    concern="saturation",
    summary="A device has almost no memory left.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) has {{ $value | "
        "humanizePercentage }} of its memory left at peak use."
    ),
    expr="job_instance_device:jax_device_memory_headroom_ratio:min{@} < <share>",
    for_="10m",
    keep_firing_for="15m",
    thresholds={
        "share": Threshold(
            value=0.05,
            unit="ratio",
            least=0.001,
            most=0.9,
            why="As a share of what JAX's allocator may use: with less, a slightly longer batch or "
            "one more program fails.",
        )
    },
    panel=("devices", "memory_headroom"),
    texts=Beside(__name__),
)
