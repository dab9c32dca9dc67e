"""Callables that count and time their calls, and otherwise are what they wrap.

The hot path is in `_counting`. It bumps a counter, and what else it does was weighed in nanoseconds
(`make bench`): no lock, no lookup by name, one comparison to tell a call that ran from one that was traced.
Its own frame is taken out of the traceback of what the function raises, and passed over by who looks for the caller.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from sys import getprofile
from time import perf_counter
from typing import Any, TypeVar, cast

from jaxobs import internals
from jaxobs.base import config, threads
from jaxobs.base.guard import guard, guarded
from jaxobs.instruments import special
from jaxobs.instruments.device_times import DeviceTimes, Returned
from jaxobs.instruments.tracebacks import leave, traceback_of
from jaxobs.internals.fastpath import this_thread
from jaxobs.reasons import naming
from jaxobs.recorder import flight_recorder, user_errors
from jaxobs.state import fastpath, store
from jaxobs.state.call_stats import CallStats

F = TypeVar("F", bound=Callable[..., Any])

UNSEEN = f"{__file__} <importlib._bootstrap>"

# Set once JAX is there: see _prepare.
_current: Callable[[Any], Any]
_holder: Any
_eval_trace: Any
_executes: Callable[[], bool]
_prepared = False


def _prepare() -> None:
    """Looks once at how this JAX says tracing from executing."""
    global _current, _holder, _eval_trace, _executes, _prepared
    if _prepared:
        return
    state = internals.trace_state()
    _current, _holder, _eval_trace, _executes = state.current, state.holder, state.eval_trace, state.executes
    with guarded("wrapper.prepare"):
        internals.hide_frames(UNSEEN)
        _register_node(InstrumentedNode)
    with guarded("wrapper.fastpath"):
        fastpath.prepare(_CALL)
    _prepared = True


def unseen(fun: F) -> F:
    """Lets `fun` and what it defines pass for parts of the import system, at which no search for a caller stops.

    `warnings` and `logging` pass over frames whose file is called so when they count their `stacklevel`: a warning
    that is meant for the caller of `jax.jit` reaches the caller of `jaxobs.jit`.
    """

    def renamed(code: types.CodeType) -> types.CodeType:
        constants = (renamed(each) if isinstance(each, types.CodeType) else each for each in code.co_consts)
        return code.replace(co_filename=UNSEEN, co_consts=tuple(constants))

    function = cast("types.FunctionType", fun)
    function.__code__ = renamed(function.__code__)
    return fun


@unseen
def _counting(fun: Callable[..., Any], stats: CallStats, watch: bool) -> Callable[..., Any]:
    """Returns a wrapper's body, a closure for speed; `watch` has timed calls watched for the fast path."""
    counter, took = stats.counter, stats.durations.append

    def __call__(*args: Any, **kwargs: Any) -> Any:  # noqa: N807
        try:
            if not stats.timed:
                # Without keywords the call is cheaper by a dictionary.
                result = fun(*args, **kwargs) if kwargs else fun(*args)
                if _current(_holder) is _eval_trace or _executes():
                    next(counter)
                return result
            watching = watch and stats.looking and getprofile() is None
            started = perf_counter()
            if watching:
                try:
                    fastpath.begin()
                except RuntimeError:  # Python 3.11: another thread does so now
                    watching = fastpath.set_profile(fastpath.see)
            result = fun(*args, **kwargs) if kwargs else fun(*args)
            if watching and this_thread.fall is None:
                try:
                    fastpath.end()
                except RuntimeError:
                    fastpath.set_profile(None)
                watching = False
            seconds = perf_counter() - started
            if watching:
                fastpath.looked(stats)
        except BaseException as error:
            _failed(fun, stats, error)
            leave(error)
            raise
        if _current(_holder) is _eval_trace or _executes():
            next(counter)
            took(seconds)
            timed = stats.timed = stats.timed - 1
            if started >= stats.device_due:
                _ran(fun, stats, result, started, seconds)
            if timed <= 0:
                _spent(stats)
        return result

    return __call__


_CALL = next(each for each in _counting.__code__.co_consts if getattr(each, "co_name", "") == "__call__")


