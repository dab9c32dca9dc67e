"""Growth that persists, distinguished from what fills up, comes and goes, or moves up and down.

What counts is the floor of a series: the value that it has never been below since. What is released later drops out of
it by itself, so that growth of the floor is what was kept. A run is a stretch of regular rises of the floor up to now.
"""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

MOST_POINTS = 256
LEAST_RISES = 24
"""Samples in which the floor rose: two minutes at the default interval."""
LEAST_RISES_AT_END = 5
"""Samples that are enough when the program ends: what has grown until then will not be released any more."""
LIKELY_RISES = 2
"""Samples, each with a rise, from which on growth until the end of a short program is a likely leak."""
EARLY_CALLS = 20
"""Calls that are enough where memory will soon be full, or where a short program has ended."""
WITHOUT_CALLS = 2
"""Factor on the samples if no function's calls are counted: neither steps nor phases of the program are known."""
LEAST_CALLS = 100
"""Calls of one function in which it grew. Warm-up takes a few; an evaluation or a small cache some tens."""
LONGEST_PAUSE = 0.25
"""Part of a run in which there may be no rise: what has filled up rests for longer."""
LEAST_PACE = 0.85
"""Growth in the second half of a run against the first: a cache that fills with what is met by chance slows down."""
LIKELY_PACE = 0.5
"""Pace of a likely leak: in the first of a few samples the program also starts."""
BEYOND_CYCLE = 1.25
"""Growth beyond the largest that was released before, as at the end of an epoch, from which on it is reported again."""
_LEAST_REST = 12
_LEAST_OF_MAIN = 10
_LARGE_RISE = 4.0
_AT_START = 3
_FEW_CALLS = 4
_LARGE_FALL = 0.5


