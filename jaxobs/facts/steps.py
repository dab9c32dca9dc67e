"""Sampled steps, each with how the process was then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxobs.facts.events import Event
from jaxobs.facts.standing import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Event):
    """Steps of one loop: those of a sample interval together, and a slow one by itself."""

    kind: ClassVar[str] = "step"

    loop: str
    """Name of the loop, as in `jaxobs.step("train")`."""
    count: int
    """How many steps; 1 for a slow one."""
    last: int
    """Number of the last of them in its loop, from 1."""
    seconds: float
    """Total time of the steps. See `LoopState` for what counts as a step's."""
    least_seconds: float
    most_seconds: float
    median_seconds: float
    items: float | None = None
    """Samples or tokens in them; None if none were reported."""
    compilations: int = 0
    """Executables that were compiled or loaded in this time, by whatever function."""
    functions: tuple[str, ...] = ()
    """For a slow step: the functions that compiled in it, the longest compile first; at most a few."""
    slow: bool = False
    """True for a step that took far longer than is typical of its loop; it is in the other figures as well."""
    typical_seconds: float | None = None
    """For a slow step: the typical step time when it happened."""
    outside_seconds: float | None = None
    """For a slow step: how much of it passed before its scope began, for example while the program waited for input."""
    reason: str | None = None
    """For a slow step: what happened in it, as a sentence for a person."""
    standing: Standing | None = None
    """The state of the whole process: in the event log, with the first of these events and then once a minute."""
