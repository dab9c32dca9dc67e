"""The last words at SIGTERM, also while the main thread is stuck in C code, and then the death that SIGTERM brings.

A Python signal handler runs on the main thread between two bytecodes: not at all while XLA compiles for twenty minutes.
And what it interrupts may hold the very lock that the callback needs. So the callback has a thread of its own, and once
JAX is there a watcher reads the interpreter's wakeup descriptor, to act where the handler does not get its turn.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from jaxobs.base import threads
from jaxobs.base.descriptors import Kept
from jaxobs.base.guard import guarded
from jaxobs.base.import_hooks import when_imported

STUCK_SECONDS = 1.0
"""Seconds that a signal waits for its handler before the main thread counts as stuck."""
HOLD_SECONDS = 2.0
"""Seconds for which the handler blocks the program: the callback may wait for a lock that the program holds."""
GRACE_SECONDS = 5.0
"""Seconds that the callback may take; then the process dies without its end."""
_NOTICE_SECONDS = 0.05
_Pending = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def on_sigterm(callback: Callable[[], object]) -> Callable[[], None]:
    """Calls `callback` once when SIGTERM comes, on another thread; the process then dies of SIGTERM as it would have.

    Does nothing outside the main thread, and where SIGTERM is handled or ignored already. A handler that the program
    installs later takes the place of this one. Forked children have the default again.

    Returns:
      A function that undoes this. Off the main thread, which alone may change handlers, it takes the callback out.
    """
    global _watch
    if os.name != "posix" or not _on_main_thread():
        return lambda: None
    if _watch is not None and _watch.idle and _watch.is_installed():
        _watch.undo()
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return lambda: None
    _watch = _Watch(callback)
    return _watch.undo


class _Watch:
    """Our handler of SIGTERM and, once JAX is there, a watcher besides."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self.idle = False
        self._callback = callback
        self._heard = threads.Event()
        self._ending = threads.Lock()
        self._told = threads.Lock()
        self._told.acquire()
        self._pipe: tuple[Kept, Kept] | None = None
        self._forgets: object = None
        # One object for good: `self._handle` is a new one each time, and the handler is known by identity.
        self._handler = self._handle
        signal.signal(signal.SIGTERM, self._handler)
        when_imported("jax", self._watch_wakeups)

    def is_installed(self) -> bool:
        """Returns whether the program has left our handler where it was."""
        return signal.getsignal(signal.SIGTERM) is self._handler

    def undo(self) -> None:
        """Restores what was there before, unless the program has put something else there meanwhile."""
        self.idle, self._callback = True, _nothing
        if not _on_main_thread():
            return
        if self.is_installed():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._let_go_of_wakeups()
        if self._pipe is not None:
            (_, write_end), self._pipe = self._pipe, None
            write_end.close()

    def after_fork(self) -> None:
        """Starts again in the child, which has no watcher and shares the parent's pipe."""
        pipe = self._pipe
        self.undo()
        if pipe is not None:
            pipe[0].close()

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        self._heard.set()
        try:
            # Not a `Thread`: to start one takes a lock that the interrupted code may hold.
            threads.start_new_thread(self._end, ())
        except RuntimeError:  # the interpreter is finalizing
            _die()
        time.sleep(HOLD_SECONDS)

    def _end(self) -> None:
        if self._ending.acquire(blocking=False):
            threads.start_new_thread(self._tell, ())
            self._told.acquire(timeout=GRACE_SECONDS)
            _die()

    def _tell(self) -> None:
        try:
            with guarded("termination"):
                self._callback()
        finally:
            self._told.release()

    def _watch_wakeups(self) -> None:
        if self.idle or not _on_main_thread():
            return
        pipe = os.pipe()
        os.set_blocking(pipe[1], False)
        before = signal.set_wakeup_fd(pipe[1], warn_on_full_buffer=False)
        if before != -1:
            signal.set_wakeup_fd(before)
            for end in pipe:
                os.close(end)
            return
        self._pipe = Kept(pipe[0]), Kept(pipe[1])
        threads.Thread(target=self._read_wakeups, args=self._pipe, name="jaxobs-sigterm").start()
        # It warns of a wakeup descriptor that it did not set itself.
        when_imported("trio", self._let_go_of_wakeups)

    def _read_wakeups(self, read_end: Kept, write_end: Kept) -> None:
        while read_end.is_ours() and (signals := os.read(read_end.number, 4096)):
            if signal.SIGTERM in signals and self.is_installed():
                self._heard.wait(STUCK_SECONDS)
                if self.is_installed():
                    self._end()
            # Programs that live by signals (timers, profilers) are not to wake this thread for each of them.
            time.sleep(_NOTICE_SECONDS)
        if self._pipe is not None:  # the program has closed it: a signal would be written to a file of its own
            self._pipe, self._forgets = None, _Pending(lambda _: _set_no_wakeups(write_end.number))
            ctypes.pythonapi.Py_AddPendingCall(self._forgets, None)  # on the main thread
        read_end.close()

    def _let_go_of_wakeups(self) -> None:
        if self._pipe is not None and _on_main_thread():
            _set_no_wakeups(self._pipe[1].number)


def _set_no_wakeups(number: int) -> int:
    """Has signals written nowhere if they are to that descriptor."""
    current = signal.set_wakeup_fd(-1)
    if current not in (-1, number):
        with contextlib.suppress(OSError, ValueError):
            signal.set_wakeup_fd(current)
    return 0


def _nothing() -> None:
    pass


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _die() -> None:
    """Dies of SIGTERM, from any thread: `signal.signal` serves the main thread only."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    libc.signal(int(signal.SIGTERM), None)
    os.kill(os.getpid(), signal.SIGTERM)


_watch: _Watch | None = None
_masks = threading.local()


def _before_fork() -> None:
    """Holds SIGTERM back: a child hit by it before `_in_child` would forget it, having told the parent's watcher."""
    if _watch is not None and not _watch.idle:
        with guarded("termination.fork"):
            _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _in_parent() -> None:
    before, _masks.before = getattr(_masks, "before", None), None
    if before is not None:
        with guarded("termination.fork"):
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_child() -> None:
    global _watch
    if _watch is not None:
        with guarded("termination.fork"):
            _watch.after_fork()
        _watch = None
    _in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP end a command of ours through its `finally`s, with 128 and the signal's number."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    kinds = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {kind: signal.signal(kind, leave) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
