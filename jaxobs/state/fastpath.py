"""Calls of instrumented functions that JAX dispatched from Python though nothing compiled: counted, with the cause.

Such a call costs 50 to 200 microseconds more than one on the fast path. From Python 3.12 on every one is seen.

On Python 3.11 those are seen that are timed: a function's first 1,024 calls, then some of each sample interval, and all
of them once one was seen whose cause goes on call after call, for as long as that lasts. So counts are a lower bound
there, and exact for a function that loses the fast path for good from when that is first seen.

Functions of `jax.jit` are watched; from Python 3.12 on also callables that hold one, as those of `nnx.jit` and
`eqx.filter_jit` do. Calls that are traced or transformed (`grad`, `vmap`) never have a fast path and do not count.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType
from typing import Any

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.guard import guard
from jaxobs.internals import fastpath, fastpath_causes
from jaxobs.state.call_stats import CallStats

_ONE_TIME = "new_signature"
_LEAVES_ENTRIES_STUCK = ("effects", "outputs", "configuration")
_FRAMES_OF_OURS = 8

see: Callable[[FrameType, str, object], None] | None = None
"""Python 3.11: the profile function that is set around a call that is watched."""
# Of calls of partials no profile function is told, as it is of C functions; so these are cheaper.
begin: Callable[[], None] = partial(sys.setprofile, None)
end: Callable[[], None] = partial(sys.setprofile, None)
set_profile = fastpath.set_profile
"""Does the work of `begin` or `end` if Python has refused it."""
_lock = threads.RLock()
_entry: CodeType | None = None
_monitor: fastpath.Monitor | None = None


def prepare(entry: CodeType) -> None:
    """Gets ready for wrappers whose calls run the code `entry`. Its frames have the callable as `fun`, and `stats`."""
    global _entry, _monitor, begin, see
    with _lock:
        if _entry is not None or not internals.sees_falls():
            return
        _entry = entry
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_after_fork)
        if fastpath.MONITORS:
            _monitor = fastpath.Monitor(entry, _fell)
        else:
            see = fastpath.profile_function(entry)
            begin = partial(sys.setprofile, see)


@guard("fastpath.watch")
def watch(fun: Any, stats: CallStats) -> bool:
    """Begins to watch the calls of a wrapper of `fun`; whether its calls must be watched one by one."""
    program = fastpath.program_of(fun)
    if program is None or (_monitor is None and see is None):
        return False
    if _monitor is not None and not resume():
        return False
    fastpath_causes.forget_new_entries(program)
    stats.watched = True
    return see is not None


def resume() -> bool:
    """Watches again, if there are wrappers; whether it does."""
    with _lock:
        return _monitor is not None and _monitor.start()


def pause() -> None:
    """Gives the interpreter's tool number back. Until `resume` or the next wrapper no falls are counted."""
    with _lock:
        if _monitor is not None:
            _monitor.stop()


def _after_fork() -> None:
    global _lock
    _lock = threads.RLock()
    fastpath_causes.reset_lock()


@guard("fastpath.fell")
def _fell(fall: fastpath.Fall) -> None:
    stats = fall.caller.f_locals.get("stats")
    if isinstance(stats, CallStats):
        _count(fall, stats)


@guard("fastpath.looked")
def looked(stats: CallStats) -> None:
    """Python 3.11, from the wrapper's frame: the watched call is over, and it may be the one that fell."""
    fall = _taken()
    if fall is not None:
        _count(fall, stats)


@guard("fastpath.raised")
def raised(fun: Any, stats: CallStats) -> None:
    """From the wrapper's frame: the call raised."""
    if see is not None:
        _taken()
    program = fastpath.program_of(fun) if stats.watched else None
    if program is not None:
        fastpath_causes.forget_new_entries(program)
        stats.stuck = True


def _taken() -> fastpath.Fall | None:
    """The fall of the call that the wrapper just made, from functions that it calls."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_FRAMES_OF_OURS):
        if frame is not None and frame.f_code is _entry:
            return fastpath.take(frame, see)
        frame = None if frame is None else frame.f_back
    return None


def _count(fall: fastpath.Fall, stats: CallStats) -> None:
    why = fastpath_causes.why(fall, stats.stuck)
    if why is not None:
        cause, reason = why
        stats.stuck = stats.stuck or cause in _LEAVES_ENTRIES_STUCK
        stats.fell(cause, reason, keep_on=see is not None and cause != _ONE_TIME)
