"""Threads of jaxobs, which nothing replaces; and waiting for the end of those that compute.

gevent and eventlet replace threads by greenlets. A greenlet that waits for a descriptor, or for a lock that is
older than the greenlets, stops the one thread that all of them share; and one that waits for a lock of theirs lets
others run, which call a function that JAX compiles for this one. So jaxobs' threads and locks are the system's.
"""

import _thread
import gc
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

if sys.version_info >= (3, 13):
    import _interpreters
elif sys.version_info >= (3, 12):
    import _xxsubinterpreters as _interpreters

PATIENCE = 0.5
MOST_PATIENCE = 10.0
SWITCH_SECONDS = 0.00005
"""Python's switch interval during a `nap`."""
LOOKS = 10
"""Number of looks at what the threads do, within the patience."""


def _original(module: Any, name: str) -> Any:
    """Function or class of a module as the interpreter has it."""
    found, monkey, patcher = getattr(module, name), *map(sys.modules.get, ("gevent.monkey", "eventlet.patcher"))
    if found.__module__ == module.__name__:
        return found
    if monkey is not None:
        return monkey.get_original(module.__name__, name)
    return getattr(patcher.original(module.__name__), name) if patcher is not None else found


start_new_thread: Callable[..., int] = _original(_thread, "start_new_thread")
"""Starts a thread of the operating system; see `_thread.start_new_thread`."""
Lock: Callable[[], _thread.LockType] = _original(_thread, "allocate_lock")
"""Makes a lock of the operating system's threads."""
_RLock: Callable[[], Any] = _original(_thread, "RLock")
Socket: type[socket.socket] = _original(socket, "socket")
"""Socket that any thread may use: those of greenlets belong to the thread that made them."""
_get_ident = _original(_thread, "get_ident")


_usual: float | None = None
"""The program's switch interval, during a `nap`."""


class RLock:
    """Reentrant lock of the operating system's threads; see `threading.RLock`.

    eventlet looks through all objects that have a `__dict__` and replaces each `threading.RLock` that they hold. An
    instance of this class has slots only, which hold the methods of the lock, so that `with` costs no call more.
    """

    __slots__ = ("__enter__", "__exit__", "acquire", "release")
    __enter__: Any
    __exit__: Any
    acquire: Callable[..., bool]
    release: Callable[[], None]

    def __init__(self) -> None:
        lock = _RLock()
        self.__enter__, self.__exit__, self.acquire, self.release = (
            lock.__enter__, lock.__exit__, lock.acquire, lock.release,
        )  # fmt: skip


@contextmanager
def current_frames() -> Iterator[dict[int, FrameType]]:
    """Gives the frames of all threads, for a block that goes through their stacks and keeps none.

    There are none next to other interpreters: from Python 3.12 on their memory is apart. Python 3.11 may collect
    garbage in the middle of `frame.f_back`, which makes an object. JAX's arrays that are freed then let the other
    threads run, and the frame that `f_back` was about to return is gone, which crashes the process. So nothing is
    collected meanwhile.
    """
    alone = sys.version_info < (3, 12) or len(_interpreters.list_all()) < 2
    with _collecting.paused():
        frames = sys._current_frames() if alone else {}
        try:
            yield frames
        finally:
            frames.clear()


