"""The built-in objectives: each is a module of this folder, with its part of the runbook in Markdown next to it."""

from __future__ import annotations

from typing import Protocol

from jaxobs.base import discovery
from jaxobs.ops.monitoring.objective_types import Objective


class ObjectiveModule(discovery.Module, Protocol):
    """Declares one objective."""

    OBJECTIVE: Objective


def objectives() -> list[Objective]:
    """Returns all built-in objectives, by name."""
    return sorted((module.OBJECTIVE for module in discovery.modules(ObjectiveModule)), key=lambda each: each.name)
