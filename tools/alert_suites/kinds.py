"""Kinds of lives and deaths as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tools.alert_suites.scenes import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A kind of ordinary life: nobody is paged for it, and no ticket is written."""

    name: str
    """Lower case with hyphens: its jobs begin with it."""
    what: str
    """A phrase for a person."""
    processes: Callable[[], Iterable[Process]]
    minutes: int
    live: str = ""
    """The job of the live test that lives it with a real program."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Series that no process has, as those of a Pushgateway, in promtool's notation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A kind of death or decay: what has to be noticed, by which alert, and how soon."""

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
    more: Mapping[str, str] = field(default_factory=dict)
    """Series that no process has."""
    also: tuple[str, ...] = ()
    """Alerts of which somebody is told as well, for they fire earlier, or on another job's behalf."""
    lasts: int = 0
    """Minutes for which it goes on, if longer than until somebody knows: nobody is told again."""

    @property
    def minutes(self) -> int:
        """Length of the scene."""
        return self.at + max(self.within, self.lasts)
