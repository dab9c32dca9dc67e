"""The dashboards: one is one module here with `BOARD`, found by this folder."""

from __future__ import annotations

from typing import Protocol

from jaxobs.base import discovery
from jaxobs.ops.monitoring.panel_types import Board, Panel


class BoardModule(discovery.Module, Protocol):
    """Declares one dashboard."""

    BOARD: Board


def boards() -> list[Board]:
    """All of them, by name."""
    return [module.BOARD for module in discovery.modules(BoardModule)]


def panel(board: str, key: str) -> Panel:
    """A panel by its dashboard and its key.

    Raises:
      KeyError: there is none.
    """
    for each in boards():
        for row in each.rows if each.name == board else ():
            for found in row.panels:
                if found.key == key:
                    return found
    raise KeyError(f"{board}/{key}")
