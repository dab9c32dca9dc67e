"""Captures at SIGUSR2, as the setting `capture_signal` asks: unless told otherwise both, where the program leaves the
signal alone, which would end it.

The handler starts a thread and calls the handler that was there before: it may have interrupted code that holds any
lock, so it does nothing else. It comes when the main thread next runs Python, not inside a long compilation.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from jaxobs import internals
from jaxobs.actions.capturing import runner
from jaxobs.base import threads
from jaxobs.base.guard import guarded
from jaxobs.state.store import Store

NUMBER = getattr(signal, "SIGUSR2", None)

_AT = {"auto": ("memory", "profile"), "both": ("memory", "profile"), "memory": ("memory",), "profile": ("profile",)}
_PATIENCE = 60.0
"""Seconds that one capture waits for the one before."""


def watch(store: Store, setting: str) -> Callable[[], None]:
    """Captures at each SIGUSR2 from now on what `capture_signal` says.

    With `auto` only if nobody handles it. With the others a handler of the program's own is called as well; one in
    C, as `faulthandler.register` makes, is left alone, and then nothing is watched.

    Returns:
      A function that undoes this: it puts back what was there, unless the program has put something else there since.
    """
    if setting not in _AT or NUMBER is None:
        return lambda: None
    if setting == "auto" and not _is_free(NUMBER):
        return lambda: None
    if threading.current_thread() is not threading.main_thread():
        return _declined(store, "`install` was not called on the main thread, the only one that may handle signals")
    before = signal.getsignal(NUMBER)
    if before is None or (before in (signal.SIG_DFL, signal.SIG_IGN) and _caught_in_c(NUMBER)):
        return _declined(store, "something other than Python already handles it (`faulthandler.register`?)")
    return _Watch(store, _AT[setting], before).undo


def _is_free(number: int) -> bool:
    """Returns whether the signal would end the program, and we may handle it."""
    on_main = threading.current_thread() is threading.main_thread()
    return on_main and signal.getsignal(number) is signal.SIG_DFL and not _caught_in_c(number)


def _declined(store: Store, why: str) -> Callable[[], None]:
    store.warn(f"`capture_signal` is set, but SIGUSR2 is not handled: {why}.")
    return lambda: None


def _caught_in_c(number: int) -> bool:
    """Returns whether the kernel knows of a handler where Python knows of none; only Linux tells."""
    with (
        contextlib.suppress(OSError, ValueError),
        open("/proc/self/status", encoding="ascii", errors="replace") as file,
    ):
        for line in file:
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


class _Watch:
    """Our handler of SIGUSR2."""

    def __init__(
        self, store: Store, actions: tuple[str, ...], before: Callable[[int, FrameType | None], object] | int
    ) -> None:
        self._store = store
        self._actions = actions
        self._before = before
        self._process = os.getpid()
        # One object for good: `self._handle` is a new one each time, and the handler is known by identity.
        self._handler = self._handle
        assert NUMBER is not None
        signal.signal(NUMBER, self._handler)

    def undo(self) -> None:
        """Puts back what was there; off the main thread, which alone may, only what was there is called from now on."""
        self._actions = ()
        assert NUMBER is not None
        on_main = threading.current_thread() is threading.main_thread()
        if on_main and signal.getsignal(NUMBER) is self._handler:
            signal.signal(NUMBER, self._before)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        # A forked child that does not use JAX has no part in it: it does not even die of what its group was sent.
        concerned = os.getpid() == self._process or (internals.backends_awake() and not self._store.orphan)
        if self._actions and concerned:
            # Not a `Thread`: to start one takes a lock that the interrupted code may hold.
            with contextlib.suppress(RuntimeError):  # the interpreter is finalizing
                threads.start_new_thread(self._capture, (self._actions,))
        if callable(self._before):
            self._before(signum, frame)

    def _capture(self, actions: tuple[str, ...]) -> None:
        with guarded("capture_signal"):
            for action in actions:
                runner.of(self._store).begin(action, {}, "signal", waits=False).wait(_PATIENCE)
