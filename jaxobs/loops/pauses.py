"""Pauses between two bursts of calls that are seen."""

from collections.abc import Callable

from jaxobs.base import threads
from jaxobs.base.guard import guarded

PAUSE_SECONDS = 0.25
"""Between two bursts."""


class Pauses:
    """A thread that ends the pauses between bursts; it is started with the first."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._begun = threads.Event()
        self._stopped = threads.Event()
        # Reentrant: a signal handler of the program may call functions while this thread is in here.
        self._lock = threads.RLock()
        self._thread: threads.Thread | None = None

    def begin(self) -> None:
        """A pause begins, on any thread."""
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threads.Thread(target=self._run, name="jaxobs-found-loops")
                    self._thread.start()
        self._begun.set()

    def stop(self) -> None:
        """Ends no pause any more."""
        with self._lock:
            self._stopped.set()
        self._begun.set()

    def _run(self) -> None:
        while self._begun.wait() and not self._stopped.wait(PAUSE_SECONDS):
            with self._lock, guarded("seen_calls.pause"):
                if self._stopped.is_set():
                    return
                # Under the lock: `stop` sets the event behind it, and that must not be cleared.
                self._begun.clear()
                self._end()
