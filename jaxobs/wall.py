"""Where the time went: every second of the thread that runs the program, in exactly one category.

Whoever sees something begin and end (a step, a wait for input, an evaluation, a checkpoint) enters and leaves its
category; the innermost counts. What is known only afterwards, as a compilation is, is moved out of the category that
was charged meanwhile. So the categories add up to the wall time since the start, whatever is entered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from jaxobs.facts import TIME_CATEGORIES


class Wall:
    """The account of one process. One thread is charged: the main one, unless another makes steps first.

    Its own methods cost well under a microsecond, and take no lock: only the charged thread writes.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.thread = threading.main_thread().ident
        """The thread that is charged."""
        self.began = self._last = clock()
        self._open: list[str] = []
        self._before = "init"
        """What counts outside of everything: `init` until something was entered, then `idle`."""
        self._seconds = dict.fromkeys(TIME_CATEGORIES, 0.0)

    def enter(self, category: str) -> bool:
        """A category begins on this thread; whether it is the one that is charged. `leave` only where it is."""
        if threading.get_ident() != self.thread:
            return False
        self._charge()
        self._open.append(category)
        self._before = "idle"
        return True

    def leave(self) -> None:
        """The innermost category ends."""
        self._charge()
        if self._open:
            self._open.pop()

    def move(self, category: str, seconds: float) -> None:
        """Some of the time just charged on this thread was of another category: a compilation that has ended."""
        if threading.get_ident() != self.thread:
            return
        self._charge()
        current = self.category
        moved = min(seconds, self._seconds[current])
        self._seconds[current] -= moved
        self._seconds[category] += moved

    @property
    def category(self) -> str:
        """What is charged now."""
        return self._open[-1] if self._open else self._before

    def seconds(self) -> dict[str, float]:
        """Seconds so far by category; together they are the wall time since `began`."""
        found, category, last = dict(self._seconds), self.category, self._last
        found[category] += max(0.0, self._clock() - last)
        return found

    def _charge(self) -> None:
        now = self._clock()
        self._seconds[self._open[-1] if self._open else self._before] += now - self._last
        self._last = now
