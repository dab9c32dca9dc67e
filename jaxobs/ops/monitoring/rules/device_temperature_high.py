"""A device that is close to the heat at which it slows down."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxDeviceTemperatureHigh",
    severity="warning",
    concern="saturation",
    summary="A device is close to the temperature at which it throttles.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) has been at {{ $value | humanize }} "
        "degrees Celsius or more for 10 minutes."
    ),
    expr="min_over_time(accelerator_temperature_celsius{@}[5m]) > <celsius>",
    for_="5m",
    keep_firing_for="10m",
    thresholds={
        "celsius": Threshold(
            value=85, unit="celsius", least=40, most=120,
            why=(
                "Data-centre GPUs throttle from about 87 to 90; `nvidia-smi -q -d TEMPERATURE` shows "
                "a model's own limit."
            ),
        )
    },
    panel=("devices", "temperature"),
    texts=Beside(__name__),
)  # fmt: skip
