"""A device that does not answer its driver."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxDeviceLost",
    severity="critical",
    concern="availability",
    summary="A device does not respond to its driver.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) does not respond: "
        "`accelerator_up` is {{ $value | humanize }}."
    ),
    expr="accelerator_up{@} == 0",
    for_="2m",
    keep_firing_for="5m",
    panel=("oncall", "device_faults"),
    texts=Beside(__name__),
)  # fmt: skip
