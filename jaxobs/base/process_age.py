"""Start times of processes, which identify them: the system uses numbers of processes again."""

from __future__ import annotations

import functools
import os
import time


def process_age(pid: int | str = "self") -> float | None:
    """Returns seconds since a process was started, to 10 ms; None if the system does not say, as any but Linux.

    A process that took the place of another by `exec` is as old as that one.
    """
    ticks = start_tick(pid)
    try:
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - (ticks or 0) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return None
    return age if ticks and age >= 0.0 else None


def start_tick(pid: int | str = "self") -> int | None:
    """Returns a process's start in ticks since the system booted; None if unknown, or it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            figures = file.read().rpartition(b")")[2].split()
        return None if figures[0] in (b"Z", b"X") else int(figures[19])
    except (OSError, ValueError, IndexError):
        return None


def started() -> float:
    """Returns this process's start in seconds since 1970: the same at each call, so that it identifies a restart."""
    return _started(os.getpid())


@functools.lru_cache(maxsize=1)
def _started(pid: int) -> float:
    return time.time() - (process_age() or 0.0)
