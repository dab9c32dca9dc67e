"""Work of JAX on threads that are not charged, while the charged thread is in no category.

A server compiles on the threads that serve, a trainer may warm up in the background. Of a second in which the charged
thread is in no category, that is what is known. Phases of several threads at once are counted once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from threading import get_ident


class _Open:
    """A phase under way."""

    __slots__ = ("category", "own", "phase", "thread")

    def __init__(self, phase: str, category: str) -> None:
        self.thread = get_ident()
        self.phase = phase
        self.category = category
        self.own = 0.0
        """Seconds drawn for it so far."""


class OtherThreads:
    """Seconds that are drawn from what the charged thread spent in no category."""

    def __init__(self, resting: Callable[[], float]) -> None:
        """`resting` returns the seconds that the charged thread has spent in no category so far."""
        self._resting = resting
        self._lock = threading.RLock()
        self._open: list[_Open] = []
        self.seen = 0.0
        """Seconds that `resting` returned when they were last drawn from."""
        self.drawn = 0.0
        """Seconds drawn from what `resting` counts."""
        self._given: dict[str, float] = {}

    @property
    def category(self) -> str | None:
        """The category of the phase that is under way; None if there is none."""
        found = self._open[-1:]
        return found[0].category if found else None

    def began(self, phase: str, category: str) -> None:
        """A phase begins on this thread."""
        with self._lock:
            self._draw()
            self._open.append(_Open(phase, category))

    def ended(self, phase: str, category: str, seconds: float) -> None:
        """The innermost phase of that name on this thread has ended; `category` is what it turned out to be."""
        with self._lock:
            ident = get_ident()
            for phase_open in reversed(self._open):
                if phase_open.thread == ident and phase_open.phase == phase:
                    self._draw()
                    self._open.remove(phase_open)
                    if category != phase_open.category:
                        self._give(phase_open.category, -phase_open.own)
                        self._give(category, phase_open.own)
                    return
            resting = self._resting()  # before JAX 0.6.1 none is seen to begin
            if not self._open and resting > self.seen:
                self._take(category, min(seconds, resting - self.seen))
            self.seen = resting

    def nothing_open(self, *, here: bool = False) -> None:
        """The ends of open phases were lost, or, `here`, this thread is charged from now on."""
        with self._lock:
            self._draw()
            self._open = [each for each in self._open if here and each.thread != get_ident()]

    def settle(self, seconds: dict[str, float], root: str) -> None:
        """Moves what was drawn out of `root`, in `seconds` by category, for good; `resting` counts from 0 after it."""
        with self._lock:
            self._draw()
            seconds[root] -= self.drawn
            for name, value in self._given.items():
                seconds[name] += value
            self._given = {}
            for each in self._open:
                each.own = 0.0
            self.seen = self.drawn = 0.0

    def apply(self, seconds: dict[str, float], root: str, resting: float) -> None:
        """Moves what was drawn out of `root`'s `seconds`; `resting` was spent in no category until then."""
        with self._lock:
            running = max(0.0, resting - self.seen) if self._open else 0.0
            seconds[root] -= self.drawn + running
            for name, value in self._given.items():
                seconds[name] += value
            if self._open:
                seconds[self._open[-1].category] += running

    def _draw(self) -> None:
        resting = self._resting()
        if self._open and resting > self.seen:
            innermost = self._open[-1]
            innermost.own += resting - self.seen
            self._take(innermost.category, resting - self.seen)
        self.seen = resting

    def _take(self, category: str, seconds: float) -> None:
        self.drawn += seconds
        self._give(category, seconds)

    def _give(self, category: str, seconds: float) -> None:
        self._given[category] = self._given.get(category, 0.0) + seconds
