"""The one wall between our failures and the user's program.

Every entry from JAX or user code into jaxobs passes through a guard: what we raise is counted by
place, logged once for each place, and swallowed. Under our own tests it is raised instead, so
that a failure is never hidden from those who can fix it. What a handler of the program's for a signal raises, such as a
timeout, passes: it only happened to be our code that the signal interrupted.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, TypeVar

from jaxobs.base import threads

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger("jaxobs")

# Reentrant: a signal handler of the program may call into jaxobs while this thread is in here.
_lock = threads.RLock()
_errors: Counter[str] = Counter()
_latest: dict[str, tuple[float, float, str]] = {}
_MOST_TEXT = 300
_LACKS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_raise_errors = bool(os.environ.get("JAXOBS_RAISE_INTERNAL_ERRORS"))


def internal_error(where: str, error: BaseException, path: str | None = None) -> None:
    """Counts a failure of ours at `where`; logs the first one of each place with its traceback.

    Args:
      path: the file, for errors of the system that do not name it.
    """
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = path
    with _lock:
        _errors[where] += 1
        first = _errors[where] == 1
        with guarded(None):
            now = time.time()
            since = _latest[where][0] if where in _latest else now
            _latest[where] = since, now, f"{type(error).__name__}: {error}"[:_MOST_TEXT]
    if first:
        _log(where, error)


def _log(where: str, error: BaseException) -> None:
    # A process without memory or descriptors reports that itself. A system that refuses is no fault of the code.
    lacks = isinstance(error, MemoryError) or getattr(error, "errno", None) in _LACKS
    # The program's own handlers and filters run here, and they may raise.
    with guarded(None):
        logger.log(
            logging.DEBUG if lacks else logging.WARNING,
            "jaxobs failed in `%s` and continues without it (%s: %s). Your program is not affected; "
            "further failures there are only counted, in jaxobs_internal_errors_total.",
            where, type(error).__name__, error, exc_info=None if isinstance(error, OSError) else error,
        )  # fmt: skip


def internal_errors() -> dict[str, int]:
    """How often jaxobs itself failed, by place."""
    with _lock:
        return dict(_errors)


def latest_errors() -> dict[str, tuple[float, float, str]]:
    """Returns the times of the first and the latest failure of jaxobs itself, and the latest in words, by place."""
    with _lock:
        return dict(_latest)


def reset() -> None:
    """Forgets the counted errors, with a fresh lock: for tests and for a forked child."""
    global _lock
    _lock = threads.RLock()
    _errors.clear()
    _latest.clear()


def raise_internal_errors(on: bool) -> None:
    """Whether a guarded failure is raised as well as counted (our own tests want that)."""
    global _raise_errors
    _raise_errors = on


def _passes(error: BaseException, own: int) -> bool:
    """Returns whether an exception interrupted us, or ends the program without code that we call having raised it.

    Args:
      own: number of the frames, from the guard on, that are ours.
    """
    frames = [frame for frame, _line in traceback.walk_tb(error.__traceback__)]
    called = [not str(frame.f_globals.get("__name__")).startswith("jaxobs") for frame in frames]
    if any(called[number] and _handles(frames[number], frames[number - 1]) for number in range(1, len(frames))):
        return True
    interrupts = isinstance(error, KeyboardInterrupt | GeneratorExit)
    return interrupts or not (isinstance(error, Exception) or any(called[own:]))


def _handles(frame: FrameType, interrupted: FrameType) -> bool:
    """Returns whether a frame is that of a signal's handler: Python gives it the frame that it interrupts."""
    given = frame.f_locals.values()
    return any(each is interrupted for value in given for each in (value if type(value) is tuple else (value,)))


class guarded:  # noqa: N801 - read as a word: `with guarded("place"):`
    """Swallows and counts whatever the block raises; without a place it is not counted."""

    __slots__ = ("_where",)

    def __init__(self, where: str | None) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> bool:
        if error is None or _passes(error, 1):
            return False
        if self._where is not None:
            internal_error(self._where, error)
        return self._where is None or not _raise_errors


def guard(where: str) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """Decorator: the function returns None instead of raising, and the failure is counted."""

    def decorate(fun: Callable[P, R]) -> Callable[P, R | None]:
        @functools.wraps(fun)
        def call(*args: P.args, **kwargs: P.kwargs) -> R | None:
            try:  # not `guarded`, which is three calls more
                return fun(*args, **kwargs)
            except BaseException as error:
                if _passes(error, 2):
                    raise
                internal_error(where, error)
                if _raise_errors:
                    raise
                return None

        return call

    return decorate
