"""The seconds that the charged thread spends in no scope, and what is known of them.

Other threads may trace or compile meanwhile: a server compiles on the threads that serve. And a sampler may see what
the charged thread does (see `jaxobs.loops.clock`). Each second at rest is drawn once: for the innermost phase that is
open on another thread, or else for the category that the sampler saw. Phases of several threads count once.
"""

from collections.abc import Callable, Iterable
from threading import get_ident

from jaxobs.base import threads

MOST_BEHIND = 3.0
"""Seconds for which the latest look of the sampler speaks at most."""


class _Open:
    """A phase under way."""

    __slots__ = ("category", "own", "phase", "thread")

    def __init__(self, phase: str, category: str) -> None:
        self.thread = get_ident()
        self.phase = phase
        self.category = category
        self.own = 0.0
        """Seconds drawn for it so far."""


class Rest:
    """Seconds that are drawn from those that the charged thread spent in no scope."""

    def __init__(self, resting: Callable[[], float]) -> None:
        """`resting` returns the seconds that the charged thread has spent in no scope so far."""
        self._resting = resting
        self._lock = threads.RLock()
        self._open: list[_Open] = []
        self.seen = 0.0
        """Seconds that `resting` returned when they were last drawn from."""
        self.drawn = 0.0
        """Seconds drawn from what `resting` counts."""
        self._given: dict[str, float] = {}
        self._now: str | None = None
        """Category that the sampler saw last."""

    @property
    def category(self) -> str | None:
        """The category that a second at rest counts for now; None if nothing is known of the second."""
        found = self._open[-1:]
        return found[0].category if found else self._now

    # ------------------------------------------------------------------------------------- phases of other threads

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

    # ------------------------------------------------------------------------------------- what a sampler sees

    def saw(self, category: str | None) -> float:
        """Draws the seconds at rest since the last draw for what the sampler sees; returns them.

        Args:
          category: None if the seconds must wait until more is known: then only what other threads do is drawn.
        """
        with self._lock:
            passed = max(0.0, self._resting() - self.seen)
            self._now = category
            if self._open:
                self._draw()
                return 0.0
            self.seen += passed
            if category is not None:
                self._take(category, passed)
            return passed

    def correct(self, was: str, now: str, seconds: float) -> None:
        """Seconds that were drawn for a category turned out to be of another."""
        with self._lock:
            self._give(was, -seconds)
            self._give(now, seconds)

    def settle_looks(self, seen: Iterable[tuple[str, float]], before: str | None) -> float:
        """A loop was found: what the sampler saw since the loop began is known now; returns the part that counts.

        Args:
          seen: category and seconds of looks since then.
          before: category of all that came earlier; None to leave that as it is.
        """
        with self._lock:
            found = list(seen)
            left, total = max(0.0, self.seen - self.drawn), sum(seconds for _, seconds in found)
            part = min(1.0, left / total) if total else 0.0  # some may have turned out to be of other categories
            for category, seconds in found:
                self._take(category, part * seconds)
            if before is not None and left > total:
                self._take(before, left - total)
            return part

    # ------------------------------------------------------------------------------------- what was drawn

    def settle(self, seconds: dict[str, float], root: str) -> None:
        """Moves what was drawn out of `root`, in `seconds` by category, for good; `resting` counts from 0 after it."""
        with self._lock:
            self._draw()
            self._move(seconds, root)
            self._given = {}
            for each in self._open:
                each.own = 0.0
            self.seen = self.drawn = 0.0

    def apply(self, seconds: dict[str, float], root: str, resting: float) -> None:
        """Moves what was drawn out of `root`'s `seconds`; `resting` was spent in no scope until then."""
        with self._lock:
            self._move(seconds, root)
            category, running = self.category, max(0.0, resting - self.seen)
            if category is not None and (self._open or running < MOST_BEHIND):
                seconds[root] -= running
                seconds[category] += running

    def _move(self, seconds: dict[str, float], root: str) -> None:
        seconds[root] -= self.drawn
        for name, value in self._given.items():
            seconds[name] += value

    def _draw(self) -> None:
        resting = self._resting()
        if resting > self.seen and self.category is not None:
            if self._open:
                self._open[-1].own += resting - self.seen
            self._take(self.category, resting - self.seen)
        self.seen = resting

    def _take(self, category: str, seconds: float) -> None:
        self.drawn += seconds
        self._give(category, seconds)

    def _give(self, category: str, seconds: float) -> None:
        self._given[category] = self._given.get(category, 0.0) + seconds
