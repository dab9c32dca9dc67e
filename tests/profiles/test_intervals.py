"""Sets of moments, against the same counted moment by moment."""

import itertools
import random
from collections.abc import Iterable
from typing import NamedTuple

import pytest

from jaxobs.profiles import intervals

LENGTH = 60


class Span(NamedTuple):
    start: float
    end: float


def moments(spans: Iterable[tuple[float, float]]) -> set[int]:
    return {at for start, end in spans for at in range(int(start), int(end))}


def some(dice: random.Random) -> list[tuple[float, float]]:
    return [(start := dice.randrange(LENGTH), start + dice.randrange(8)) for _ in range(dice.randrange(12))]


@pytest.mark.parametrize("seed", range(50))
def test_sets_are_those_of_their_moments(seed: int) -> None:
    dice = random.Random(seed)
    one, other = some(dice), some(dice)
    ours, theirs = intervals.union(one), intervals.union(other)
    assert moments(ours) == moments(one)
    assert intervals.total(ours) == len(moments(one))
    assert moments(intervals.without(ours, theirs)) == moments(one) - moments(other)
    assert moments(intervals.common(ours, theirs)) == moments(one) & moments(other)
    assert intervals.merged([ours, theirs]) == intervals.union([*one, *other])
    assert all(first[1] < second[0] for first, second in itertools.pairwise(ours))


def nested(dice: random.Random, start: int, end: int, deep: int) -> list[Span]:
    """Events that lie in each other, as a thread's do."""
    found, at = [], start
    while at < end:
        at += dice.randrange(4)
        until = min(end, at + dice.randrange(1, 20))
        if at < until:
            found.append(Span(at, until))
            if deep:
                found += nested(dice, at, until, deep - 1)
        at = until
    return found


@pytest.mark.parametrize("seed", range(50))
def test_the_innermost_event_has_the_time(seed: int) -> None:
    """Each moment belongs to the shortest event that covers it, and to one only."""
    dice = random.Random(seed)
    events = list(dict.fromkeys(nested(dice, 0, LENGTH, 3)))
    dice.shuffle(events)
    owned = {at: event for start, end, event in intervals.own_time(events) for at in range(int(start), int(end))}
    parts = [(start, end) for start, end, _ in intervals.own_time(events)]
    assert sum(end - start for start, end in parts) == len(moments(events)) == len(owned)
    for at, event in owned.items():
        covering = [each for each in events if each.start <= at < each.end]
        assert event.end - event.start == min(each.end - each.start for each in covering)