@dataclass(frozen=True, slots=True)
class Point:
    """A value below which the series never was from this sample on."""

    sample: int
    time: float
    value: float
    calls: Mapping[str, int]
    """Calls of the program's functions until then."""


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of regular rises up to now."""

    since: Point
    last: Point
    rises: int
    function: str | None
    """The function whose calls it goes with best; None if none is known."""
    calls: int
    """Calls of the function in the run."""

    @property
    def grown(self) -> float:
        """Growth of the floor."""
        return self.last.value - self.since.value

    @property
    def seconds(self) -> float:
        """Seconds that it took."""
        return self.last.time - self.since.time

    @property
    def per_call(self) -> float | None:
        """Growth with each call of its function."""
        return self.grown / self.calls if self.calls else None


@dataclass(slots=True)
class Floor:
    """The floor of one series, from samples in order. Bounded: a long record has fewer points."""

    points: list[Point] = field(default_factory=list)
    _stride: int = 1
    """Samples between points: of a record that rises for long not each is kept."""
    _base: float | None = None
    _cycle: float = 0.0

    def take(self, now: Point) -> None:
        """Takes in a sample."""
        if self._base is None:
            self._base = now.value
        place = bisect.bisect_left(self.points, now.value, key=lambda point: point.value)
        if place < len(self.points):
            self._let_go(now.value)
            first = self.points[place]
            # Never below it since the first of those that it undercuts; at the same value nothing changes.
            kept = first if first.value == now.value else Point(first.sample, first.time, now.value, first.calls)
            self.points[place:] = [kept]
            if len(self.points) <= LEAST_RISES:
                self._stride = 1
        elif len(self.points) > 1 and self.points[-1].sample - self.points[-2].sample < self._stride:
            self.points[-1] = now
        else:
            self.points.append(now)
        if len(self.points) > MOST_POINTS:
            self.points[1:-1] = self.points[2:-1:2]
            self._stride *= 2
        self._base = min(self._base, now.value)

    def _let_go(self, value: float) -> None:
        """Remembers how high it was, if most of what it had grown by is gone: a cycle."""
        top, base = self.points[-1].value, self._base or 0.0
        if top - value >= _LARGE_FALL * (top - base):
            self._cycle = max(self._cycle, top)

    def run(self, now: Point, *, least: int = LEAST_RISES, calls: int = LEAST_CALLS) -> Run | None:
        """Returns the growth that persists as of the last sample `now`, or None.

        So many samples and `calls` of a function are enough; with fewer than `LEAST_RISES`, the program ends after it.
        """
        at_end = least < LEAST_RISES
        if len(self.points) <= least:
            return None
        # The latest may still be released.
        confirmed = self.points if at_end or self._confirmed(now) else self.points[:-1]
        start = _start(confirmed, now.sample, least)
        if start is None:
            return None
        points = _without_leap(confirmed[start:])
        if len(points) <= least or self._in_known_cycle(points[-1].value):
            return None
        function = _driver(points, calls)
        # A loop that was found after the samples: where its calls began is unknown.
        found_later = least <= LIKELY_RISES and function is not None and function not in points[0].calls
        points = points if found_later else _from_first_calls(points, function)
        if len(points) <= least:
            return None
        if function is None:
            if any(now.calls.values()) or len(points) <= least * WITHOUT_CALLS:
                return None
        elif _is_phase(points[0], now.calls):
            return None
        place = _place(function, by_time=found_later)
        if not _keeps_pace(points, place, LEAST_PACE if least > LIKELY_RISES else LIKELY_PACE):
            return None
        return Run(points[0], points[-1], len(points) - 1, function, _made(points[0], points[-1].calls, function))

    def extended(self, run: Run, now: Point) -> Run:
        """A run that goes on, as of the sample `now`."""
        last = next((each for each in reversed(self.points) if each.sample != now.sample), run.last)
        if last.value == run.last.value:
            return run
        calls = _made(run.since, last.calls, run.function)
        return replace(run, last=last, rises=run.rises + (last.value > run.last.value), calls=calls)

    def _confirmed(self, now: Point) -> bool:
        return not self.points or self.points[-1].sample != now.sample

    def is_over(self, told: Run, now: Point) -> str | None:
        """Why a run that was reported is over as of the sample `now`: `fell` or `stopped`; None while it goes on."""
        # The last point has the latest value: it was taken in, and undercut by nothing since.
        last = self.points[-1]
        if last.value < told.since.value + (1 - _LARGE_FALL) * told.grown:
            return "fell"
        if not self._confirmed(now):
            return None
        if told.function is not None:
            pause, length = _made(last, now.calls, told.function), _made(told.since, now.calls, told.function)
        else:
            pause, length = now.sample - last.sample, now.sample - told.since.sample
        return "stopped" if pause > LONGEST_PAUSE * length and now.sample - last.sample >= _LEAST_REST else None

    def _in_known_cycle(self, value: float) -> bool:
        base = self._base or 0.0
        return self._cycle > base and value - base <= BEYOND_CYCLE * (self._cycle - base)


def _start(points: list[Point], now: int, least: int) -> int | None:
    """Returns where the longest run begins in which no pause is a large part of the whole; None if there is none."""
    longest, found = 0, None
    following = now
    for place in range(len(points) - 1, -1, -1):
        longest = max(longest, following - points[place].sample)
        length = now - points[place].sample
        if len(points) - place > least and longest <= max(1.0, LONGEST_PAUSE * length):
            found = place
        following = points[place].sample
    return found


def _without_leap(points: list[Point]) -> list[Point]:
    """Returns the points without large rises at their start, as when parameters are made."""
    pairs = itertools.pairwise(points)
    rates = [(after.value - before.value) / (after.sample - before.sample) for before, after in pairs]
    usual = statistics.median(rates)
    start = 0
    # A small rise may come before a large one: a sample that was long in coming follows one that came at once.
    while any(rate > _LARGE_RISE * usual for rate in rates[start : start + _AT_START]):
        start += 1
    return points[start:]


def _made(since: Point, calls: Mapping[str, int], function: str | None) -> int:
    return 0 if function is None else calls.get(function, 0) - since.calls.get(function, 0)


def _driver(points: list[Point], least: int) -> str | None:
    """The function with enough calls whose calls the growth goes with most evenly."""
    best: tuple[float, int, str] | None = None
    for function in points[-1].calls:
        made = _made(points[0], points[-1].calls, function)
        if made < least:
            continue
        rates = []
        for before, after in itertools.pairwise(points):
            if function not in before.calls:
                continue  # a loop whose calls were not known yet
            between = _made(before, after.calls, function)
            rates.append((after.value - before.value) / between if between else math.inf)
        rates = rates or [(points[-1].value - points[0].value) / made]
        middle = statistics.median(rates)
        if middle == math.inf or middle <= 0:
            continue
        spread = statistics.median(abs(rate - middle) for rate in rates) / middle
        rank = (round(spread, 2), made, function)
        if best is None or rank < best:
            best = rank
    return None if best is None else best[2]


def _from_first_calls(points: list[Point], function: str | None) -> list[Point]:
    """Returns the points without those before its function was called as often as usual: the program was loading."""
    if function is None:
        return points
    calls = [_made(before, after.calls, function) for before, after in itertools.pairwise(points)]
    usual = statistics.median(calls)
    return points[next(place for place, made in enumerate(calls) if made and made * _FEW_CALLS >= usual) :]


def _is_phase(since: Point, calls: Mapping[str, int]) -> bool:
    """Whether the function that the program calls most rests meanwhile: as training does during an evaluation."""
    main = max(calls, key=lambda name: calls[name], default=None)
    return main is not None and _made(since, calls, main) < _LEAST_OF_MAIN


def _place(function: str | None, *, by_time: bool) -> Callable[[Point], float]:
    """Returns how far a point lies: by calls of the function, or by samples if there is no function."""
    if by_time:
        return lambda point: point.time
    return lambda point: point.sample if function is None else point.calls.get(function, 0)


def _keeps_pace(points: list[Point], place: Callable[[Point], float], least: float) -> bool:
    """Returns whether it grew about as fast in the second half as in the first, which lie at a `place`."""
    first, last = points[0], points[-1]
    if place(last) <= place(first):
        return False
    half = (place(first) + place(last)) / 2
    middle = min(points, key=lambda point: abs(place(point) - half))
    if not place(first) < place(middle) < place(last):
        return False
    early = (middle.value - first.value) / (place(middle) - place(first))
    late = (last.value - middle.value) / (place(last) - place(middle))
    return late >= least * early
