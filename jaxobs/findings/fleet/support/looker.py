"""A thread that looks at this process more often than the tick comes, and tells the others at once what cannot wait."""

from __future__ import annotations

from collections.abc import Callable

from jaxobs.base import threads
from jaxobs.base.guard import guarded

LOOK_SECONDS = 0.5
LOOKS_A_TICK = 10
REST_SECONDS = 0.25
"""At least between two tellings: what comes meanwhile is reported together."""
REST_PER_PROCESS = 0.001
"""Longer in large jobs: process 0 reads what all of them tell."""


class Looker:
    """Looks until it is stopped; a daemon thread that nobody waits for."""

    def __init__(self, interval: float, processes: int, look: Callable[[], None], tell: Callable[[], None]) -> None:
        """Begins.

        Args:
          interval: seconds between two ticks.
          processes: how many the job has.
          look: called at most `LOOK_SECONDS` after the last time.
          tell: called after `wake`.

        Raises:
          RuntimeError: the interpreter ends and refuses new threads.
        """
        self._every = min(LOOK_SECONDS, interval / LOOKS_A_TICK)
        self._rest = max(REST_SECONDS, processes * REST_PER_PROCESS)
        self._look, self._tell = look, tell
        self._woken, self._stopped = threads.Event(), threads.Event()
        threads.Thread(target=self._run, name="jaxobs-fleet-looks").start()

    def wake(self) -> None:
        """There is something to tell; the caller does not wait."""
        self._woken.set()

    def stop(self) -> None:
        """Looks and tells no more."""
        self._stopped.set()
        self._woken.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            if self._woken.wait(self._every):
                if self._stopped.is_set():
                    return
                self._woken.clear()
                with guarded("fleet.tell"):
                    self._tell()
                self._stopped.wait(self._rest)
            else:
                with guarded("fleet.look"):
                    self._look()
