"""Uncaught exceptions: those that end the program, and those that a notebook or prompt shows and survives.

No hook is replaced: the interpreter keeps what it showed last, and is asked for it on the slow tick and at exit, while
the exception still holds the frames, and so the arrays, that memory ran out with.
"""

from __future__ import annotations

import atexit
import threading

from jaxobs import flight_recorder, user_errors
from jaxobs.guard import guard
from jaxobs.store import Store


class UncaughtExceptions:
    """The source: exceptions in, `error` and `out_of_memory` events out."""

    def __init__(self, store: Store) -> None:
        self._recorder = flight_recorder.of(store)

    def start(self) -> None:
        """Begins with the next exception. JAX is there by now: what is registered later runs before its clean-up."""
        error = user_errors.last_uncaught()
        if error is not None:
            self._recorder.ignore(error)
        atexit.register(self._at_exit)

    def stop(self) -> None:
        """Asks no more."""
        atexit.unregister(self._at_exit)

    def after_fork(self) -> None:
        """In a forked child: nothing was seen yet but what the parent saw."""
        self._recorder.after_fork()
        error = user_errors.last_uncaught()
        if error is not None:
            self._recorder.ignore(error)

    def sample(self) -> None:
        """Looks at what the user was shown last. The process ends by it if the main thread is over."""
        error = user_errors.last_uncaught()
        if error is not None:
            self._recorder.uncaught(error, ending=not threading.main_thread().is_alive())

    @guard("flight_recorder.exit")
    def _at_exit(self) -> None:
        self.sample()


def source(store: Store) -> UncaughtExceptions:
    """What the folder's discovery asks every source for."""
    return UncaughtExceptions(store)
