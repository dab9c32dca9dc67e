"""Start times of processes, which identify them as numbers that are used again do not, and the time of processors."""

import functools
import os
import threading
import time
from contextlib import suppress

from jaxobs.base.descriptors import Kept


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


class Processor:
    """The processor's time of one thread of this process. On Linux with what the thread waited for a processor."""

    def __init__(self, ident: int) -> None:
        """`ident` is that of a thread which is alive."""
        native = next((each.native_id for each in threading.enumerate() if each.ident == ident), None)
        self._file = self._number = None
        with suppress(OSError):
            self._file = Kept(os.open(f"/proc/self/task/{native}/schedstat", os.O_RDONLY)) if native else None
        if self._file is None and native is not None and hasattr(time, "pthread_getcpuclockid"):
            self._number = time.pthread_getcpuclockid(ident)
        self._last = self.used(), time.perf_counter()

    def __del__(self) -> None:
        try:
            if self._file is not None:
                self._file.close()
        except BaseException:  # Python would print it; at the interpreter's end, our modules are gone
            pass

    def share(self) -> float:
        """Returns the part of the time since the last call in which the thread ran; 1 if the system does not say."""
        (used, asked), self._last = self._last, (self.used(), time.perf_counter())
        now, until = self._last
        return 1.0 if now is None else (now - (used or 0.0)) / max(1e-6, until - asked)

    def used(self) -> float | None:
        """Returns the seconds so far; None if the system does not say. Only while the thread is alive."""
        with suppress(OSError, ValueError):
            if self._file is not None:
                return sum(self._scheduled()) / 1e9
            if self._number is not None:
                return time.clock_gettime(self._number)
        return None

    def waited(self) -> float:
        """Returns the seconds so far in which the thread waited for a processor; 0 if the system does not say."""
        with suppress(OSError, ValueError):
            return self._scheduled()[1] / 1e9
        return 0.0

    def _scheduled(self) -> tuple[int, int]:
        """Returns the nanoseconds in which the thread ran, and in which it waited."""
        if self._file is None:
            return 0, 0
        ran, waited, _ = os.pread(self._file.number, 80, 0).split()
        return int(ran), int(waited)
