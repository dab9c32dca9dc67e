"""State that the threads of the agent share, under one lock."""

from dataclasses import dataclass, field

from jaxobs.ops.agent.incidents import Incident
from jaxobs.ops.agent.report import Report

AGAIN = 10.0
"""Seconds until something that failed is tried again; longer each time."""
LONGEST_PAUSE = 300.0


@dataclass(slots=True)
class Failing:
    """Failed work, and when it is tried again."""

    attempts: int = 0
    until: float = 0.0

    def again(self, now: float) -> None:
        """Notes another failure."""
        self.attempts += 1
        self.until = now + min(LONGEST_PAUSE, AGAIN * 2 ** (self.attempts - 1))


@dataclass(slots=True)
class Board:
    """Open incidents, and what is in work or waits."""

    open: dict[str, Incident] = field(default_factory=dict)
    """Open incidents by the key of the subject."""
    busy: set[str] = field(default_factory=set)
    """Keys that a worker has."""
    stale: set[str] = field(default_factory=set)
    """Keys whose report has old counts."""
    unkept: set[str] = field(default_factory=set)
    """Keys whose state is not written, because too much was."""
    keep_again_at: float = 0.0
    unwritten: dict[str, Report] = field(default_factory=dict)
    """Reports by id for which there was no room."""
    failing: dict[str, Failing] = field(default_factory=dict)
    """Failed work by key of the subject."""
    write_again_at: float = 0.0