class CountedFunction:
    """A callable that counts its calls."""

    __slots__ = ("__call__", "__weakref__", "_jaxobs_fun", "_jaxobs_name")

    def __init__(self, fun: Any, name: str) -> None:
        self._jaxobs_fun = fun
        self._jaxobs_name = name
        stats = store.current().call_stats(name)
        self.__call__ = _counting(fun, stats, bool(fastpath.watch(fun, stats)))

    # For `isinstance`; `type` tells the truth.
    __class__ = property(lambda self: type(self._jaxobs_fun))

    def __dir__(self) -> list[str]:
        return dir(self._jaxobs_fun)

    def __repr__(self) -> str:
        return repr(self._jaxobs_fun)

    def __copy__(self) -> Any:
        return _restore(copy.copy(self._jaxobs_fun), self._jaxobs_name)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _restore, (self._jaxobs_fun, self._jaxobs_name)


class PjitFunction(CountedFunction):
    """Result of `jaxobs.jit`. It shares the attributes of the `jax.jit` function, and has those of its type.

    It has the name of that type as well, by which Chex says that a function is jitted.
    """

    __slots__ = ("__dict__",)

    def __init__(self, fun: Any, name: str) -> None:
        super().__init__(fun, name)
        self.__dict__ = fun.__dict__
        kind: Any = type(fun)
        _delegate_to(kind)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


class InstrumentedFunction(CountedFunction):
    """Result of `jaxobs.instrument` for any other callable: every attribute is that of the wrapped one."""

    __slots__ = ()

    __dict__ = property(lambda self: self._jaxobs_fun.__dict__)
    __signature__ = property(lambda self: inspect.signature(self._jaxobs_fun))

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_jaxobs_fun"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in CountedFunction.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self._jaxobs_fun, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._jaxobs_fun, name)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        fun = self._jaxobs_fun
        bind = getattr(type(fun), "__get__", None)
        bound = fun if bind is None else bind(fun, instance, owner)
        if bound is fun:
            return self
        if type(bound) is types.MethodType and bound.__func__ is fun:
            return types.MethodType(self, bound.__self__)
        return counted(bound, bound, self._jaxobs_name) if callable(bound) else bound

    def __eq__(self, other: object) -> Any:
        if not issubclass(type(other), InstrumentedFunction):
            return NotImplemented
        return self._jaxobs_fun == cast("InstrumentedFunction", other)._jaxobs_fun

    def __hash__(self) -> int:
        return hash(self._jaxobs_fun)

    def __reduce__(self) -> str | tuple[Any, ...]:
        if isinstance(self._jaxobs_fun, types.FunctionType | type) and _is_global(self):
            return cast("str", self.__qualname__)
        return super().__reduce__()


class InstrumentedNode(InstrumentedFunction):
    """Wrapper of a callable that is a pytree, as an Equinox module is: it has the leaves of the wrapped one."""

    __slots__ = ()


def _flatten(node: InstrumentedNode) -> tuple[list[tuple[Any, Any]], Any]:
    from jax.tree_util import tree_flatten_with_path

    fun = node._jaxobs_fun
    children, tree = tree_flatten_with_path(fun, is_leaf=lambda each: each is not fun)
    return [(path[0], child) for path, child in children], (tree, node._jaxobs_name)


def _unflatten(shape: tuple[Any, str], children: Iterable[Any]) -> InstrumentedNode:
    from jax.tree_util import tree_unflatten

    tree, name = shape
    fun = tree_unflatten(tree, children)
    node: InstrumentedNode = _with_special_methods(InstrumentedNode, type(fun))(fun, name)
    return node


def _inner_of(each: Any) -> Any:
    return each._jaxobs_fun if issubclass(type(each), CountedFunction) else each


_making = threads.RLock()
_made: dict[tuple[int, int], tuple[Any, Any]] = {}
"""Wrappers' types by those of what they wrap, which are kept alive: of the latest `_MOST_MADE`."""
_MOST_MADE = 512


def _with_special_methods(base: Any, kind: Any) -> Any:
    """`base`, with the special methods that objects of `kind` have; `base` itself if these are not their own."""
    if kind in _PLAIN:
        return base
    with _making:  # a pytree is equal to another only where their types are the same
        found = _made.get((id(base), id(kind)))
        if found is not None:
            return found[1]
        members = {name: special.delegated(name, _inner_of, kind, CountedFunction) for name in special.of(kind)}
        if issubclass(kind, type):
            members |= special.of_a_class(_inner_of)
        namespace = {"__slots__": (), "__module__": __name__, "__doc__": _Delegated("__doc__"), **members}
        made: Any = type(base.__name__, (base,), namespace)
        made.__module__ = _Delegated("__module__")  # a class body would have it a text
        if issubclass(base, InstrumentedNode):
            _register_node(made)
        _made[id(base), id(kind)] = (kind, made)
        while len(_made) > _MOST_MADE:
            del _made[next(iter(_made))]
        return made


