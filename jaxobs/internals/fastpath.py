"""Calls that fall out of JAX's C++ dispatch into its Python one, seen on the thread that makes them.

A call of a `jax.jit` function that C++ cannot serve runs `cache_miss` of `jax._src.pjit`; one that it serves runs no
Python at all. So the interpreter is asked to say when that code runs. Nothing of JAX is replaced.

- From Python 3.12 on `sys.monitoring` does, for this one code object: every fall on every thread is seen.
- Python 3.11 has a profile function (`sys.setprofile`), which a wrapper sets around single calls. It takes itself off
  when `cache_miss` begins, so that nothing behind it (trace, lower, compile) is slowed; its frame outlives the call.

Both keep out of the way of a profiler or of tools that have taken what they need.

A fall belongs to the wrapper whose frame is right above, if it is one of the function that the wrapper wraps: its frame
is known by its code object, has the wrapped callable as `fun` and, where it set the profile function, `watching`.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from jaxobs.base.guard import guarded
from jaxobs.internals import code_events
from jaxobs.internals.tracing import is_jit_function

MONITORS = code_events.MONITORS
"""Whether every fall is seen; where not, only those of calls that are watched."""

_FRAMES_BETWEEN = range(8)
_MOST_NESTED = 32
_MOST_REFUSALS = 1000
_MOST_OPEN = 64
_READ = {"args_flat", "executable", "jaxpr", "maybe_fastpath_data", "out_flat", "pgle_profiler"}


@dataclass(slots=True, eq=False)
class Fall:
    """A call that runs, or ran, JAX's Python dispatch. Live frames, with arguments: read them now, keep none."""

    frame: FrameType
    """Frame of `cache_miss`."""
    caller: FrameType
    """Frame of the wrapper that made the call."""
    program: Any
    """The `jax.jit` function that was called."""
    made: int
    """`executables_made` when the call fell."""
    outer: Fall | None = None
    """A fall further up this thread's stack, around a wrapper that is called while it traces."""
    depth: int = 0


@functools.cache
def miss_code() -> CodeType | None:
    """The code of JAX's Python dispatch, if it has the variables that we read."""
    import jax._src.pjit as pjit

    for value in vars(pjit).values():
        code = getattr(value, "__code__", None)
        for constant in getattr(code, "co_consts", ()):
            if getattr(constant, "co_name", None) == "cache_miss":
                fits = set(constant.co_varnames) >= _READ and "fun" in constant.co_freevars
                return constant if fits else None
    return None


@functools.cache
def compile_code() -> CodeType | None:
    """The code that compiles an executable, or loads it from the persistent cache."""
    from jax._src import compiler

    return getattr(inspect.unwrap(compiler.compile_or_get_cached), "__code__", None)


class _Thread(threading.local):
    """State of a thread."""

    fall: Fall | None = None
    """Python 3.11: the innermost fall that the profile function saw and nobody has taken yet."""
    made = 0
    """Python 3.12: executables that it compiled or loaded while it was watched."""

    def __init__(self) -> None:
        self.made_before: dict[int, int] = {}
        """Python 3.12: what it had made when a fall that is not over began, by the number of its frame."""


this_thread = _Thread()


def executables_made() -> int:
    """Returns a count that differs from an earlier one if this thread (on 3.11, any) got an executable."""
    if MONITORS:
        return this_thread.made
    import jax._src.interpreters.pxla as pxla

    made: int = pxla._cached_compilation.cache_info().misses
    return made


def sees_falls() -> bool:
    """Returns whether this JAX lets us see them. Wakes nothing, compiles nothing."""
    return miss_code() is not None and compile_code() is not None and executables_made() >= 0


def program_of(fun: Any) -> Any:
    """The `jax.jit` function behind a callable: itself, or the only one that it holds, as those of Flax and Equinox do.

    None where there is none, or several. Only a monitor looks into what is no `jax.jit` function itself: with a profile
    function the Python that such a callable runs on each call would be slowed.
    """
    if is_jit_function(fun):
        return fun
    held = [each for each in getattr(fun, "__dict__", {}).values() if is_jit_function(each)] if MONITORS else []
    return held[0] if len(held) == 1 else None


