"""Work on a disk that may not answer: on a thread of its own, waited for so long and no longer."""

import errno
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

from jaxobs.base import threads

T = TypeVar("T")


class Patience:
    """Does one piece of work at a time. While one hangs, the next ones fail at once."""

    def __init__(self, seconds: float) -> None:
        """`seconds` is how long each piece is waited for."""
        self._seconds = seconds
        self._hanging: _Work | None = None

    def do(self, work: Callable[[], T]) -> T:
        """Returns the result of `work`, or its exception; raises `TimeoutError` while it or the piece before lasts."""
        if self.hangs and self._hanging is not None:
            raise _no_answer(time.monotonic() - self._hanging.began)
        self._hanging = None
        piece = _Work(work)
        try:
            # Not a `Thread`: to start one takes a lock that the code which a signal interrupted may hold.
            threads.start_new_thread(piece.run, ())
        except (RuntimeError, MemoryError):  # the interpreter is finalizing, or there is no room for a stack
            return work()
        if not piece.over.acquire(timeout=self._seconds):
            self._hanging = piece
            raise _no_answer(self._seconds)
        if piece.error is not None:
            raise piece.error
        result: T = piece.result
        return result

    @property
    def hangs(self) -> bool:
        """Whether a piece of work has not come to an end yet."""
        hanging = self._hanging
        # A forked child does not have the thread that hangs.
        return hanging is not None and hanging.over.locked() and hanging.process == os.getpid()


class _Work:
    def __init__(self, work: Callable[[], Any]) -> None:
        self.began = time.monotonic()
        self.process = os.getpid()
        self.result: Any = None
        self.error: Exception | None = None
        self.over = threads.Lock()
        self.over.acquire()
        self._work = work

    def run(self) -> None:
        try:
            self.result = self._work()
        except Exception as error:
            self.error = error
        finally:
            self.over.release()


def _no_answer(seconds: float) -> TimeoutError:
    return TimeoutError(errno.ETIMEDOUT, f"the disk has not answered for {seconds:.0f} s")
