"""`jit` and `instrument`: callables that count, time and otherwise are what they wrap.

The hot path is `InstrumentedFunction.__call__`. It bumps a counter, and what else it does was weighed in nanoseconds
(`make bench`): no lock, no lookup by name, one type comparison to tell a call that ran from one that was traced.
Its own frame is taken out of the traceback of what the function raises.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from time import perf_counter
from typing import Any, cast

from jaxobs import config, explanation, internals, store
from jaxobs.guard import guard, guarded

# Set once JAX is there: see _prepare.
_array_type: type = object
_executes: Callable[[], bool] = bool
_prepared = False


def _prepare() -> None:
    """Looks once at how this JAX tells tracing from executing."""
    global _array_type, _executes, _prepared
    if _prepared:
        return
    with guarded("wrapper.prepare"):
        state = internals.trace_state()
        _array_type, _executes = state.array_type, state.executes
        internals.hide_frames(__file__)
    _prepared = True


class CountedFunction:
    """A callable that counts its calls. Without `__getattr__`, which would slow every attribute of the hot path."""

    __slots__ = ("__dict__", "__weakref__", "_jaxobs_counter", "_jaxobs_fun", "_jaxobs_name", "_jaxobs_stats")

    def __init__(self, fun: Callable[..., Any], name: str) -> None:
        self._jaxobs_fun = fun
        self._jaxobs_name = name
        self._jaxobs_stats = store.current().call_stats(name)
        self._jaxobs_counter = self._jaxobs_stats.counter

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        timed = self._jaxobs_stats.timed
        if timed:
            started = perf_counter()
        try:
            # Without keywords the call is cheaper by a dictionary.
            result = self._jaxobs_fun(*args, **kwargs) if kwargs else self._jaxobs_fun(*args)
        except BaseException as error:
            _failed(self, error)
            if error.__traceback__ is not None:
                # Takes our own frame out of the traceback; a bare `raise` does not put it back.
                error.__traceback__ = error.__traceback__.tb_next
            raise
        if type(result) is _array_type or _executes():
            next(self._jaxobs_counter)
            if timed:
                _time(self._jaxobs_stats, perf_counter() - started)
        return result

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return repr(self._jaxobs_fun)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._jaxobs_fun, self._jaxobs_name)


class JitFunction(CountedFunction):
    """What `jaxobs.jit` returns. It shares the attributes of the `jax.jit` function, and has those of its type."""

    __slots__ = ()

    def __init__(self, fun: Callable[..., Any], name: str) -> None:
        super().__init__(fun, name)
        self.__dict__ = fun.__dict__
        _delegate_to(type(fun))


class InstrumentedFunction(CountedFunction):
    """What `jaxobs.instrument` returns for any other callable: every attribute is asked of the wrapped one."""

    __slots__ = ()

    def __init__(self, fun: Callable[..., Any], name: str) -> None:
        super().__init__(fun, name)
        for attribute in functools.WRAPPER_ASSIGNMENTS:
            with guarded("wrapper.attributes"):
                if hasattr(fun, attribute):
                    self.__dict__[attribute] = getattr(fun, attribute)
        self.__dict__["__wrapped__"] = fun

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_jaxobs_fun"), name)


@functools.cache
def _delegate_to(kind: type) -> None:
    """Gives `JitFunction` what the type of `jax.jit` functions has and it lacks: `lower`, `trace`, ..."""
    for name in dir(kind):
        if not name.startswith("__") and name not in vars(JitFunction):
            setattr(JitFunction, name, property(operator.attrgetter(f"_jaxobs_fun.{name}")))


def _time(stats: store.CallStats, seconds: float) -> None:
    # Never below nothing, which would time every call: two threads may have seen the last one that was to be timed.
    stats.timed = max(0, stats.timed - 1)
    stats.durations.append(seconds)
    if len(stats.durations) > store.MOST_WAITING_DURATIONS:
        stats.drain()


@guard("wrapper.failed")
def _failed(function: CountedFunction, error: BaseException) -> None:
    if _executes():
        next(function._jaxobs_counter)
        if isinstance(error, Exception):
            function._jaxobs_stats.failed(error)


def _restore(fun: Callable[..., Any], name: str) -> Callable[..., Any]:
    """What a pickle is read back as."""
    return cast("Callable[..., Any]", instrument(fun, name=name))


def jit(fun: Callable[..., Any] | None = None, /, *, name: str | None = None, **jit_options: Any) -> Any:
    """`jax.jit` whose calls, errors and dispatch times are counted; a decorator with and without arguments.

        @jaxobs.jit
        def train_step(state, batch): ...

    Args:
      fun: what to compile; absent when used as `@jaxobs.jit(static_argnames="n")`.
      name: its label in metrics; `module.qualname` of `fun` when absent.
      **jit_options: every option of `jax.jit`, handed on unchanged.

    Returns:
      A callable like the one of `jax.jit`, with its `lower`, `trace`, `eval_shape` and `clear_cache`.

    Raises:
      Whatever `jax.jit` raises for these arguments.
    """
    if fun is None:
        return functools.partial(jit, name=name, **jit_options)
    import jax

    return _counted(jax.jit(fun, **jit_options), fun, name)


def instrument(fun: Callable[..., Any], *, name: str | None = None) -> Any:
    """Counts the calls of something already compiled: `nnx.jit`, `eqx.filter_jit`, `jax.pmap`, an AOT `Compiled`.

        step = jaxobs.instrument(nnx.jit(step))

    Args:
      fun: any callable; one that is instrumented already is returned as it is, unless a name is given.
      name: its label in metrics; `module.qualname` of what it wraps when absent.

    Raises:
      TypeError: `fun` cannot be called.
    """
    if not callable(fun):
        raise TypeError(f"`instrument` needs a callable, got {type(fun).__qualname__}: {fun!r:.80}.")
    if isinstance(fun, CountedFunction):
        return fun if name is None else _counted(fun._jaxobs_fun, fun, name)
    return _counted(fun, fun, name)


def _counted(fun: Any, named: Any, name: str | None) -> Any:
    """`fun` in the wrapper for its kind; `fun` itself where that fails or jaxobs is disabled."""
    if config.disabled():
        return fun
    with guarded("wrapper"):
        _prepare()
        kind = JitFunction if internals.is_jit_function(fun) else InstrumentedFunction
        return kind(fun, name or explanation.function_name(named) or type(named).__qualname__)
    return fun
