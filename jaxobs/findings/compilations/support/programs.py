"""Programs of one function that were recompiled although they had been compiled before.

A program is known by its fingerprint. One may be compiled twice for good reason: for another placement, or for a static
argument that makes no difference to it. It is a repetition only where the compilation names no difference from an
earlier signature, or none but shapes and types, each of which makes a program of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

from jaxobs.facts.compilations import Compilation

MOST_PROGRAMS = 32

_ITS_OWN = frozenset({"shape", "dtype"})


class Repetitions:
    """Counts how often each program of a function was recompiled; the least recent are forgotten."""

    def __init__(self, most: int = MOST_PROGRAMS) -> None:
        self._times: dict[str, int] = {}
        self._most = most

    def take(self, event: Compilation) -> str | None:
        """The program, if the compilation repeats it; None for a new one, and where programs are out of sight."""
        program = event.fingerprint
        if program is None:
            return None
        known = program in self._times
        repeats = known and event.cause != "first_call" and all(each.what in _ITS_OWN for each in event.changes)
        self._times[program] = self._times.pop(program, 0) + repeats
        if len(self._times) > self._most:
            del self._times[next(iter(self._times))]
        return program if repeats else None

    def several(self, least: int) -> int:
        """Returns how many programs were repeated at least so often."""
        return sum(times >= least for times in self._times.values())


Made = Callable[[str], int | None]
"""Calls of a function so far; None where they are not seen."""

LEAST_CALLS = 64
"""Calls without a new program after which the set may be closed."""
CALLS_EACH = 3
"""Calls for each program as well: of sizes that come as the data come, another new one would have been among them."""
REOPENED = 4
"""New programs of a closed set that show that it is not one: as many as show a pattern in the first place."""
GRID_CALLS = 3
"""Calls for each program from which on sizes that were rounded are buckets that are reused."""


@dataclass(slots=True)
class Reuse:
    """Calls and compilations of one case."""

    count: int = -1
    """Compilations of the case when the calls were counted."""
    calls: int = 0
    """The calls then."""
    closed_at: int | None = None
    """Compilations of the case when it was closed; None while it is open."""
    without: int = 0
    """Calls without a new program when it was closed."""

    def look(self, count: int, calls: int | None) -> bool:
        """Takes in how often the function was called; whether the set is closed by that."""
        if calls is None or self.closed_at is not None:
            return False
        if count != self.count or calls < self.calls:
            self.count, self.calls = count, calls
            return False
        self.without = calls - self.calls
        if self.without < max(LEAST_CALLS, CALLS_EACH * (count + 1)):
            return False
        self.closed_at = count
        return True

    def opened(self, count: int) -> bool:
        """Returns whether a closed set has grown so much that it is not one."""
        if self.closed_at is None or count - self.closed_at < REOPENED:
            return False
        self.closed_at, self.count = None, -1
        return True
