"""Events that JAX reports to a listener of its own tests (`util.test_event`): the transfers and calls behind them.

JAX has one place for such a listener. All of ours share it, and a listener of somebody else keeps being called.
"""

import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, ClassVar

from jaxobs.base import threads
from jaxobs.base.guard import guarded

Listener = Callable[[str, FrameType], None]
"""Called with the name of an event and the frame of the code that reports it, on the thread that runs the code."""


def reports(code: CodeType | None) -> bool:
    """Returns whether code of JAX reports events here."""
    from jax._src import util

    return code is not None and "test_event" in code.co_names and hasattr(util, "test_event_listener")


def listen(name: str, code: CodeType, listener: Listener) -> None:
    """Calls the listener for the events of this code whose names begin with `name`. Idempotent.

    Callers repeat the call now and then, because JAX's test utilities take the place.
    """
    from jax._src import util

    with _Listening.lock:
        _Listening.ours = {**_Listening.ours, (name, code): listener}
        if util.test_event_listener != _told:
            _Listening.before = util.test_event_listener
            util.test_event_listener = _told


def unlisten(listener: Listener) -> None:
    """Calls the listener no more; with the last listener, what was there before has the place again."""
    from jax._src import util

    with _Listening.lock:
        _Listening.ours = {key: each for key, each in _Listening.ours.items() if each != listener}
        if not _Listening.ours and util.test_event_listener == _told:
            util.test_event_listener = _Listening.before


class _Listening:
    lock = threads.RLock()
    ours: ClassVar[dict[tuple[str, CodeType], Listener]] = {}
    """Never changed in place: other threads go through it."""
    before: Any = None
    """The listener that JAX reported its events to before."""


class _Thread(threading.local):
    handing_on = False
    """Whether the listener of somebody else is being called."""


_this_thread = _Thread()


def _told(name: str, *args: Any) -> None:
    if _this_thread.handing_on:  # whoever took our place, and was listened to in turn, hands on to us
        return
    before = _Listening.before
    if before is not None:
        _this_thread.handing_on = True
        try:
            before(name, *args)
        finally:
            _this_thread.handing_on = False
    for (prefix, code), listener in _Listening.ours.items():
        if name.startswith(prefix):
            with guarded("jax_test_events"):
                frame = sys._getframe(2)
                if frame.f_code is code:
                    listener(name, frame)


def _after_fork() -> None:
    _Listening.lock = threads.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
