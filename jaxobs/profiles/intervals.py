"""Sets of moments as sorted lists of intervals that don't touch."""

import heapq
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from jaxobs.base import pacing

Interval: TypeAlias = tuple[float, float]


class Spanned(Protocol):
    """Anything with a beginning and an end."""

    @property
    def start(self) -> float:
        """Beginning of the span, in the clock of its trace."""

    @property
    def end(self) -> float:
        """End of the span, in the clock of its trace."""


S = TypeVar("S", bound=Spanned)


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Returns all moments that are in any of the intervals."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        elif end > start:
            merged.append((start, end))
    return merged


def total(intervals: Iterable[Interval]) -> float:
    """Returns the length of all intervals together; they must not overlap."""
    return sum(end - start for start, end in intervals)


def without(intervals: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """Returns the moments of one set that are not in the other."""
    left: list[Interval] = []
    first = 0
    for start, end in intervals:
        while first < len(others) and others[first][1] <= start:
            first += 1
        at = first
        while at < len(others) and others[at][0] < end:
            if others[at][0] > start:
                left.append((start, others[at][0]))
            start = max(start, others[at][1])
            at += 1
        if start < end:
            left.append((start, end))
    return left


def common(intervals: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """Returns the moments that are in both sets."""
    found: list[Interval] = []
    one = two = 0
    while one < len(intervals) and two < len(others):
        start, end = max(intervals[one][0], others[two][0]), min(intervals[one][1], others[two][1])
        if start < end:
            found.append((start, end))
        if intervals[one][1] < others[two][1]:
            one += 1
        else:
            two += 1
    return found


def own_time(row: Iterable[S]) -> list[tuple[float, float, S]]:
    """Divides a row's time among its events: at each moment, the innermost has it."""
    found: list[tuple[float, float, S]] = []
    open_events: list[tuple[float, int, S]] = []
    at = 0.0

    def spend(until: float) -> None:
        nonlocal at
        while open_events and at < until:
            end, _, event = open_events[-1]
            if end <= at:
                open_events.pop()
                continue
            stop = min(end, until)
            found.append((at, stop, event))
            at = stop

    for number, event in enumerate(sorted(row, key=lambda each: (each.start, -each.end))):
        if not number & 63:
            pacing.offer()
        spend(event.start)
        at = max(at, event.start)
        if event.end > event.start:
            open_events.append((event.end, number, event))
    spend(float("inf"))
    return found


def merged(rows: Sequence[Sequence[Interval]]) -> list[Interval]:
    """Returns the union of several sorted sets."""
    return union(heapq.merge(*rows))
