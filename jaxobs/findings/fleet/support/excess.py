"""A process that has a program more than another: is it only ahead, or did the other continue without it?"""

from __future__ import annotations

from dataclasses import dataclass

from jaxobs.findings.fleet.support.digest import Digest

FEWEST_STEPS = 2
"""Steps that the other makes beyond the count at which the first had the program."""
FOUND_STEPS, FOUND_SHARE = 20, 0.05
"""Steps and share that count where calls stand for the steps: some of them may not be seen."""


@dataclass(frozen=True, slots=True)
class _Mark:
    behind: int
    """Which process has fewer."""
    programs: int
    """Number of programs that it has."""
    steps: int
    """Steps that the process with more had made when this was first seen."""
    loop: str


class Excess:
    """Programs that one process has more than this one, or this one more than it."""

    def __init__(self) -> None:
        self._marks: dict[int, _Mark] = {}

    def see(self, own: Digest, other: Digest) -> bool:
        """Whether the one with fewer programs has been where the other was, and has not compiled what that had."""
        if own.programs == other.programs or own.loop != other.loop:
            self._marks.pop(other.process, None)
            return False
        if not (own.exact and other.exact):
            return False
        behind, ahead = (own, other) if own.programs < other.programs else (other, own)
        mark = self._marks.get(other.process)
        if mark is None or (mark.behind, mark.programs, mark.loop) != (behind.process, behind.programs, own.loop):
            self._marks[other.process] = _Mark(behind.process, behind.programs, ahead.steps, own.loop)
            return False
        fewest = max(FOUND_STEPS, FOUND_SHARE * mark.steps) if own.found or other.found else FEWEST_STEPS
        return behind.steps >= mark.steps + fewest
