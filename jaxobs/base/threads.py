"""Waiting for threads of ours to end, at the program's end, without waiting for one that hangs."""

from __future__ import annotations

import os
import threading
import time

PATIENCE = 0.5
MOST_PATIENCE = 10.0
LOOKS = 10
"""Number of looks at what the threads do, within the patience."""


def join(thread: threading.Thread) -> None:
    """Waits for a thread to end: as long as it computes, up to 10 s, and no longer than a second if it hangs.

    One that computes must not be left in JAX at the interpreter's exit: before 3.14 CPython ends a daemon thread that
    asks for the interpreter's lock then, by unwinding its stack, and where C++ frames lie on it that aborts the process
    (https://github.com/python/cpython/issues/87135). On a busy machine it may get no time for long: a thread that
    could run, or another one that runs for it, such as one of XLA's, doesn't show a hang.
    """
    until, computed = time.monotonic() + MOST_PATIENCE, -1.0
    while thread.is_alive() and time.monotonic() < until:
        before, computed = computed, _computed(thread)
        runs = False
        for _ in range(LOOKS):
            thread.join(timeout=PATIENCE / LOOKS)
            runs = runs or _others_run()
        if computed == before and not runs:
            return


def _others_run() -> bool:
    """Returns whether another thread of this process runs or could run; False if the system does not say."""
    own = threading.get_native_id()
    try:
        for task in os.listdir("/proc/self/task"):
            if int(task) == own:
                continue
            with open(f"/proc/self/task/{task}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] == b"R":
                    return True
    except (OSError, ValueError, IndexError):  # no Linux, or a thread that has ended meanwhile
        return False
    return False


def _computed(thread: threading.Thread) -> float:
    """Returns the seconds that a thread computed so far; 0 if the system does not say."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    if clock is None or thread.ident is None:
        return 0.0
    try:
        return time.clock_gettime(clock(thread.ident))
    except (OSError, OverflowError):  # it has ended
        return 0.0
