"""The recording rules: each group is a module of this folder."""

from __future__ import annotations

from typing import Protocol

from jaxobs.base import discovery
from jaxobs.ops.monitoring.rule_types import Group


class RecordingModule(discovery.Module, Protocol):
    """Declares one group of recording rules."""

    GROUP: Group


def groups() -> list[Group]:
    """Returns all groups of recording rules, by name."""
    return sorted((module.GROUP for module in discovery.modules(RecordingModule)), key=lambda group: group.name)
