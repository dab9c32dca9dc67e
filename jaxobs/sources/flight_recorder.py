"""Exceptions that end the program, that a notebook or prompt shows and survives, and out of memory that is caught.

No hook is replaced. The interpreter keeps what it showed last, and is asked for it on the slow tick and at exit, while
the exception still holds the frames, and so the arrays, that memory ran out with. From Python 3.12 on it also reports
exceptions that the program catches.
"""

import atexit
import threading

from jaxobs.base.guard import guard
from jaxobs.internals import caught_errors, code_events
from jaxobs.recorder import flight_recorder, user_errors
from jaxobs.state.store import Store

CAPABILITY = "caught_errors"
NO_NUMBER = (
    "Other tools use both free tool ids of sys.monitoring: out-of-memory errors that the program "
    "catches are detected in instrumented functions and compilations only."
)
TOO_MANY = (
    f"The program catches more than {caught_errors.MOST:,} exceptions between two samples. Later ones are "
    "ignored, so an out-of-memory error among them may go undetected."
)


class Exceptions:
    """The source: exceptions in, `error` and `out_of_memory` events out."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recorder = flight_recorder.of(store)
        self._caught: caught_errors.CaughtErrors | None = None
        self._watches = False
        self._shown: tuple[int, int] | None = None
        """Which exception was shown last when it was looked at: it and its traceback are kept until the next one."""

    def start(self) -> None:
        """Begins with the next exception. JAX is there by now: what is registered later runs before its clean-up."""
        error = user_errors.last_uncaught()
        if error is not None:
            self._recorder.ignore(error)
        self._shown = _identity(error)
        atexit.register(self._at_exit)
        if code_events.MONITORS and self._caught is None:
            self._caught = caught_errors.CaughtErrors(self._handled)
            self._watch()

    def _watch(self) -> None:
        if self._caught is not None and not self._watches:
            self._watches = self._caught.start()
            self._store.describe(capabilities={CAPABILITY: self._watches})
            if not self._watches:
                self._store.note(NO_NUMBER)

    def stop(self) -> None:
        """Asks no more."""
        atexit.unregister(self._at_exit)
        caught, self._caught, self._watches = self._caught, None, False
        if caught is not None:
            caught.stop()

    def after_fork(self) -> None:
        """In a forked child: nothing was seen yet but what the parent saw."""
        code_events.reset_lock()
        self._recorder.after_fork()
        error = user_errors.last_uncaught()
        if error is not None:
            self._recorder.ignore(error)
        self._shown = _identity(error)

    def sample(self) -> None:
        """Looks at what the user was shown last. The process ends by it if the main thread is over."""
        error = user_errors.last_uncaught()
        shown = _identity(error)
        if error is not None and shown != self._shown:
            self._recorder.uncaught(error, ending=not threading.main_thread().is_alive())
        self._shown = shown
        self._watch()
        if self._caught is not None and self._caught.refill():
            self._store.drop(CAPABILITY)
            self._store.note(TOO_MANY)

    @guard("flight_recorder.caught")
    def _handled(self, error: BaseException) -> None:
        self._recorder.saw(error)

    @guard("flight_recorder.exit")
    def _at_exit(self) -> None:
        self.sample()


def _identity(error: BaseException | None) -> tuple[int, int] | None:
    return None if error is None else (id(error), id(error.__traceback__))


source = Exceptions
