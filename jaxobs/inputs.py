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

from jaxobs import config, store
from jaxobs.call_stats import label
from jaxobs.counted import leave
from jaxobs.facts import OTHER
from jaxobs.guard import guard, guarded
from jaxobs.input_waits import MOST_WAITING, Inputs
from jaxobs.wall import Scope, Wall

T = TypeVar("T", bound="Iterable[Any]")

_DELEGATED = ("__bool__", "__call__", "__contains__", "__getitem__", "__len__", "__length_hint__")
"""Python looks these up on the type, where they must be found only if the wrapped one has them."""


def data(iterable: T, name: str = "input") -> T:
    """The same iterable, with the time waited for it: by step, in all, and which side is the bottleneck.

        for batch in jaxobs.data(loader):
            state, loss = train_step(state, batch)

    Put it around what the training loop itself iterates over: after a prefetcher, not before it. The first batches are
    fingerprinted (see `facts.DataReceipt`): of arrays in the host's memory, 64 KiB of each of eight batches at most.

    Args:
      iterable: a loader, a data set, a generator; anything that `for` takes.
      name: its label in metrics, such as `train` or `eval`.

    Raises:
      TypeError: `iterable` cannot be iterated over, or `name` is no text.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"`name` labels the input in metrics: it must be text, not {type(name).__name__}: {name!r:.80}."
        )
    kind = type(iterable)
    if not any(_has(kind, each) for each in ("__iter__", "__next__", "__getitem__")):
        raise TypeError(f"`data` needs something to iterate over, got {kind.__name__}: {iterable!r:.80}.")
    if config.disabled():
        return iterable
    with guarded("data"):
        inner = _inner_of(iterable) if isinstance(iterable, _Wrapped) else iterable
        return cast("T", _wrapped(inner, label(name)))
    return iterable


def _wrapped(inner: Any, name: str) -> Any:
    kind = type(inner)
    special = frozenset(each for each in _DELEGATED if _has(kind, each))
    return _kind(_has(kind, "__next__"), special)(inner, name)


def _has(kind: type, method: str) -> bool:
    """Whether a type has a method itself; `hasattr` finds those of its metaclass as well."""
    return next((vars(each)[method] for each in kind.__mro__ if method in vars(each)), None) is not None


class _Wrapped:
    """What `data` returns for something that gives iterators."""

    __slots__ = ("__weakref__", "_jaxobs_inner", "_jaxobs_name")

    def __init__(self, inner: Any, name: str) -> None:
        object.__setattr__(self, "_jaxobs_inner", inner)
        object.__setattr__(self, "_jaxobs_name", name)

    # For `isinstance`; `type` tells the truth.
    __class__ = property(lambda self: type(_inner_of(self)))
    __doc__ = property(lambda self: _inner_of(self).__doc__)

    def __iter__(self) -> Any:
        inner = _inner_of(self)
        iterator = iter(inner)
        return self if iterator is inner else _wrapped(iterator, _name_of(self))

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

    def __enter__(self) -> Any:
        entered = _inner_of(self).__enter__()
        return self if entered is _inner_of(self) else entered

    def __exit__(self, *error: Any) -> Any:
        return _inner_of(self).__exit__(*error)

    def __copy__(self) -> Any:
        return data(copy.copy(_inner_of(self)), _name_of(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return data, (_inner_of(self), _name_of(self))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()


_inner_of: Callable[[Any], Any] = vars(_Wrapped)["_jaxobs_inner"].__get__
_name_of: Callable[[Any], str] = vars(_Wrapped)["_jaxobs_name"].__get__


class _WrappedIterator(_Wrapped):
    """What `data` returns for an iterator, and what iterating over the other gives."""

    __slots__ = ("__next__",)

    def __init__(self, inner: Any, name: str) -> None:
        super().__init__(inner, name)
        object.__setattr__(self, "__next__", _waiting(inner, name))


def _waiting(iterator: Iterator[Any], name: str) -> Any:
    """What runs when the next batch is asked for. A closure: that reads variables faster than a method attributes."""
    known = store.current()
    meter, wall = known.part(Inputs).meter(name), known.part(Wall)
    if meter.name == OTHER and name != OTHER:
        known.drop("inputs")
    ask, enter, left, waits = iterator.__next__, wall.enter, wall.leave, meter.waits
    took, clock = waits.append, perf_counter
    sampling = meter.claim()
    before = due = 0.0

    def __next__() -> Any:  # noqa: N807
        nonlocal before, due, sampling
        charged = enter("input_wait")  # None on a thread that is not charged: a prefetcher's
        began = clock()
        try:
            batch = ask()
        except BaseException as error:
            ended(clock() - began, charged, error)
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
        if sampling:
            sampling = bool(sample(batch))
        before = now
        return batch

    @guard("data.end")
    def ended(seconds: float, charged: Scope | None, error: BaseException) -> None:
        if charged is not None:
            left(charged)
        meter.waited(seconds, charged is not None)
        if sampling and isinstance(error, StopIteration):
            meter.no_more()

    digest, look, sample = (guard("data")(each) for each in (meter.digest, meter.look, meter.sample))
    return __next__


@functools.cache
def _kind(iterator: bool, special: frozenset[str]) -> type[_Wrapped]:
    """The class for objects that have these special methods."""
    base = _WrappedIterator if iterator else _Wrapped
    members: dict[str, Any] = {each: _delegated(each) for each in special}
    members |= {"__slots__": (), "__module__": __name__}
    return cast("type[_Wrapped]", type("data", (base,), members))


def _delegated(name: str) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(type(_inner_of(self)), name)(_inner_of(self), *args, **kwargs)

    call.__name__ = name
    return call
