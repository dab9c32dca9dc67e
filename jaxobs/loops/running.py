"""Running: whether a thread of the program runs, or is blocked; and looks in the middle of what it does."""

import random
import time
from collections.abc import Callable
from threading import get_ident
from typing import TypeVar

from jaxobs.base import threads
from jaxobs.base.process import Processor

Seen = TypeVar("Seen")
MOST_THREADS = 4
BLOCKED, RUNS = 0.2, 0.8
"""A thread that ran for a smaller part since the last look is blocked, and one that ran for a larger part runs."""
PROBE_SECONDS = 0.001
"""Else it is looked whether the thread runs for so long."""
HELD_SECONDS = 0.00016
"""A thread that wakes so late, and had a processor, waited for Python's lock, which another thread held."""
NAPS = (0.005, 0.01, 0.02, 0.04)
"""Naps until another thread holds it again, at most, in seconds."""


class Running:
    """The processor's time of threads, as the clock's thread reads it between its looks."""

    def __init__(self) -> None:
        self._processors: dict[int, Processor] = {}
        self._own: Processor | None = None
        self._waited = 0.0
        """Seconds in which the clock's own thread waited for a processor."""

    def runs(self, thread: int, *, probe: bool) -> bool:
        """Returns whether a thread is in Python or in a library's code, and not blocked; true if unknown."""
        processor = self._processors.get(thread)
        if processor is None:
            if len(self._processors) >= MOST_THREADS:
                self._processors.clear()
            processor = self._processors[thread] = Processor(thread)
        share = processor.share()
        if probe and BLOCKED <= share <= RUNS:
            time.sleep(PROBE_SECONDS)  # what it did for so long says little of what it does now
            share = processor.share()
        return share > 0.5

    def interrupt(self, late: float, stopped: threads.Event, glance: Callable[[], Seen]) -> Seen | None:
        """Looks at the threads; lets them run on, and interrupts them, if the clock's thread waited for Python's lock.

        A thread ran Python when it was time for a look, and has released the lock since, to wait or to compute. So a
        look at once would see too many waits, and short work in Python hardly ever.

        Args:
          late: seconds by which the clock's thread woke late.
          stopped: set when there are no more looks.
          glance: looks at the threads; whatever is asked of the system before that would let them run on. If it returns
            None, there is nothing to see now.

        Returns:
          The result of the last glance.
        """
        seen = glance()
        if seen is not None and self._was_held(late):
            for most in NAPS:
                if stopped.is_set():
                    break
                late, seen = threads.nap(random.uniform(0.0, most)), glance()
                if self._was_held(late):
                    break
        return seen

    def _was_held(self, late: float) -> bool:
        self._own = self._own or Processor(get_ident())
        waited, self._waited = self._waited, self._own.waited()
        return late - (self._waited - waited) > HELD_SECONDS
