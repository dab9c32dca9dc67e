"""Deaths and decay: what has to be noticed, by which alert, and how soon. Modules here have `DEATHS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jaxobs.base import discovery
from jaxobs.ops.monitoring.lives.support.scenes import Process

EACH_HAS = ("DEATHS",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """One kind of death or decay."""

    name: str
    """Lower case with hyphens: its jobs begin with it."""
    what: str
    """A phrase for a person."""
    alert: str
    severity: str
    """`critical` for a page, `warning` for a ticket."""
    at: int
    """The minute in which it begins."""
    within: int
    """Minutes until somebody knows."""
    processes: Callable[[], Iterable[Process]]
    live: str = ""
    """The job of the live test that dies so in a real program."""

    @property
    def minutes(self) -> int:
        """Length of the scene."""
        return self.at + self.within


def deaths() -> list[Death]:
    """All of them, by name."""
    found = (each for module in discovery.modules(__name__) for each in module.DEATHS)
    return sorted(found, key=lambda each: each.name)
