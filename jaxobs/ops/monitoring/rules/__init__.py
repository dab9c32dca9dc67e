"""What is alerted on: an alert is one module here with `ALERT`, found by this folder."""

from __future__ import annotations

from jaxobs.base import discovery
from jaxobs.ops.monitoring.rule_types import ORDER, SEVERITIES, Alert

EACH_HAS = ("ALERT",)


def alerts() -> list[Alert]:
    """All of them: by concern, then by severity, then by name."""
    found: list[Alert] = [module.ALERT for module in discovery.modules(__name__)]
    return sorted(found, key=lambda each: (ORDER.index(each.concern), SEVERITIES.index(each.severity), each.name))
