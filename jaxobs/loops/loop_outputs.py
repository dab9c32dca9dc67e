"""Whether what the functions of found loops return turns NaN or infinite, where the program watches no value itself.

A diverged training is seen in its scalars: a loss, a norm. Some calls of a function are taken, and their scalar floats
are kept until they have arrived, no longer: a program may count its live arrays. Of a function that returns none, the
last small arrays stand for them, such as the losses of a scan, each by its element nearest to zero: it is finite as
long as any is. A scalar may be NaN for good reasons, a metric of nothing for one, or infinite at first, the best loss
so far. So it counts if it was finite, and from some look on never was; and if it is called a loss, or the others did so
with it, but for those that never change. One that was never anything but NaN counts if it is called a loss, or all are.
"""

from __future__ import annotations

import math
import re
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.arrivals import arrived
from jaxobs.base.lazy import LazyModule
from jaxobs.facts.numbers import NonFinite, WatchedState
from jaxobs.internals.source_files import user_line
from jaxobs.reasons import signature
from jaxobs.state.watched import NoOutputs

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

LOOK_SECONDS = 0.5
"""Between two calls of a function that are taken, ..."""
EARLY = 1.2
"""... or fewer, if it has been called that many times as often since."""
BUDGET = 0.0005
"""Share of a core that taking may cost, after the early calls."""
FEWEST_BAD = 3
"""Looks in a row in which a scalar is not finite, so that it counts."""
FEWEST_CALLS = 20
"""Calls that lie between the first and the last of them at least."""
LEAST_PAUSE, MOST_PAUSE = 0.001, 0.05
"""Seconds between two looks at an output that is being computed."""
MOST_FUNCTIONS = 200
MOST_SCALARS = 16
MOST_SMALL = 4096
"""Elements of a small array."""
MOST_PENDING = 64
_LOSS = re.compile(r"loss|cost|nll|elbo|objective", re.IGNORECASE)


@dataclass(slots=True)
class _Scalar:
    """A scalar that a function returns."""

    path: str
    dtype: str
    checked: int = 0
    bad: int = 0
    """Looks in a row in which it was not finite, ..."""
    since: int = 0
    """... and the call of the first of them."""
    nonfinite: int = 0
    """All looks in which it was."""
    is_nan: bool = False
    """Whether the scalar was NaN at the latest look."""
    value: float | None = None
    """The latest that was finite."""
    changes: bool = False
    """Whether the scalar had two finite values."""
    reported: bool = False
    known: bool = False
    """Whether the scalar was ever reported."""

    def lasts(self, call: int) -> bool:
        """Returns whether the scalar has not been finite since some call, and was before or was never a number."""
        counts = self.value is not None or (self.is_nan and self.nonfinite == self.checked)
        return counts and self.bad >= FEWEST_BAD and call - self.since >= FEWEST_CALLS


@dataclass(slots=True)
class _Function:
    name: str
    calls: int = 0
    """At the latest call that was taken."""
    due: float = 0.0
    call_site: str | None = None
    scalars: dict[tuple[int, int], _Scalar] = field(default_factory=dict)
    """By the hash, which runs no code of the program, of the structure that it returns, and the number of the leaf."""


@dataclass(frozen=True, slots=True)
class _Output:
    function: _Function
    call: int
    tree: Any
    leaves: Sequence[tuple[int, Any]]


