"""The alerts: each is a module of this folder, with its runbook and its promtool cases in files next to it."""

from __future__ import annotations

from typing import Protocol

from jaxobs.base import discovery
from jaxobs.ops.monitoring.rule_types import ORDER, SEVERITIES, Alert


class RuleModule(discovery.Module, Protocol):
    """Declares one alert."""

    ALERT: Alert


def alerts() -> list[Alert]:
    """Returns all alerts: by concern, then by severity, then by name."""
    found = [module.ALERT for module in discovery.modules(RuleModule)]
    return sorted(found, key=lambda each: (ORDER.index(each.concern), SEVERITIES.index(each.severity), each.name))
