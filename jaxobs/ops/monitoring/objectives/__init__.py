"""The objectives that jaxobs brings: one is one module here with `OBJECTIVE`, found by this folder."""

from __future__ import annotations

from typing import Protocol

from jaxobs.base import discovery
from jaxobs.ops.monitoring.objective_types import Objective


class ObjectiveModule(discovery.Module, Protocol):
    """Declares one objective."""

    OBJECTIVE: Objective


def objectives() -> list[Objective]:
    """All of them, by name."""
    return sorted((module.OBJECTIVE for module in discovery.modules(ObjectiveModule)), key=lambda each: each.name)
