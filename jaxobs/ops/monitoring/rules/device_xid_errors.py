"""Errors of a GPU that its driver reported."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxDeviceXidErrors",
    severity="warning",
    concern="availability",
    summary="The driver reported GPU errors.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) had Xid {{ $labels.xid }} {{ $value | "
        "humanize }} times in the last half hour."
    ),
    expr='max_over_time(job_instance_device_xid:accelerator_xid_errors:increase30m{@, xid!~"13|31|43|45"}[10m]) > 0',
    for_="1m",
    panel=("devices", "xid_errors"),
    texts=Beside(__name__),
)  # fmt: skip
