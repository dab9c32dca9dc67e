"""The objectives that jaxobs brings: one is one module here with `OBJECTIVE`, found by this folder."""

from __future__ import annotations

from jaxobs.base import discovery
from jaxobs.ops.monitoring.objective_types import Objective

EACH_HAS = ("OBJECTIVE",)


def objectives() -> list[Objective]:
    """All of them, by name."""
    return sorted((module.OBJECTIVE for module in discovery.modules(__name__)), key=lambda each: each.name)
