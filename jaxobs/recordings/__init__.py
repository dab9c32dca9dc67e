"""What is recorded: a group of rules is one module here with `GROUP`, found by this folder."""

from __future__ import annotations

from jaxobs import discovery
from jaxobs.rule_types import Group


def groups() -> list[Group]:
    """All of them, by name."""
    return sorted((module.GROUP for module in discovery.modules(__name__)), key=lambda group: group.name)
