"""Whether a function that compiled for many sizes is done with that: a set that is closed, or a grid of buckets.

A pattern sees compilations only. How often a function was called tells how its programs are used: a program for each
call is what a pattern is about, and calls upon calls without a new one are what a bounded set looks like in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
