"""Counts and times of the calls of one function: the wrapper writes them, exact under threads without a lock.

The hot path only takes one from a counter or appends a float; everything more expensive happens when somebody reads.
"""

import bisect
import itertools
import operator
import sys
from collections import Counter
from collections.abc import Sequence

from jaxobs.base import threads
from jaxobs.facts.compilations import OTHER
from jaxobs.facts.functions import Histogram
from jaxobs.metrics.buckets import DEVICE_BOUNDS, DISPATCH_BOUNDS

MOST_ERROR_TYPES = 16
MOST_LABEL = 200
MOST_WAITING_DURATIONS = 4096
_WORTH_AN_ARRAY = 128

_TIMED_AT_FIRST = {"sampled": 1024, "all": 1024, "off": 0}
_TIMED_EACH_TICK = {"sampled": 64, "all": MOST_WAITING_DURATIONS, "off": 0}
_TIMED_WHEN_SPENT = {"sampled": 0, "all": MOST_WAITING_DURATIONS, "off": 0}
_TIMED_WHILE_SLOW = {"sampled": 1024, "all": MOST_WAITING_DURATIONS, "off": 0}


def label(text: str) -> str:
    """A text of the user's as a label value: bounded, and such that it can be written as UTF-8."""
    return text[:MOST_LABEL].encode("utf-8", "replace").decode()


class MutableHistogram:
    """Counts in buckets, to be changed under its owner's lock."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.sum += value

    def observe_all(self, values: Sequence[float]) -> None:
        """Calls `observe` with each, for less."""
        if len(values) < _WORTH_AN_ARRAY:
            bounds, counts, bucket = self.bounds, self.counts, bisect.bisect_left
            for value in values:
                counts[bucket(bounds, value)] += 1
            self.sum += sum(values)
            return
        import numpy as np

        array = np.array(values)
        buckets = np.bincount(np.searchsorted(self.bounds, array), minlength=len(self.counts))
        self.counts = [old + new for old, new in zip(self.counts, buckets.tolist(), strict=True)]
        self.sum += float(array.sum())

    def frozen(self) -> Histogram:
        return Histogram(self.bounds, tuple(self.counts), self.sum)


class CallStats:
    """Counts and times that the wrapper of one function writes on each call, exact under threads without a lock.

    `next(counter)` and `durations.append` are each one call into C, which no other thread can interrupt.
    """

    __slots__ = (
        "_base", "_device", "_device_skipped", "_dispatch", "_error_kinds", "_errors", "_falls", "_keep_on", "_lock",
        "_reason", "_timing", "counter", "device_due", "device_expected", "durations", "looking", "programs", "stuck",
        "timed", "watched",
    )  # fmt: skip

    def __init__(self) -> None:
        # Counts down in C, without making a number each time.
        self.counter = itertools.repeat(None, sys.maxsize)
        self.durations: list[float] = []
        self.timed = 0
        """Calls that are still to be timed; the thread that times the last one says so by `spent`."""
        self.looking = True
        """Whether calls that are timed are watched as well: not all of them where every call is timed."""
        self.watched = False
        """Whether jaxobs sees the calls that JAX dispatches from Python."""
        self._timing = "off"
        self.reset()

    def reset(self) -> None:
        """Starts from nothing, with fresh locks; wrappers keep what they hold of this object."""
        self._base = self._taken()
        self.durations.clear()
        self._errors: Counter[str] = Counter()
        self._error_kinds: Counter[str] = Counter()
        self._falls: Counter[str] = Counter()
        self._reason: str | None = None
        self._keep_on = False
        self.stuck = False
        """Whether a call was seen that JAX keeps others like it off the fast path for: it raised, or had none."""
        self._dispatch = MutableHistogram(DISPATCH_BOUNDS)
        self._device = MutableHistogram(DEVICE_BOUNDS)
        self._device_skipped: Counter[str] = Counter()
        self.device_due = 0.0
        """From when on, by `perf_counter`, a call that is timed is shown to `DeviceTimes`."""
        self.device_expected = 0.0
        """The latest device time, as far as it is known, in seconds."""
        self.programs: int | None = None
        """How many programs the function had when a call of it was last shown."""
        self._lock = threads.RLock()

    @property
    def calls(self) -> int:
        """Calls so far."""
        return self._taken() - self._base

    def _taken(self) -> int:
        return sys.maxsize - operator.length_hint(self.counter)

    def failed(self, error: BaseException, known_as: str | None = None) -> None:
        """Counts a call that raised, by type and by the kind it is known as; the number of types is bounded."""
        kind = label(type(error).__name__)
        with self._lock:
            if kind not in self._errors and len(self._errors) >= MOST_ERROR_TYPES:
                kind = OTHER
            self._errors[kind] += 1
            if known_as is not None:
                self._error_kinds[known_as] += 1

    def fell(self, cause: str, reason: str, *, keep_on: bool) -> None:
        """Counts a call that left the fast path and compiled nothing; `keep_on` has the next calls watched."""
        with self._lock:
            self._falls[cause] += 1
            self._reason = reason
            self._keep_on = self._keep_on or keep_on

    def time(self, timing: str) -> None:
        """Puts a `dispatch_timing` in force."""
        self._timing = timing
        self.timed = _TIMED_AT_FIRST[timing]
        self.looking = True

    def tick(self) -> None:
        """Digests what waits and lets a few more calls be timed."""
        self.drain()
        self.timed = max(self.timed, _TIMED_EACH_TICK[self._timing])
        self.looking = True

    def see(self, calls: int) -> None:
        """Has the next calls timed, at least so many, unless none are wanted."""
        if self._timing != "off":
            self.timed = max(self.timed, calls)

    def device_took(self, seconds: float) -> None:
        """Takes in the device time of a call."""
        with self._lock:
            self._device.observe(seconds)

    def device_skip(self, reason: str) -> None:
        """Counts a call whose device time had to be reported and could not be found out."""
        with self._lock:
            self._device_skipped[reason] += 1

    def device(self) -> tuple[Histogram | None, dict[str, int]]:
        """Device times of some calls, None where there are none; and calls that have none, by reason."""
        with self._lock:
            return self._device.frozen() if any(self._device.counts) else None, dict(self._device_skipped)

    def spent(self) -> None:
        """All calls that had to be timed have been; where every call is, as many more must be."""
        self.drain()
        with self._lock:
            self.looking = self._keep_on
            each_turn, self._keep_on = _TIMED_WHILE_SLOW if self._keep_on else _TIMED_WHEN_SPENT, False
        self.timed = each_turn[self._timing]

    def drain(self) -> None:
        """Moves the durations that wait into the histogram."""
        with self._lock:
            waiting = self.durations[:]
            del self.durations[: len(waiting)]
            self._dispatch.observe_all(waiting)

    def errors(self) -> dict[str, int]:
        with self._lock:
            return dict(self._errors)

    def error_kinds(self) -> dict[str, int]:
        """Calls that raised an error whose kind is known, by kind."""
        with self._lock:
            return dict(self._error_kinds)

    def falls(self) -> tuple[dict[str, int], str | None]:
        """Calls that JAX dispatched from Python without compiling, by cause, and why the latest was."""
        with self._lock:
            return dict(self._falls), self._reason

    def dispatch(self) -> Histogram | None:
        """Times of the calls that were timed; None if none was."""
        self.drain()
        with self._lock:
            return self._dispatch.frozen() if any(self._dispatch.counts) else None
