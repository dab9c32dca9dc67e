"""The dashboards: each is a module of this folder."""

from __future__ import annotations

from typing import Protocol

from jaxobs.base import discovery
from jaxobs.ops.monitoring.panel_types import Board


class BoardModule(discovery.Module, Protocol):
    """Declares one dashboard."""

    BOARD: Board


def boards() -> list[Board]:
    """Returns all dashboards, by name."""
    return [module.BOARD for module in discovery.modules(BoardModule)]
