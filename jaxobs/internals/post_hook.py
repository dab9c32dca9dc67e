"""JAX's hook after each call that its C++ dispatch served: the one by which `jax_debug_nans` looks at results.

A Python callable, called on the calling thread with `(fun, args, kwargs, output)` when a program has been handed to the
device; `fun` is what `jax.jit` returned. Calls that fell to Python (misses, callbacks) have none, nor those that are
traced. It is in no cache's key: to set it or to take it off compiles nothing. `None` stands for no hook.

One of ours can have those that fell to Python, too: programs with effects (`io_callback`, `jax.debug.print`) never have
a fast path. From Python 3.12 on, the interpreter says when JAX's Python dispatch returns (`code_events`). On Python
3.11, JAX from 0.7 on says when the call of such a program begins (`jax_test_events`), and the hook is given no output.

There is one place for it in a process. Whatever somebody else puts there stays there; and JAX, which sets its own
without a look when `jax_debug_nans` is turned on, always wins.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, ClassVar

from jaxobs.base import threads
from jaxobs.base.guard import guarded
from jaxobs.internals import code_events, jax_test_events
from jaxobs.internals.fastpath import miss_code
from jaxobs.internals.listeners import PHASE_OF_EVENT, Listeners, register, unregister
from jaxobs.internals.tracing import trace_state

Hook = Callable[[Any, Any, Any, Any], None]


def can_hook() -> bool:
    """Returns whether this JAX has the hook where we know it. Changes nothing."""
    from jax._src import api

    _get()
    return callable(getattr(api, "_nan_check_posthook", None)) and isinstance(_debugging(), bool)


def put(hook: Hook, *, falls: bool = False) -> bool:
    """Sets the hook, next to others of ours, where there is none of anybody else; whether it is set now.

    Args:
      falls: it is also called for calls without a fast path, where Python or JAX reports them.
    """
    with _Hooks.lock:
        if _free() and not _debugging() and hook not in _Hooks.ours:
            _Hooks.ours = (*_Hooks.ours, hook)
            _place()
            if falls and _Hooks.falls is None and _watch_falls():
                _Hooks.falls = hook
        if _Hooks.ours:
            register(_LISTENERS)
        return holds(hook)


def holds(hook: Hook) -> bool:
    """Returns whether it is set for the process: on all threads that have none of their own (see `repair`)."""
    placed = _Hooks.placed
    return placed is not None and hook in _Hooks.ours and _get() is placed


def take(hook: Hook) -> None:
    """Takes the hook off, if it is set."""
    with _Hooks.lock:
        if holds(hook):
            _Hooks.ours = tuple(each for each in _Hooks.ours if each != hook)
            _place()
        missed = miss_code() if _Hooks.falls == hook else None
        if missed is not None:
            _Hooks.falls = None
            code_events.unwatch(missed, _fell)
            jax_test_events.unlisten(_falls)


def _watch_falls() -> bool:
    missed, called = miss_code(), None if code_events.MONITORS else call_code()
    if missed is not None and called is not None:
        jax_test_events.listen(_CALL, called, _falls)
    return missed is not None and (called is not None or code_events.watch(missed, ended=_fell))


@functools.cache
def call_code() -> CodeType | None:
    """The code of JAX's Python dispatch that reports the calls, if it has the variable that we read."""
    from jax._src import pjit

    code = getattr(getattr(pjit, "_pjit_call_impl_python", None), "__code__", None)
    return code if code is not None and _CALL in code.co_consts and jax_test_events.reports(code) else None


_CALL = "jit_cpp_cache_miss"


def caller(above: FrameType) -> FrameType:
    """The frame that made the call, given the one above a hook's: frames of ours and of JAX's dispatch lie between."""
    reports = {code_events.__file__, jax_test_events.__file__}
    between, frame = {__file__, *reports}, above
    while frame.f_back is not None and frame.f_code.co_filename in between:
        if frame.f_code.co_filename in reports:
            between |= _dispatch()
        frame = frame.f_back
    return frame


@functools.cache
def _dispatch() -> frozenset[str]:
    """The files of JAX's Python dispatch."""
    from jax._src import pjit, traceback_util, util

    return frozenset((pjit.__file__, traceback_util.__file__, util.__file__))


class _Hooks:
    """Ours that are set. JAX has one place."""

    lock = threads.RLock()
    ours: tuple[Hook, ...] = ()
    placed: Hook | None = None
    """Returns what to put in JAX's place for hooks: the only one, or a function that calls all."""
    falls: Hook | None = None
    """The hook of ours that has the calls without a fast path, too."""
    jitted: ClassVar[dict[int, _Jitted]] = {}
    """Stands for what `jax.jit` returned in such a call, by the number of its Python function, or of its jaxpr."""


