"""The faults: one module with `FAULT` for each, found by this folder."""

from __future__ import annotations

from typing import Protocol

from jaxobs.base import discovery
from jaxobs.ops.gameday.fault_types import Fault


class FaultModule(discovery.Module, Protocol):
    """Declares one fault."""

    FAULT: Fault


def faults() -> dict[str, Fault]:
    """Returns all of them by name, in the order of their names."""
    return {discovery.short_name(each): each.FAULT for each in discovery.modules(FaultModule)}
