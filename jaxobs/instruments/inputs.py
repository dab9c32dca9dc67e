"""`data`: the same iterable, with the time waited for each batch.

What it returns passes for what it wraps: attributes, length, indexing and type are those of the wrapped one, and each
`iter` gives a fresh iterator, which in turn has the attributes of the wrapped iterator (Grain's `get_state`, ...).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any, TypeVar, cast

from jaxobs.base import config
from jaxobs.base.guard import guard, guarded
from jaxobs.facts.compilations import OTHER
from jaxobs.instruments import special
from jaxobs.instruments.tracebacks import leave
from jaxobs.state import store
from jaxobs.state.call_stats import label
from jaxobs.state.input_waits import MOST_WAITING, InputMeter, Inputs
from jaxobs.state.wall import Scope, Wall

T = TypeVar("T", bound="Iterable[Any]")

_ITERATION = frozenset(("__iter__", "__next__", "__aiter__", "__anext__"))


def data(iterable: T, name: str = "input") -> T:
    """Returns the same iterable, with the time waited for it: by step, in all, and which side is the bottleneck.

        for batch in jaxobs.data(loader):
            state, loss = train_step(state, batch)

    Put it around what the training loop itself iterates over, by `for` or `async for`: after a prefetcher, not before
    it.

    Args:
      iterable: a loader, a data set, a generator; anything that `for` or `async for` takes.
      name: its label in metrics, such as `train` or `eval`.

    Raises:
      TypeError: `iterable` cannot be iterated over, or `name` is not a text.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"`name` labels the input in metrics: it must be a string, not {type(name).__name__}: {name!r:.80}."
        )
    kind = type(iterable)
    if not any(_has(kind, each) for each in (*_ITERATION, "__getitem__")):
        raise TypeError(f"`data` needs an iterable, but got {kind.__name__}: {iterable!r:.80}.")
    if config.disabled():
        return iterable
    with guarded("data"):
        inner = _inner_of(iterable) if isinstance(iterable, _Wrapped) else iterable
        return cast("T", _wrapped(inner, label(name)))
    return iterable


def _wrapped(inner: Any, name: str) -> Any:
    kind: Any = type(inner)
    return _kind(kind)(inner, name)


def _has(kind: type, method: str) -> bool:
    """Returns whether a type has a method itself; `hasattr` finds those of its metaclass as well."""
    return next((vars(each)[method] for each in kind.__mro__ if method in vars(each)), None) is not None


class _Wrapped:
    """Result of `data` for something that gives iterators, and of `data` and `iter` for an iterator."""

    __slots__ = ("__weakref__", "_jaxobs_inner", "_jaxobs_name")

    def __init__(self, inner: Any, name: str) -> None:
        object.__setattr__(self, "_jaxobs_inner", inner)
        object.__setattr__(self, "_jaxobs_name", name)
        for method, waiting in _WAITS.items():
            if hasattr(type(self), method):
                object.__setattr__(self, method, waiting(inner, name))

    # For `isinstance`; `type` tells the truth.
    __class__ = property(lambda self: type(_inner_of(self)))
    __doc__ = property(lambda self: _inner_of(self).__doc__)

    def __getattr__(self, name: str) -> Any:
        return getattr(_inner_of(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_inner_of(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_inner_of(self), name)

    def __dir__(self) -> list[str]:
        return dir(_inner_of(self))

    def __repr__(self) -> str:
        return repr(_inner_of(self))

    def __copy__(self) -> Any:
        return data(copy.copy(_inner_of(self)), _name_of(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return data, (_inner_of(self), _name_of(self))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()


_inner_of: Callable[[Any], Any] = vars(_Wrapped)["_jaxobs_inner"].__get__
_name_of: Callable[[Any], str] = vars(_Wrapped)["_jaxobs_name"].__get__


def _iter(self: Any) -> Any:
    inner = _inner_of(self)
    iterator = iter(inner)
    return self if iterator is inner else _wrapped(iterator, _name_of(self))


def _aiter(self: Any) -> Any:
    inner = _inner_of(self)
    iterator = aiter(inner)
    return self if iterator is inner else _wrapped(iterator, _name_of(self))


def _waiting(iterator: Iterator[Any], name: str) -> Any:
    """Returns the `__next__` of an iterator. A closure: that reads variables faster than a method attributes."""
    meter, wall, ended = _account(name)
    ask, enter, left, waits = iterator.__next__, wall.enter, wall.leave, meter.waits
    took, clock = waits.append, perf_counter
    before = due = 0.0

    def __next__() -> Any:  # noqa: N807
        nonlocal before, due
        charged = enter("input_wait")  # None on a thread that is not charged: a prefetcher's
        began = clock()
        try:
            batch = ask()
        except BaseException as error:
            ended(clock() - began, charged)
            leave(error)
            raise
        now = clock()
        if charged is not None:
            left(charged)
        took((began, now, before, charged is not None))
        if len(waits) >= MOST_WAITING:
            digest()
        if now >= due and before and charged is not None:
            due = now + (look() or 1.0)
        before = now
        return batch

    digest, look = guard("data")(meter.digest), guard("data")(meter.look)
    return __next__


def _awaiting(iterator: Any, name: str) -> Any:
    """Returns the `__anext__` of an iterator: other tasks run while it waits, and their scopes are their own."""
    meter, wall, ended = _account(name)
    ask, enter = iterator.__anext__, guard("data")(wall.enter)
    before = due = 0.0

    async def __anext__() -> Any:  # noqa: N807
        charged = enter("input_wait")
        if charged is not None:
            charged.held = True
        began = perf_counter()
        try:
            batch = await ask()
        except BaseException as error:
            ended(perf_counter() - began, charged)
            leave(error)
            raise
        came(began, perf_counter(), charged)
        return batch

    @guard("data")
    def came(began: float, now: float, charged: Scope | None) -> None:
        nonlocal before, due
        if charged is not None:
            wall.leave(charged)
        meter.waits.append((began, now, before, charged is not None))
        if len(meter.waits) >= MOST_WAITING:
            meter.digest()
        if now >= due and before and charged is not None:
            due = now + (meter.look() or 1.0)
        before = now

    return __anext__


def _account(name: str) -> tuple[InputMeter, Wall, Callable[[float, Scope | None], None]]:
    known = store.current()
    meter, wall = known.part(Inputs).meter(name), known.part(Wall)
    if meter.name == OTHER and name != OTHER:
        known.drop("inputs")

    @guard("data.end")
    def ended(seconds: float, charged: Scope | None) -> None:
        if charged is not None:
            wall.leave(charged)
        meter.waited(seconds, charged is not None)

    return meter, wall, ended


_WAITS: dict[str, Callable[[Any, str], Any]] = {"__next__": _waiting, "__anext__": _awaiting}


@functools.lru_cache(maxsize=512)
def _kind(inner: type) -> type[_Wrapped]:
    """The class for what wraps objects of that type: it has their special methods."""
    members: dict[str, Any] = {
        each: special.delegated(each, _inner_of, inner, _Wrapped) for each in special.of(inner) - _ITERATION
    }
    if _has(inner, "__call__"):
        members["__call__"] = special.delegated("__call__", _inner_of, inner, _Wrapped)
    if any(_has(inner, each) for each in ("__iter__", "__next__", "__getitem__")):
        members["__iter__"] = _iter
    if any(_has(inner, each) for each in ("__aiter__", "__anext__")):
        members["__aiter__"] = _aiter
    iterates = tuple(each for each in _WAITS if _has(inner, each))
    members |= {"__slots__": iterates, "__module__": __name__}
    return cast("type[_Wrapped]", type("data", (_Wrapped,), members))
