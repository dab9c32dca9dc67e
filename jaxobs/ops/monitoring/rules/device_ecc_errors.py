"""Memory errors of a device that could not be corrected."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxDeviceEccErrors",
    severity="warning",
    concern="availability",
    summary="A device had uncorrectable memory errors.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) had {{ $value | humanize }} uncorrected "
        "memory errors in the last half hour."
    ),
    expr=(
        'sum without (error, counter) (increase(accelerator_ecc_errors_total{@, error="uncorrected", '
        'counter="volatile"}[30m])) > 0'
    ),
    for_="1m",
    keep_firing_for="1h",
    panel=("devices", "ecc_errors"),
    texts=Beside(__name__),
)  # fmt: skip
