"""Ordinary life: nobody is paged for it, and no ticket is written. Modules here have `LIVES`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jaxobs.base import discovery
from jaxobs.ops.monitoring.lives.support.scenes import Process

EACH_HAS = ("LIVES",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One kind of ordinary life."""

    name: str
    """Lower case with hyphens: its jobs begin with it."""
    what: str
    """A phrase for a person."""
    processes: Callable[[], Iterable[Process]]
    minutes: int
    live: str = ""
    """The job of the live test that lives it with a real program."""


def lives() -> list[Life]:
    """All of them, by name."""
    return sorted((each for module in discovery.modules(__name__) for each in module.LIVES), key=lambda each: each.name)
