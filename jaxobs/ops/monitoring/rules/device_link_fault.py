"""Links between devices that have failed."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxDeviceLinkFault",
    severity="warning",
    concern="availability",
    summary="Links between devices have failed.",
    description=(
        "{{ $value | humanize }} links of {{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) have "
        "failed."
    ),
    expr=(
        "count without (link) (accelerator_link_fault_level{@} > <level>)\n"
        "or\n"
        "(max_over_time(accelerator_nvlink_links{@}[6h]) - accelerator_nvlink_links{@} > 0)"
    ),
    for_="5m",
    keep_firing_for="15m",
    thresholds={
        "level": Threshold(
            value=5, unit="level", least=0, most=9,
            why=(
                "The runtime's scale: 1 to 5 is a transient fault, 6 to 9 a persistent one, 10 an "
                "unusable link."
            ),
        )
    },
    panel=("devices", "links"),
    texts=Beside(__name__),
)  # fmt: skip