def _caller(frame: FrameType, entry: CodeType) -> FrameType | None:
    """The frame that runs `entry` right above that of `cache_miss`."""
    above = frame.f_back
    for _ in _FRAMES_BETWEEN:
        if above is None or above.f_code is entry:
            return above
        above = above.f_back
    return None


def _fall(frame: FrameType, caller: FrameType, made: int) -> Fall | None:
    """The fall of the wrapper whose frame is `caller`; None if it is one of another function."""
    program = program_of(caller.f_locals.get("fun"))
    mine = program is not None and frame.f_locals.get("fun") is getattr(program, "_fun", None)
    return Fall(frame, caller, program, made) if mine else None


# ------------------------------------------------------------------------------------------- Python 3.12 and later


class Monitor:
    """Reports every fall at its end, on the thread of the call."""

    def __init__(self, entry: CodeType, fell: Callable[[Fall], None]) -> None:
        self._entry = entry
        self._fell = fell
        self._watching = False

    def start(self) -> bool:
        """Watches; returns whether it does: see `code_events.watch`."""
        if self._watching:
            return True
        missed, compiles = miss_code(), compile_code()
        if missed is None or compiles is None or not sees_falls():
            return False
        self._watching = code_events.watch(missed, self._began, self._ended)
        if self._watching:
            code_events.watch(compiles, self._compiles)
        return self._watching

    def stop(self) -> None:
        """Watches no more."""
        if self._watching:
            self._watching = False
            missed, compiles = miss_code(), compile_code()
            assert missed is not None and compiles is not None
            code_events.unwatch(missed, self._ended)
            code_events.unwatch(compiles)

    def _compiles(self, frame: FrameType) -> None:
        this_thread.made += 1

    def _began(self, frame: FrameType) -> None:
        if _caller(frame, self._entry) is None:
            return
        # Who leaves by an exception is never heard of again. Its number is another's one day.
        if len(this_thread.made_before) >= _MOST_OPEN:
            this_thread.made_before.clear()
        this_thread.made_before[id(frame)] = this_thread.made

    def _ended(self, frame: FrameType, result: object) -> None:
        open_ones = this_thread.made_before
        if not open_ones:
            return
        made = open_ones.pop(id(frame), None)
        if made is None:
            return
        with guarded("fastpath.ended"):
            caller = _caller(frame, self._entry)
            fall = None if caller is None else _fall(frame, caller, made)
            if fall is not None:
                self._fell(fall)


# ----------------------------------------------------------------------------------------------------- Python 3.11


def set_profile(function: Callable[[FrameType, str, object], None] | None) -> bool:
    """Sets the profile function of this thread, or takes it off; returns whether Python accepted that.

    Where an audit hook lets another thread in between, Python 3.11 refuses the one that comes second, once.
    """
    for _ in range(_MOST_REFUSALS):
        try:
            sys.setprofile(function)
        except RuntimeError:
            continue
        return True
    return False


def profile_function(entry: CodeType) -> Callable[[FrameType, str, object], None]:
    """Returns the function to set, with `sys.setprofile`, right before a call from a frame that runs `entry`."""
    missed = miss_code()

    def see(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if code is missed:
            if event == "call":
                with guarded("fastpath.see"):
                    _note(frame, entry)
        elif code is entry and event == "return" and frame.f_locals.get("watching"):
            # Exceptions, of signals perhaps, left out the line that would have taken it off.
            set_profile(None)

    return see


def _note(frame: FrameType, entry: CodeType) -> None:
    caller = _caller(frame, entry)
    fall = None if caller is None else _fall(frame, caller, executables_made())
    if fall is None or not fall.caller.f_locals.get("watching"):
        # It is of a wrapper that was called on the way, from what flattens the arguments.
        return
    outer = this_thread.fall
    if outer is not None and outer.depth < _MOST_NESTED:
        fall.outer, fall.depth = outer, outer.depth + 1
    this_thread.fall = fall
    set_profile(None)


def take(caller: FrameType, see: object) -> Fall | None:
    """The fall of the call that was just made from the frame `caller`, if it fell; ends the watch if it did not."""
    fall = this_thread.fall
    if fall is not None and fall.caller is caller:
        this_thread.fall = fall.outer
        return fall
    if sys.getprofile() is see:
        set_profile(None)
    return None
