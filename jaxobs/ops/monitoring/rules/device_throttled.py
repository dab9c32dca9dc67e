"""A device at work that its hardware slows down."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxDeviceThrottled",
    severity="warning",
    concern="performance",
    summary="A busy device is throttled by its hardware.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) was throttled ({{ $labels.reason }}) for "
        "{{ $value | humanizePercentage }} of the last 15 minutes."
    ),
    expr="job_instance_device_reason:accelerator_throttled:ratio15m{@} > <share>",
    for_="10m",
    keep_firing_for="15m",
    thresholds={
        "share": Threshold(
            value=0.25, unit="ratio", least=0.01, most=0.99,
            why="Short spells come with bursts of load; a quarter of the time slows every step.",
        )
    },
    panel=("devices", "throttled"),
    texts=Beside(__name__),
)  # fmt: skip
