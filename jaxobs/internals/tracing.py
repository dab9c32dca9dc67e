"""Support of the wrapper: distinguishes a call that runs from a traced one, and hides the wrapper from tracebacks."""

import functools
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TraceState:
    """Lets the wrapper tell a call that executes from one made while another function is traced."""

    current: Callable[[Any], Any]
    holder: Any
    """`current(holder)` is the current trace of this thread. Two parts because the call is cheaper than a closure's."""
    eval_trace: Any
    """The current trace while nothing is traced."""
    staging: type
    """Type of the traces that write a program down instead of running it."""

    def executes(self) -> bool:
        """Returns whether calls on this thread run now: nothing is traced into a program around them.

        Under `grad` or `vmap` alone a call does run: these traces are on the evaluation, not on a program.
        So it does in an eager `shard_map`, whose trace is on nothing.
        """
        trace = self.current(self.holder)
        for _ in range(64):
            if trace is self.eval_trace:
                return True
            if trace is None or isinstance(trace, self.staging):
                return False
            trace = getattr(trace, "parent_trace", self.eval_trace)
        return False


def trace_state() -> TraceState:
    """Returns the parts of this JAX that distinguish tracing from executing; without them, every call counts."""
    try:
        from jax._src import core
        from jax._src.interpreters.partial_eval import DynamicJaxprTrace

        holder = getattr(core, "trace_state_strong_ref", None)
        if holder is not None:
            # The property's own function: half the price of the property, on the way of every instrumented call.
            current = vars(type(holder))["value"].fget
        else:
            holder, current = core.trace_ctx, operator.attrgetter("trace")
        state = TraceState(current, holder, core.eval_trace, DynamicJaxprTrace)
        if current(holder) is not core.trace_ctx.trace:
            raise AttributeError("trace_state_strong_ref")
    except (ImportError, AttributeError, KeyError, TypeError):
        return TraceState(lambda holder: None, None, None, type(None))
    return state


def is_jit_function(fun: Any) -> bool:
    """Returns whether `fun` is what `jax.jit` itself returns."""
    return type(fun) is type(_probe_jit())


def programs_of(fun: Any) -> int | None:
    """How many signatures JAX's C++ dispatch knows of a `jax.jit` function; 0 for what is compiled for good.

    None for anything else, and where JAX has moved it out of sight.
    """
    if is_jit_function(fun):
        size = getattr(fun, "_cache_size", None)
        return None if size is None else int(size())
    stages = sys.modules.get("jax.stages")
    return 0 if stages is not None and isinstance(fun, stages.Compiled) else None


def own_jit() -> Any:
    """JAX's own `jit`, whatever a program has put in place of `jax.jit`."""
    try:
        from jax._src.api import jit
    except ImportError:
        from jax import jit
    return jit


@functools.cache
def _probe_jit() -> Any:
    """A `jax.jit` function that is never called, to know its type; making one compiles nothing."""
    return own_jit()(_probed)


def _probed() -> None:
    """Stands in for a function to be jitted."""


def hide_frames(filename: str) -> None:
    """Tells JAX that frames of this file are not user code: neither in source locations nor in tracebacks."""
    from jax._src import source_info_util, traceback_util

    for module in (source_info_util, traceback_util):
        register_exclusion = getattr(module, "register_exclusion", None)
        if register_exclusion is not None:
            register_exclusion(filename)


_FIELDS = ("session", "profile_session")
"""Attributes in which JAX keeps the trace: from 0.12, and before."""


def running_trace() -> Any:
    """The session of the trace that is running; None if none is, or JAX has moved it out of sight."""
    state = _state()
    return next((found for name in _FIELDS if (found := getattr(state, name, None)) is not None), None)


def forget_trace(session: Any) -> None:
    """Lets JAX start another trace after this one could not be written, in which case it thinks it is running still."""
    state = _state()
    if session is None or state is None:
        return
    with state.lock:
        if running_trace() is session:
            state.reset()


def _state() -> Any:
    return getattr(sys.modules.get("jax._src.profiler"), "_profile_state", None)
