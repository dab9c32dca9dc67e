"""Waiting for threads of ours to end, at the program's end, without waiting for one that hangs."""

from __future__ import annotations

import threading
import time

PATIENCE = 0.5
MOST_PATIENCE = 10.0


def join(thread: threading.Thread) -> None:
    """Waits for a thread to end: as long as it computes, up to 10 s, and no longer than a second if it hangs.

    One that computes must not be left in JAX at the interpreter's exit: before 3.14 CPython ends a daemon thread that
    asks for the interpreter's lock then, by unwinding its stack, and where C++ frames lie on it that aborts the process
    (https://github.com/python/cpython/issues/87135).
    """
    until, computed = time.monotonic() + MOST_PATIENCE, -1.0
    while thread.is_alive() and time.monotonic() < until:
        before, computed = computed, _computed(thread)
        if computed == before:
            return
        thread.join(timeout=PATIENCE)


def _computed(thread: threading.Thread) -> float:
    """Seconds that it computed so far; 0 where the system does not tell."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    if clock is None or thread.ident is None:
        return 0.0
    try:
        return time.clock_gettime(clock(thread.ident))
    except (OSError, OverflowError):  # it has ended
        return 0.0
