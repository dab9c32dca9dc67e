"""Traces that jaxobs takes by itself, so that nobody else's fails by them.

JAX's profiler has room for one trace in a process. A second one begins all the same, and fails when it is stopped. So
while ours runs, we hold the lock by which JAX keeps its own traces apart: `jax.profiler.start_trace` then waits, and
whoever polls `has_waiters` ends ours at once. A trace of ours leaves no file.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import FrameType
from typing import Any

from jaxobs.base import threads
from jaxobs.base.guard import guarded
from jaxobs.internals.tracing import running_trace

MARK = "jaxobs: sample"
"""Name of the event that a trace of ours begins with."""

_mutex = threads.RLock()
_hooked = False


class ShortTrace:
    """A trace under way."""

    latest: ShortTrace | None = None

    def __init__(self, session: Any, lock: Any) -> None:
        self._session = session
        self._lock = lock
        self._data: bytes | None = None
        self._ended = False
        self.began = time.perf_counter()
        """Begin of the first event, by `perf_counter`."""
        _mark()

    def has_waiters(self, frames: dict[int, FrameType]) -> bool:
        """Returns whether a thread waits for a trace to end or to begin its own, by the threads' `frames`."""
        own = threading.get_ident()
        codes = [each.f_code for thread, each in frames.items() if thread != own]
        return any(each.co_name in _LOCKING and each.co_filename.endswith(_FILE) for each in codes)

    def end(self) -> bytes | None:
        """Ends it; what it recorded, in the form of `*.xplane.pb`. None where a fork of the process has ended it."""
        with _mutex:
            self._end()
            data, self._data = self._data, None
            return data

    def _end(self, *, keep: bool = True) -> None:
        if self._ended:
            return
        self._ended = True
        try:
            if keep:
                _mark()
            data = self._session.stop()
            self._data = data if keep else None
        finally:
            self._session = None
            ShortTrace.latest = None
            self._lock.release()


_FILE = os.path.join("jax", "_src", "profiler.py")
_LOCKING = frozenset(("start", "start_trace", "stop", "stop_trace", "stop_and_get_fdo_profile", "trace"))
"""Functions there that take the lock; others run in steps, such as those of annotations."""


def can_record() -> bool:
    """Returns whether this JAX lets us: from 0.7 on. Before, Python's calls cannot be left out. Changes nothing."""
    if not hasattr(_profiler(), "ProfileData"):
        return False
    library, lock = _library(), getattr(getattr(_profiler(), "_profile_state", None), "lock", None)
    has_options = hasattr(getattr(library, "ProfileOptions", None), "python_tracer_level")
    return has_options and hasattr(getattr(library, "ProfilerSession", None), "stop") and hasattr(lock, "acquire")


def obstacle() -> str | None:
    """Returns the obstacle to a recording as part of a sentence: a trace of the program's could fail by it."""
    if getattr(_profiler(), "_profiler_server", None) is not None:
        return "the program runs a profiler server (`jax.profiler.start_server`), whose captures could fail"
    config = sys.modules.get("jax._src.config")
    if getattr(getattr(config, "enable_pgle", None), "value", False):
        return "profile-guided optimization (`jax_enable_pgle`) takes traces of its own"
    return None


def begin(*, programs: bool) -> ShortTrace | None:
    """Begins a trace, with the programs that ran in it if `programs` is set; None if one is running."""
    global _hooked
    with _mutex:
        lock = _profiler()._profile_state.lock
        if not lock.acquire(blocking=False):
            return None
        try:
            if running_trace() is not None:
                lock.release()
                return None
            if not _hooked and hasattr(os, "register_at_fork"):
                _hooked = True
                os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
            trace = ShortTrace.latest = ShortTrace(_begin(programs), lock)
        except BaseException:
            lock.release()
            raise
        return trace


def _begin(programs: bool) -> Any:
    library = _library()
    options = library.ProfileOptions()
    options.python_tracer_level = 0
    options.enable_hlo_proto = programs
    return library.ProfilerSession(options)


def _mark() -> None:
    import jax

    with jax.profiler.TraceAnnotation(MARK):
        pass


def _profiler() -> Any:
    return sys.modules.get("jax._src.profiler")


def _library() -> Any:
    return getattr(_profiler(), "_profiler", None)


def _before_fork() -> None:
    """The child would have a profiler that records and that nobody ends, and a lock that nobody holds."""
    _mutex.acquire()
    with guarded("short_traces.fork"):
        if ShortTrace.latest is not None:
            ShortTrace.latest._end(keep=False)
    _mutex.release()


def _after_fork() -> None:
    global _mutex
    _mutex = threads.RLock()
