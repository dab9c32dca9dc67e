"""The objectives that jaxobs brings: one is one module here with `OBJECTIVE`, found by this folder."""

from __future__ import annotations

from jaxobs import discovery
from jaxobs.objective_types import Objective


def objectives() -> list[Objective]:
    """All of them, by name."""
    return sorted((module.OBJECTIVE for module in discovery.modules(__name__)), key=lambda each: each.name)