_PLAIN = frozenset(
    (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType, functools.partial)
)
"""Kinds whose comparison and hash are those above, and which have no other special methods."""


class _Delegated:
    """An attribute of what is wrapped. No property: of two, the one that the instance itself has must win."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else getattr(instance._jaxobs_fun, self._name)


for _kind in (InstrumentedFunction, InstrumentedNode):
    for _name in ("__doc__", "__module__"):
        # `__getattr__` is not asked for what every class has; a class body would put its own in place of these.
        setattr(_kind, _name, _Delegated(_name))


def _register_node(kind: type[InstrumentedFunction]) -> None:
    from jax.tree_util import register_pytree_with_keys

    with contextlib.suppress(ValueError):  # another thread has done it
        register_pytree_with_keys(kind, _flatten, _unflatten)


@functools.cache
def _delegate_to(kind: type) -> None:
    """Gives `PjitFunction` what the type of `jax.jit` functions has and it lacks: `lower`, `trace`, ..."""
    for name in dir(kind):
        if name not in dir(PjitFunction):
            setattr(PjitFunction, name, _Delegated(name))


# --------------------------------------------------------------------------------------------- off the hot path


@guard("wrapper.failed")
def _failed(fun: Any, stats: CallStats, error: BaseException) -> None:
    fastpath.raised(fun, stats)
    if _executes():
        next(stats.counter)
        if isinstance(error, Exception):
            known_as = user_errors.recognised(error)
            stats.failed(error, None if known_as is None else known_as.kind)
            if known_as is not None and known_as.kind != "out_of_memory":
                _known_error(fun, stats, error)
    if isinstance(error, Exception) and user_errors.parsed_error(error) is not None:
        _out_of_memory(fun, stats, error)


def _known_error(fun: Any, stats: CallStats, error: Exception) -> None:
    known = store.current()
    flight_recorder.of(known).recognised(error, known.name_of(stats) or naming.function_name(fun))


def _out_of_memory(fun: Any, stats: CallStats, error: Exception) -> None:
    """Shows an error to the flight recorder, with the call that raised it: it is in the wrapper's own frame."""
    frame = getattr(traceback_of(error), "tb_frame", None)
    local = frame.f_locals if frame is not None and frame.f_code is _CALL else {}
    call = internals.Call(fun, fun, local.get("args"), local.get("kwargs") or {})
    known = store.current()
    function = known.name_of(stats) or naming.function_name(fun)
    stage = "run" if _executes() else None
    flight_recorder.of(known).saw(error, flight_recorder.Seen(function, call, stage=stage))


@guard("wrapper.spent")
def _spent(stats: CallStats) -> None:
    stats.spent()


@guard("wrapper.ran")
def _ran(fun: Any, stats: CallStats, result: Any, started: float, seconds: float) -> None:
    """Shows a call to who finds out how long the device takes for it."""
    known = store.current()
    size, compiled = internals.programs_of(fun), known.compilations() if known.installed else None
    everybody = known.all_call_stats()
    known.part(DeviceTimes).take(Returned(stats, result, started, started + seconds, everybody, size, compiled))


def _is_global(function: CountedFunction) -> bool:
    """Returns whether its module has it under its own name, so that a pickle needs no more than that."""
    found: Any = sys.modules.get(function.__module__)
    for part in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is function


def _restore(fun: Any, name: str) -> Any:
    """Rebuilds a wrapper from its pickle."""
    return counted(fun, fun, name)


def counted(fun: Any, named: Any, name: str | None) -> Any:
    """`fun` in the wrapper for its kind; `fun` itself where that fails or jaxobs is disabled."""
    if config.disabled():
        return fun
    if not isinstance(name, str | None):
        raise TypeError(
            f"`name` labels the function in metrics: it must be a string, not {type(name).__qualname__}: {name!r:.80}."
        )
    with guarded("wrapper"):
        _prepare()
        return _kind_for(fun)(fun, name or naming.function_name(named) or type(named).__qualname__)
    return fun


def _kind_for(fun: Any) -> type[CountedFunction]:
    if internals.is_jit_function(fun):
        return PjitFunction
    from jax.tree_util import all_leaves

    made: type[CountedFunction] = _with_special_methods(
        InstrumentedFunction if all_leaves([fun]) else InstrumentedNode, type(fun)
    )
    return made
