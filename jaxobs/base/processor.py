"""Time in which a thread ran, or could have run, by the operating system."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress


class Processor:
    """The processor's time of one thread of this process. On Linux with what the thread waited for a processor."""

    def __init__(self, ident: int) -> None:
        """`ident` is that of a thread which is alive."""
        native = next((each.native_id for each in threading.enumerate() if each.ident == ident), None)
        self._file = self._number = None
        with suppress(OSError):
            self._file = None if native is None else os.open(f"/proc/self/task/{native}/schedstat", os.O_RDONLY)
        if self._file is None and native is not None and hasattr(time, "pthread_getcpuclockid"):
            self._number = time.pthread_getcpuclockid(ident)
        self._last = self.used(), time.perf_counter()

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)

    def share(self) -> float:
        """Returns the part of the time since the last call in which the thread ran; 1 if the system does not say."""
        (used, asked), self._last = self._last, (self.used(), time.perf_counter())
        now, until = self._last
        return 1.0 if now is None else (now - (used or 0.0)) / max(1e-6, until - asked)

    def used(self) -> float | None:
        """Returns the seconds so far; None if the system does not say. Only while the thread is alive."""
        with suppress(OSError, ValueError):
            if self._file is not None:
                ran, waited, _ = os.pread(self._file, 80, 0).split()
                return (int(ran) + int(waited)) / 1e9
            if self._number is not None:
                return time.clock_gettime(self._number)
        return None
