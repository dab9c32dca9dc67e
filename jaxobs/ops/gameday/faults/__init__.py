"""The faults: one module with `FAULT` for each, found by this folder."""

from __future__ import annotations

from jaxobs.base import discovery
from jaxobs.ops.gameday.fault_types import Fault

EACH_HAS = ("FAULT",)


def faults() -> dict[str, Fault]:
    """All of them by name, in the order of their names."""
    return {each.__name__.rpartition(".")[2]: each.FAULT for each in discovery.modules(__name__)}
