"""Values that are watched for NaN and infinities, without waiting for them.

`take` keeps a reference and goes on; `look` asks those that have arrived. What is kept is bounded in number and in
bytes: an array that waits here keeps its memory, so a large one is not taken. What was donated meanwhile is passed
over.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.arrivals import arrived
from jaxobs.base.lazy import LazyModule
from jaxobs.facts.compilations import OTHER
from jaxobs.facts.numbers import NonFinite, WatchedState
from jaxobs.reasons import signature

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

MOST_NAMES = 100
MOST_ARRAY_BYTES = 2**20
"""Larger arrays are not watched: to look for one NaN would take a copy of all of it. A norm tells as much."""
MOST_HOST_BYTES = 64 * 1024
"""Bytes of the largest NumPy array that is looked at; at once, since its owner may change it."""
MOST_PENDING = 1024
MOST_PENDING_BYTES = 8 * 2**20
MOST_LEAVES = 256
_NUMBERS = (float, int, complex, bool)


@dataclass(slots=True)
class _Name:
    """State of one watched name; only `look` changes it, but for the counter."""

    name: str
    call_site: str | None
    counter: Any = field(default_factory=itertools.count)
    calls: int = 0
    checked: int = 0
    nonfinite: int = 0
    finite: bool | None = None
    step: int | None = None
    last_finite: int | None = None
    unseen: bool = False
    """Whether a value was missed since the last one that was looked at and finite."""
    skipped: Counter[str] = field(default_factory=Counter)
    array: type | None = None
    """Type of the latest value that was a single small array of floats, with its abstract value and its bytes: all
    that a program returns at one place share the one object."""
    aval: Any = None
    bytes: int = 0

    def frozen(self) -> WatchedState:
        return WatchedState(
            name=self.name, calls=self.calls, checked=self.checked, nonfinite=self.nonfinite, finite=self.finite,
            step=self.step, skipped=dict(self.skipped),
        )  # fmt: skip


@dataclass(slots=True)
class _Value:
    """Values that were given at one call."""

    row: _Name
    step: int
    leaves: Sequence[tuple[int, Any]]
    """Arrays that may not be finite, with their numbers in the tree."""
    tree: Any
    bytes: int
    program_step: int | None


@dataclass(frozen=True, slots=True)
class _Bad:
    """A leaf that is not finite."""

    number: int
    nans: int
    infs: int
    size: int
    dtype: str


class Watched:
    """All watched names of one process; see `Store.part`."""

    def __init__(self) -> None:
        # Reentrant: a signal handler of the program may call in while this thread is in here.
        self._lock = threads.RLock()
        self._rows: dict[str, _Name] = {}
        self._pending: deque[_Value] = deque()
        self._bytes = 0
        self.running = False
        """Whether a thread looks: see `begin` and `rest`."""

    # ------------------------------------------------------------------------------------- the program's thread

    def row(self, name: str) -> _Name | None:
        """The row of a name that was met before."""
        return self._rows.get(name)

    def add(self, name: str, call_site: str | None) -> _Name:
        """A name that is new; beyond a bound the one of all others."""
        with self._lock:
            if name not in self._rows and len(self._rows) >= MOST_NAMES:
                name = OTHER
            return self._rows.setdefault(name, _Name(name, call_site))

    def take(self, row: _Name, value: Any, program_step: int | None = None) -> None:
        """Takes in a value; a finite number is done with at once."""
        step = next(row.counter)
        row.calls = step + 1
        kind = type(value)
        if kind is float or kind is int:
            if math.isfinite(value) and row.finite is not False:
                row.checked, row.finite, row.last_finite = row.checked + 1, True, step
                return
            self._put(_Value(row, step, ((0, np.float64(value)),), None, 8, program_step))
        elif kind is row.array and value.aval is row.aval:
            self._put(_Value(row, step, ((0, value),), None, row.bytes, program_step))
        elif hasattr(kind, "is_ready") or isinstance(value, np.ndarray | np.generic | complex):
            kept = self._take(row, step, (value,), None, program_step)
            if kept and hasattr(kind, "is_ready") and hasattr(value, "aval"):
                row.array, row.aval, row.bytes = kind, value.aval, value.nbytes
        else:
            tree_util = internals.tree_util()
            leaves, tree = ((value,), None) if tree_util is None else tree_util.tree_flatten(value)
            self._take(row, step, leaves, tree, program_step)

    def _take(self, row: _Name, step: int, leaves: Sequence[Any], tree: Any, program_step: int | None) -> bool:
        """Takes in what may turn non-finite of the leaves; whether there is something."""
        kept: list[tuple[int, Any]] = []
        total, missed = 0, len(leaves) > MOST_LEAVES
        if missed:
            self._skip(row, "too_many")
        for number, leaf in enumerate(leaves[:MOST_LEAVES]):
            if isinstance(leaf, _NUMBERS):
                leaf = np.asarray(leaf)
            dtype = getattr(leaf, "dtype", None)
            if dtype is None or getattr(dtype, "kind", "") not in "fcV" or hasattr(dtype, "_rules"):
                continue  # no number, or one that is always finite; `_rules`: a key
            if not hasattr(leaf, "is_ready") and not isinstance(leaf, np.ndarray | np.generic):
                self._skip(row, "tracing" if hasattr(leaf, "aval") else "unknown_type")
                missed = True
                continue
            size = leaf.nbytes
            on_host = isinstance(leaf, np.ndarray)
            if size > (MOST_HOST_BYTES if on_host else MOST_ARRAY_BYTES):
                self._skip(row, "too_large")
                missed = True
                continue
            if on_host and size:
                leaf = leaf.copy()
            kept.append((number, leaf))
            total += size
        if kept or not missed:
            self._put(_Value(row, step, kept, tree, total, program_step))
        return bool(kept)

    def _put(self, value: _Value) -> None:
        if len(self._pending) >= MOST_PENDING or self._bytes + value.bytes > MOST_PENDING_BYTES:
            self._skip(value.row, "too_many")
            return
        with self._lock:
            self._bytes += value.bytes
            self._pending.append(value)

    def _skip(self, row: _Name, reason: str) -> None:
        with self._lock:
            row.skipped[reason] += 1
            row.unseen = True

    def raised(self, name: str) -> None:
        """Counts an error by `jax_debug_nans`."""
        row = self.add(name, None)
        with self._lock:
            row.checked, row.nonfinite = row.checked + 1, row.nonfinite + 1

    # -------------------------------------------------------------------------------------------- who looks

    def begin(self) -> bool:
        """Whether the caller is to start a thread that looks: there is none."""
        with self._lock:
            begins, self.running = not self.running, True
            return begins

    def rest(self) -> bool:
        """Whether the thread that looks may end: nothing is pending."""
        with self._lock:
            self.running = bool(self._pending)
            return not self.running

    @property
    def pending(self) -> int:
        """How many values wait to be looked at."""
        return len(self._pending)

    def look(self) -> list[NonFinite]:
        """Asks the values that have arrived, in their order; what turned non-finite must be reported."""
        found = []
        while self._pending:
            with self._lock:
                if not self._pending:
                    break
                value = self._pending[0]
                if not all(arrived(leaf) for _, leaf in value.leaves):
                    break
                self._pending.popleft()
                self._bytes -= value.bytes
            told = self._check(value)
            if told is not None:
                found.append(told)
        return found

    def forget(self) -> None:
        """Releases the values that have not arrived."""
        with self._lock:
            self._pending.clear()
            self._bytes = 0

    def _check(self, value: _Value) -> NonFinite | None:
        row, bad, read = value.row, [], 0
        for number, leaf in value.leaves:
            try:
                each = _bad(number, leaf)
            except RuntimeError:  # donated meanwhile, or the computation itself failed: the program is told of that
                self._skip(row, "deleted")
                continue
            read += 1
            if each is not None:
                bad.append(each)
        if value.leaves and not read:
            return None
        with self._lock:
            row.checked += 1
            if not bad:
                if read or not value.leaves:
                    row.finite, row.step, row.last_finite, row.unseen = True, None, value.step, False
                return None
            row.nonfinite += 1
            first = row.finite is not False
            row.finite = False
            if first:
                row.step = value.step
        return _event(value, bad) if first else None

    def frozen(self) -> tuple[WatchedState, ...]:
        with self._lock:
            return tuple(each.frozen() for each in self._rows.values())


def _bad(number: int, leaf: Any) -> _Bad | None:
    """Returns what is not finite in an array; raises `RuntimeError` if it was deleted or its program failed."""
    nans = infs = size = 0
    for part in _parts(leaf):
        array = np.asarray(part)
        if array.dtype.kind == "V":  # float8 types and the like that NumPy has no test for
            array = array.astype(np.float32)
        size += array.size
        if not np.isfinite(array).all():
            of_part = int(np.isnan(array).sum())
            nans += of_part
            infs += int(array.size - np.isfinite(array).sum()) - of_part
        del array  # a view would keep what is donated next
    return _Bad(number, nans, infs, size, str(leaf.dtype)) if nans or infs else None


def _parts(leaf: Any) -> list[Any]:
    """The array, or of one that other processes have parts of, the parts here."""
    if getattr(leaf, "is_fully_addressable", True) or leaf.is_fully_replicated:
        return [leaf]
    return [shard.data for shard in leaf.addressable_shards]


def _event(value: _Value, bad: Sequence[_Bad]) -> NonFinite:
    row, first = value.row, bad[0]
    nans, infs = any(each.nans for each in bad), any(each.infs for each in bad)
    return NonFinite(
        time=time.time(), name=row.name,
        what=" and ".join(what for what, there in (("nan", nans), ("inf", infs)) if there),
        path=_path(value.tree, first.number), step=value.step, program_step=value.program_step,
        last_finite_step=row.last_finite, exact=not row.unseen, nans=first.nans, infs=first.infs, size=first.size,
        dtype=first.dtype, leaves=len(bad), call_site=row.call_site,
    )  # fmt: skip


def _path(tree: Any, number: int) -> str:
    if tree is None:
        return ""
    return str(internals.tree_util().keystr(tuple(signature.keys_at(tree, [number])[number])))


class NoOutputs:
    """Values that found loops return: the room `loops` derives its own class from this."""

    def frozen(self) -> tuple[WatchedState, ...]:
        """Returns the values that were looked at."""
        return ()


def watched_states(part: Callable[[Any], Any]) -> tuple[WatchedState, ...]:
    """Returns the values that the program watches; if it watches none, those that its loops return."""
    known: tuple[WatchedState, ...] = part(Watched).frozen() or part(NoOutputs).frozen()
    return known