class _Collecting:
    """Python's garbage collection, paused as long as any thread goes through stacks."""

    def __init__(self) -> None:
        self._lock = _RLock()
        self._pauses, self._paused = 0, False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Collects nothing during the block, on a Python that collects whenever it makes an object."""
        if sys.version_info >= (3, 12):
            yield
            return
        with self._lock:
            self._pauses += 1
            if gc.isenabled():
                self._paused = True
                gc.disable()
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                if not self._pauses:
                    self.resume()

    def resume(self) -> None:
        """Collects again, unless the program had turned collections off."""
        if self._paused:
            self._paused = False
            gc.enable()

    def after_fork(self) -> None:
        """In a forked child, which has no other thread."""
        self._lock, self._pauses = _RLock(), 0
        self.resume()


_collecting = _Collecting()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_collecting.after_fork)


class Event:
    """Flag that threads of the operating system wait for; see `threading.Event`."""

    def __init__(self) -> None:
        self._set = False
        self._waiting: list[_thread.LockType] = []

    def is_set(self) -> bool:
        """Returns whether the flag is set."""
        return self._set

    def set(self) -> None:
        """Sets the flag, and wakes all that wait."""
        self._set = True
        while self._waiting:
            with suppress(IndexError):  # another thread, or a signal's handler, has taken the last
                self._waiting.pop().release()

    def clear(self) -> None:
        """Takes the flag back."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the flag is set, `timeout` seconds at most; returns whether it is."""
        wakes = Lock()
        wakes.acquire()
        self._waiting.append(wakes)
        try:
            return self._set or wakes.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
        finally:
            with suppress(ValueError):  # it has been woken
                self._waiting.remove(wakes)


def nap(seconds: float) -> float:
    """Naps for some milliseconds with a short switch interval; returns the seconds by which the thread was late.

    A thread that wakes gets Python's lock when another thread releases it, which a thread does where it waits, or after
    the switch interval, 5 ms. Only with a short one the others are seen in the middle of what they do.
    """
    global _usual
    asleep, _usual = Lock(), sys.getswitchinterval()
    asleep.acquire()
    sys.setswitchinterval(min(_usual, SWITCH_SECONDS))
    try:
        began = time.perf_counter()
        asleep.acquire(timeout=seconds)
        return time.perf_counter() - began - seconds
    finally:
        _restore()


def _restore() -> None:
    """Sets the switch interval as it was, unless the program has set another."""
    global _usual
    if _usual is not None and abs(sys.getswitchinterval() - SWITCH_SECONDS) < 1e-6:  # Python keeps microseconds
        sys.setswitchinterval(_usual)
    _usual = None


class Thread(threading.Thread):
    """Thread of the operating system that does not keep the process alive."""

    def __init__(self, target: Callable[..., object], name: str, args: tuple[Any, ...] = ()) -> None:
        super().__init__(target=target, name=name, args=args, daemon=True)
        self._running: Any = None
        """Lock that is held until the thread ends, where greenlets have replaced threads."""

    def run(self) -> None:
        """Runs the target. The program's own tracing and profiling of threads ends here: it is for its threads."""
        sys.settrace(None)
        sys.setprofile(None)
        super().run()

    def start(self) -> None:
        """Starts the thread."""
        if _thread.start_new_thread is start_new_thread:
            super().start()
            return
        self._running = Lock()
        self._running.acquire()
        start_new_thread(self._run_really, ())

    def _run_really(self) -> None:
        self._ident = _get_ident()
        try:
            self.run()
        finally:
            self._running.release()

    def _delete(self) -> None:
        """Ends a thread that is older than the greenlets, which have given it another number meanwhile."""
        with suppress(KeyError):
            super()._delete()  # type: ignore[misc]

    def join(self, timeout: float | None = None) -> None:
        """Waits for the end of the thread, for `timeout` seconds at most."""
        if self._running is None:
            super().join(timeout)
        elif self._running.acquire(timeout=-1 if timeout is None else timeout):
            self._running.release()

    def is_alive(self) -> bool:
        """Returns whether the thread has begun and not ended."""
        return super().is_alive() if self._running is None else bool(self._running.locked())


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
    with suppress(OSError, ValueError, IndexError):  # no Linux, or a thread that has ended meanwhile
        for task in set(os.listdir("/proc/self/task")) - {str(threading.get_native_id())}:
            with open(f"/proc/self/task/{task}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] == b"R":
                    return True
    return False


def _computed(thread: threading.Thread) -> float:
    """Returns the seconds that a thread computed so far; 0 if the system does not say."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))  # type: ignore[arg-type]
    except (AttributeError, TypeError, OSError, OverflowError):  # no such clock, or it has not begun, or it has ended
        return 0.0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restore)
