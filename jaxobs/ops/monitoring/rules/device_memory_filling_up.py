"""A device whose memory will be full in a few hours."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

_FLOOR = "job_instance_device:jax_device_memory_in_use_bytes:min15m{@}"
_LIMIT = "jax_device_memory_limit_bytes{@}"


ALERT = Alert(
    name="JaxDeviceMemoryFillingUp",
    severity="warning",
    concern="capacity",
    summary="The memory of a device will be full soon.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) will be full in {{ "
        "$value | humanizeDuration }} at the rate of the last hour."
    ),
    expr=(
        "job_instance_device:jax_device_memory_time_to_full_seconds:deriv1h{@} < <seconds>\n"
        f"and {_FLOOR} - {_FLOOR} offset 30m > <rise> * {_LIMIT}\n"
        f"and {_FLOOR} offset 30m - {_FLOOR} offset 1h > <rise> * {_LIMIT}"
    ),
    for_="15m",
    keep_firing_for="15m",
    thresholds={
        "seconds": Threshold(
            value=7200,
            unit="seconds",
            least=300,
            most=604_800,
            why="Two hours are enough to take a checkpoint, find what grows, and restart during working hours.",
        ),
        "rise": Threshold(
            value=0.01,
            unit="ratio",
            least=0.0001,
            most=0.5,
            why="As a share of the limit, in each of the last two half hours: a single jump, as at a "
            "start, raises only one of them.",
        ),
    },
    panel=("devices", "time_to_full"),
    texts=Beside(__name__),
)
