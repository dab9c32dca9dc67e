"""A device whose free memory lies in small pieces."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxDeviceMemoryFragmented",
    severity="warning",
    concern="saturation",
    summary="The free memory of a device is fragmented.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) cannot allocate {{ "
        "$value | humanizePercentage }} of its free memory in one piece."
    ),
    expr=(
        "1 - jax_device_memory_largest_free_block_bytes{@}\n"
        "  / (jax_device_memory_limit_bytes{@} - jax_device_memory_in_use_bytes{@} > 0)\n"
        "> <share>\n"
        "and jax_device_memory_in_use_bytes{@} / (jax_device_memory_limit_bytes{@} > 0) > <used>"
    ),
    for_="30m",
    keep_firing_for="15m",
    thresholds={
        "share": Threshold(
            value=0.75,
            unit="ratio",
            least=0.1,
            most=0.999,
            why="A fresh process has most of its free memory in one piece; with a quarter left, "
            "programs that should fit fail.",
        ),
        "used": Threshold(
            value=0.7,
            unit="ratio",
            least=0.0,
            most=0.99,
            why="While much memory is free, the pieces are large enough however many there are.",
        ),
    },
    panel=("devices", "fragmentation"),
    texts=Beside(__name__),
)