class _Jitted:
    """Has the Python function of a call, as what `jax.jit` returns has it; keeps it not alive."""

    __slots__ = ("__weakref__", "called", "function")

    def __init__(self, function: Any, called: Any) -> None:
        number, jitted = id(called), _Hooks.jitted
        self.function, self.called = weakref.ref(function), weakref.ref(called, lambda _: jitted.pop(number, None))

    @property
    def _fun(self) -> Any:
        return self.function()


class _Thread(threading.local):
    compiled = False
    """Whether a program was compiled since the last call that ended."""


_this_thread = _Thread()


def _fell(frame: FrameType, result: Any) -> None:
    """Calls the hook after a call that ran JAX's Python dispatch and compiled nothing, if it has no fast path."""
    compiled, _this_thread.compiled = _this_thread.compiled, False
    hook = _Hooks.falls
    if hook is None or compiled:
        return
    with guarded("post_hook.fell"):
        _, fast_path, *_ = result
        state = trace_state()
        if fast_path is not None or state.current(state.holder) is not state.eval_trace:
            return
        local = frame.f_locals
        fun = local["fun"]
        jitted = _Hooks.jitted.get(id(fun))
        if jitted is None:
            jitted = _Hooks.jitted[id(fun)] = _Jitted(fun, fun)
        hook(jitted, local["args"], local["kwargs"], result[0])


def _falls(name: str, frame: FrameType) -> None:
    """Calls the hook as a call with effects begins; the first call of each jaxpr compiles, and is no such call."""
    hook, jaxpr = _Hooks.falls, frame.f_locals["jaxpr"]
    missed = next((each for each in _above(frame) if each.f_code is miss_code()), None)
    if hook is None or missed is None or not jaxpr.effects:
        return
    jitted, local = _Hooks.jitted.get(id(jaxpr)), missed.f_locals
    if jitted is None:
        _Hooks.jitted[id(jaxpr)] = _Jitted(local["fun"], jaxpr)
    else:
        hook(jitted, local["args"], local["kwargs"], None)


def _above(frame: FrameType) -> Iterator[FrameType]:
    """The frames of JAX's dispatch from this one on."""
    each: FrameType | None = frame
    while each is not None and each.f_code.co_filename in _dispatch():
        yield each
        each = each.f_back


def _free() -> bool:
    """Returns whether nobody else has the place; of what was ours and was put out of it, nothing is left."""
    there = _get()
    if there is None:
        _Hooks.ours = ()
    return there is None or there is _Hooks.placed


def _place() -> None:
    ours = _Hooks.ours
    _Hooks.placed = None if not ours else ours[0] if len(ours) == 1 else _all(ours)
    if not ours:
        unregister(_LISTENERS)
    _set(_Hooks.placed)
    _settle()
    repair()


def _all(hooks: tuple[Hook, ...]) -> Hook:
    def call(fun: Any, args: Any, kwargs: Any, output: Any) -> None:
        for hook in hooks:
            hook(fun, args, kwargs, output)

    return call


def _after_fork() -> None:
    _Hooks.lock = threads.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def repair() -> None:
    """Lets the calling thread have the hook again that the process has.

    Since JAX 0.8 a thread that left `with jax.debug_nans(...)` has none of its own, and that hides the one of the
    process. JAX makes such blocks itself: in `jax.grad`, `shard_map` and some functions of `jnp`.
    """
    from jax._src import api, config

    state = getattr(api, "_post_hook_state", None)
    if state is None or state.get_local() is not None or _debugging():
        return
    unset = getattr(getattr(config, "config_ext", None), "unset", None)
    if unset is not None and state.get_global() is _Hooks.placed:
        state.set_local(unset)


def _ended(event: str, seconds: float, **about: Any) -> None:
    _this_thread.compiled = _this_thread.compiled or PHASE_OF_EVENT.get(event) == "compile"
    # Most such blocks are made while something is traced, and it is compiled after that.
    with guarded("post_hook.repair"):
        repair()


def _ignored(event: str, **about: Any) -> None:
    """Nothing to do."""


_LISTENERS = Listeners(event=_ignored, ended=_ended)


def function_of(fun: Any) -> Any:
    """The Python function behind what the hook is called with; None for a program that was compiled ahead of time."""
    return getattr(fun, "_fun", None)


def _get() -> Any:
    from jax._src import api

    state = getattr(api, "_post_hook_state", None)
    if state is not None:
        return state.get_global()
    from jax._src.lib import jax_jit

    return jax_jit.global_state().post_hook


def _set(hook: Hook | None) -> None:
    from jax._src import api

    state = getattr(api, "_post_hook_state", None)
    if state is not None:
        state.set_global(hook)
        return
    from jax._src.lib import jax_jit

    jax_jit.global_state().post_hook = hook


def _debugging() -> bool:
    from jax._src import config

    # Those of the process: what a thread sets for itself has a hook of its own.
    return bool(config.debug_nans.get_global() or config.debug_infs.get_global())


def _settle() -> None:
    """Another thread may have turned `jax_debug_nans` on while we looked: JAX sets the option first, then its hook."""
    from jax._src import api

    if _debugging():
        _set(api._nan_check_posthook)
