"""Totals that only grow, as they grew within the latest minutes."""

from collections import deque
from collections.abc import Mapping

from jaxobs.base import threads

SECONDS = 600.0
"""Seconds of the latest minutes."""
MARKS = 60
"""Moments in them at which the totals are kept."""


class Lately:
    """Totals as they were in the latest minutes. Whoever asks for them marks the moment, too."""

    def __init__(self, began: float) -> None:
        """`began` is the moment at which all totals were 0, by the clock of `added`."""
        # Reentrant: a signal handler of the program may ask while this thread does.
        self._lock = threads.RLock()
        self._marks: deque[tuple[float, Mapping[str, float]]] = deque([(began, {})], MARKS + 1)

    def added(self, now: float, totals: Mapping[str, float], span: float = SECONDS) -> tuple[float, dict[str, float]]:
        """Returns the length of the latest window in seconds, and what was added to each total in it.

        The window is at most a mark longer than `span`, and all the time there is where that is less. What was taken
        from a total, as a correction does, counts as nothing added.
        """
        with self._lock:
            before = [mark for mark in self._marks if mark[0] <= now - span]
            when, earlier = before[-1] if before else self._marks[0]
            if now - self._marks[-1][0] >= SECONDS / MARKS:
                self._marks.append((now, dict(totals)))
        return now - when, {name: max(0.0, total - earlier.get(name, 0.0)) for name, total in totals.items()}
