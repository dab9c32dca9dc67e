"""Calls that fall out of JAX's C++ dispatch into its Python one, seen on the thread that makes them.

A call of a `jax.jit` function that C++ cannot serve runs `cache_miss` of `jax._src.pjit`; one that it serves runs no
Python at all. So the interpreter is asked to tell when that code runs. Nothing of JAX is replaced.

- From Python 3.12 on `sys.monitoring` does, for this one code object: every fall on every thread is seen.
- Python 3.11 has a profile function (`sys.setprofile`), which a wrapper sets around single calls. It takes itself off
  when `cache_miss` begins, so that nothing behind it (trace, lower, compile) is slowed; its frame outlives the call.

Both keep out of the way of a profiler or of tools that have taken what they need.

A fall belongs to the wrapper whose frame is right above, if it is one of the function that the wrapper wraps: its frame
is known by its code object, and has the wrapped callable as `fun`.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from jaxobs.guard import guarded
from jaxobs.internals.tracing import is_jit_function

MONITORS = hasattr(sys, "monitoring")
"""Whether every fall is seen; where not, only those of calls that are watched."""

_MOST_FRAMES_BETWEEN = 16
_MOST_NESTED = 32
_MOST_OPEN = 64
_TOOLS = (3, 4)  # those that Python's documentation assigns to nobody
_TOOL = "jaxobs"
_READ = {"args_flat", "executable", "jaxpr", "maybe_fastpath_data", "out_flat", "pgle_profiler"}


@dataclass(slots=True, eq=False)
class Fall:
    """A call that runs, or ran, JAX's Python dispatch. Live frames: read them now, keep none."""

    frame: FrameType
    """Of `cache_miss`."""
    caller: FrameType
    """Of the wrapper that made the call."""
    program: Any
    """The `jax.jit` function that was called."""
    made: int
    """Executables that this process had when the call fell."""
    outer: Fall | None = None
    """A fall further up this thread's stack, around a wrapper that is called while it traces."""
    depth: int = 0

    def forget(self) -> None:
        """Lets go of the frames: that of a dispatch that is over holds all those above it, and the arguments."""
        del self.frame, self.caller, self.program


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


def executables_made() -> int:
    """How many executables this process compiled or loaded since JAX's caches were last cleared."""
    import jax._src.interpreters.pxla as pxla

    made: int = pxla._cached_compilation.cache_info().misses
    return made


def sees_falls() -> bool:
    """Whether this JAX lets us see them. Wakes nothing, compiles nothing."""
    return miss_code() is not None and executables_made() >= 0


def program_of(fun: Any) -> Any:
    """The `jax.jit` function behind a callable: itself, or the only one that it holds, as those of Flax and Equinox do.

    None where there is none, or several. Only a monitor looks into what is no `jax.jit` function itself: with a profile
    function the Python that such a callable runs on each call would be slowed.
    """
    if is_jit_function(fun):
        return fun
    held = [each for each in getattr(fun, "__dict__", {}).values() if is_jit_function(each)] if MONITORS else []
    return held[0] if len(held) == 1 else None


def _fall(frame: FrameType, entry: CodeType) -> Fall | None:
    """What the frame of `cache_miss` is to a wrapper whose calls run `entry`; None where it is nobody's, or inner."""
    above = frame.f_back
    for _ in range(_MOST_FRAMES_BETWEEN):
        if above is None or above.f_code is frame.f_code:
            return None
        if above.f_code is entry:
            program = program_of(above.f_locals.get("fun"))
            mine = program is not None and frame.f_locals.get("fun") is getattr(program, "_fun", None)
            return Fall(frame, above, program, executables_made()) if mine else None
        above = above.f_back
    return None


# ------------------------------------------------------------------------------------------- Python 3.12 and later


class _Open(threading.local):
    """What this process had made when each of this thread's falls began, by the number of its frame object."""

    def __init__(self) -> None:
        self.made: dict[int, int] = {}


class Monitor:
    """Tells of every fall at its end, on the thread of the call."""

    def __init__(self, entry: CodeType, fell: Callable[[Fall], None]) -> None:
        self._entry = entry
        self._fell = fell
        self._open = _Open()
        self._tool: int | None = None

    def start(self) -> bool:
        """Takes a tool number that nobody has; returns whether there was one."""
        monitoring: Any = getattr(sys, "monitoring", None)
        code = miss_code()
        if self._tool is not None or monitoring is None or code is None:
            return self._tool is not None
        self._tool = _take_tool(monitoring)
        if self._tool is None:
            return False
        events = monitoring.events
        monitoring.register_callback(self._tool, events.PY_START, self._began)
        monitoring.register_callback(self._tool, events.PY_RETURN, self._ended)
        monitoring.set_local_events(self._tool, code, events.PY_START | events.PY_RETURN)
        return True

    def stop(self) -> None:
        """Gives the tool number back."""
        monitoring: Any = getattr(sys, "monitoring", None)
        tool, self._tool = self._tool, None
        if tool is None or monitoring.get_tool(tool) != _TOOL:
            return
        monitoring.set_local_events(tool, miss_code(), 0)
        for event in (monitoring.events.PY_START, monitoring.events.PY_RETURN):
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)

    def _began(self, code: CodeType, offset: int) -> None:
        with guarded("fastpath.began"):
            # Who leaves by an exception is never heard of again. Its number is another's one day.
            if len(self._open.made) >= _MOST_OPEN:
                self._open.made.clear()
            self._open.made[id(sys._getframe(1))] = executables_made()

    def _ended(self, code: CodeType, offset: int, result: object) -> None:
        with guarded("fastpath.ended"):
            frame = sys._getframe(1)
            made = self._open.made.pop(id(frame), None)
            fall = _fall(frame, self._entry) if made is not None else None
            if fall is not None and made is not None:
                fall.made = made
                self._fell(fall)


def _take_tool(monitoring: Any) -> int | None:
    for tool in _TOOLS:
        if monitoring.get_tool(tool) is None:
            try:
                monitoring.use_tool_id(tool, _TOOL)
            except ValueError:  # somebody was faster
                continue
            return tool
    return None


# ----------------------------------------------------------------------------------------------------- Python 3.11


class _Latest(threading.local):
    """The innermost fall that the profile function saw on this thread and nobody has taken yet."""

    fall: Fall | None = None


latest = _Latest()


def profile_function(entry: CodeType) -> Callable[[FrameType, str, object], None]:
    """What is to be set, with `sys.setprofile`, right before a call from a frame that runs `entry`."""
    missed = miss_code()

    def see(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if code is missed:
            if event == "call":
                with guarded("fastpath.see"):
                    _note(frame, entry)
        elif code is entry and event == "return":
            # A signal's exception came between the call and the line that would have taken it off.
            sys.setprofile(None)

    return see


def _note(frame: FrameType, entry: CodeType) -> None:
    fall = _fall(frame, entry)
    if fall is None:
        return
    outer = latest.fall
    if outer is not None and outer.depth < _MOST_NESTED:
        fall.outer, fall.depth = outer, outer.depth + 1
    latest.fall = fall
    sys.setprofile(None)


def take(caller: FrameType, see: object) -> Fall | None:
    """The fall of the call that was just made from the frame `caller`, if it fell; ends the watch if it did not.

    Whoever takes it has to `forget` it.
    """
    fall = latest.fall
    if fall is not None and fall.caller is caller:
        latest.fall = fall.outer
        return fall
    if sys.getprofile() is see:
        sys.setprofile(None)
    return None
