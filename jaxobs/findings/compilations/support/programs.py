"""Programs of one function that were recompiled although they had been compiled before.

A program is known by its fingerprint. One may be compiled twice for good reason: for another placement, or for a static
argument that makes no difference to it. It is a repetition only where the compilation names no difference from an
earlier signature, or none but shapes and types, each of which makes a program of its own.
"""

from __future__ import annotations

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