class LoopOutputs(NoOutputs):
    """Values that the functions of found loops return; see `Store.part`."""

    def __init__(self) -> None:
        self._lock = threads.RLock()
        self._functions: dict[str, _Function] = {}
        self._pending: deque[_Output] = deque()
        self._found: list[NonFinite] = []
        # Held while nobody is to wake up. Unlike an event's, its release can be interrupted by a signal's.
        self._wake = threads.Lock()
        self._wake.acquire()

    def take(self, name: str, calls: int, output: Any, caller: FrameType) -> None:
        """Takes in what a call of a function returned, if it is time for that. Waits for nobody.

        Args:
          calls: how often it has been called, as far as that was seen.
        """
        now = perf_counter()
        function = self._functions.get(name)
        if function is None:
            if len(self._functions) >= MOST_FUNCTIONS:
                return
            function = self._functions.setdefault(name, _Function(name))
        if (calls < EARLY * function.calls and now < function.due) or len(self._pending) >= MOST_PENDING:
            return
        function.calls = calls
        if function.call_site is None:
            function.call_site = user_line(caller)
        tree_util = internals.tree_util()
        if tree_util is None:
            return
        leaves, tree = tree_util.tree_flatten(output)
        floats = [
            (number, leaf) for number, leaf in enumerate(leaves)
            if hasattr(type(leaf), "is_ready") and getattr(leaf.dtype, "kind", "") in "fV" and leaf.size <= MOST_SMALL
        ]  # fmt: skip
        kept = [each for each in floats if each[1].shape == ()][:MOST_SCALARS] or floats[-MOST_SCALARS:]
        if kept:
            self._pending.append(_Output(function, calls, tree, kept))
            self.wake()
        function.due = now + max(LOOK_SECONDS, (perf_counter() - now) / BUDGET)

    @property
    def pending(self) -> int:
        """How many outputs wait to be looked at."""
        return len(self._pending)

    def look(self) -> list[NonFinite]:
        """Asks the outputs that have arrived; returns what must be reported."""
        self.settle()
        found, self._found = self._found, []
        return found

    def forget(self) -> None:
        """Releases the outputs that have not arrived."""
        with self._lock:
            self._pending.clear()

    def wake(self) -> None:
        """Ends a wait in `settle_until`."""
        with suppress(RuntimeError):  # it is awake
            self._wake.release()

    def settle_until(self, until: float) -> None:
        """Asks whatever arrives until then, by `perf_counter`, soon after it does; woken for nothing, it returns."""
        pause = LEAST_PAUSE
        while (left := until - perf_counter()) > 0:
            if self._pending:
                time.sleep(min(pause, left))
                pause = min(2 * pause, MOST_PAUSE)
                self.settle()
            elif self._wake.acquire(timeout=left):
                pause = LEAST_PAUSE
                if not self._pending:
                    return

    def settle(self) -> None:
        """Asks the outputs that have arrived, in their order, unless another thread does."""
        if not self._pending or not self._lock.acquire(blocking=False):
            return
        try:
            while self._pending and all(arrived(leaf) for _, leaf in self._pending[0].leaves):
                output = self._pending.popleft()
                for number, leaf in output.leaves:
                    _check(output, number, leaf)
                event = _report(output)
                if event is not None:
                    self._found.append(event)
        finally:
            self._lock.release()

    def frozen(self) -> tuple[WatchedState, ...]:
        """Returns the scalars that were reported."""
        with self._lock:
            return tuple(
                WatchedState(
                    name=f"{function.name}(){scalar.path}", calls=function.calls, checked=scalar.checked,
                    nonfinite=scalar.nonfinite, finite=scalar.bad == 0, step=None,
                )
                for function in list(self._functions.values())
                for scalar in list(function.scalars.values())
                if scalar.known
            )  # fmt: skip


def _check(output: _Output, number: int, leaf: Any) -> None:
    try:
        value = float(np.fmin.reduce(np.abs(np.asarray(leaf, np.float32)), axis=None))
    except (RuntimeError, TypeError, ValueError):  # donated meanwhile, failed, or no number: a key
        return
    known, key = output.function.scalars, (hash(output.tree), number)
    scalar = known.get(key)
    if scalar is None:
        if len(known) >= MOST_SCALARS:
            return
        path = _path(output.tree, number) if len(output.leaves) > 1 else ""
        scalar = known.setdefault(key, _Scalar(path, str(leaf.dtype)))
    scalar.checked += 1
    scalar.is_nan = math.isnan(value)
    if math.isfinite(value):
        scalar.changes = scalar.changes or scalar.value not in (None, value)
        scalar.bad, scalar.reported, scalar.value = 0, False, value
        return
    if not scalar.bad:
        scalar.since = output.call
    scalar.bad, scalar.nonfinite = scalar.bad + 1, scalar.nonfinite + 1


def _report(output: _Output) -> NonFinite | None:
    """Returns the scalars to report: of several that diverged together the loss, if one is called so."""
    scalars = [each for (tree, _), each in output.function.scalars.items() if tree == hash(output.tree)]
    lasting = [each for each in scalars if each.lasts(output.call)]
    losses = [each for each in lasting if _LOSS.search(each.path)]
    never = all(each.value is None for each in lasting)
    together = all(each.bad or not (never or each.changes) for each in scalars)
    scalar = next(iter(losses or (lasting if together else ())), None)
    if scalar is None or any(each.reported for each in scalars):
        return None
    scalar.reported = scalar.known = True
    return NonFinite(
        time=time.time(), name=f"{output.function.name}(){scalar.path}", source="loop", exact=False,
        what="nan" if scalar.is_nan else "inf", nans=int(scalar.is_nan), infs=int(not scalar.is_nan),
        dtype=scalar.dtype, call_site=output.function.call_site,
    )  # fmt: skip


def _path(tree: Any, number: int) -> str:
    return str(internals.tree_util().keystr(tuple(signature.keys_at(tree, [number])[number])))
