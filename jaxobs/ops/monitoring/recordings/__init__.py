"""What is recorded: a group of rules is one module here with `GROUP`, found by this folder."""

from __future__ import annotations

from jaxobs.base import discovery
from jaxobs.ops.monitoring.rule_types import Group

EACH_HAS = ("GROUP",)


def groups() -> list[Group]:
    """All of them, by name."""
    return sorted((module.GROUP for module in discovery.modules(__name__)), key=lambda group: group.name)
