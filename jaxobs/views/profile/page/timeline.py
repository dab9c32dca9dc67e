"""The timeline of a device: which category had most of the time, in as many moments as fit on a screen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jaxobs.profiles import intervals
from jaxobs.profiles.analysis import Analysis
from jaxobs.profiles.tracks import Track

MOMENTS = 800


@dataclass(frozen=True, slots=True)
class Stretch:
    """Moments in a row with the same main thing. `start` and `end` are parts of the window, from 0 to 1."""

    start: float
    end: float
    name: str
    """A category, or the reason of idle time."""
    idle: bool
    operation: str | None
    """What had most of the time in it."""


def stretches(found: Analysis, track: Track) -> list[Stretch]:
    """The timeline of one device."""
    start, end = found.trace.window
    width = (end - start) / MOMENTS or 1.0
    moments: list[dict[tuple[str, bool, str | None], float]] = [defaultdict(float) for _ in range(MOMENTS)]
    for begun, ended, name, idle, operation in _spent(found, track):
        first = max(0, int((begun - start) / width))
        last = min(MOMENTS - 1, int((ended - start) / width))
        for at in range(first, last + 1):
            inside = min(ended, start + (at + 1) * width) - max(begun, start + at * width)
            if inside > 0:
                moments[at][name, idle, operation] += inside
    return list(_joined(moments))


def _spent(found: Analysis, track: Track) -> Iterator[tuple[float, float, str, bool, str | None]]:
    for row in track.rows:
        for begun, ended, run in intervals.own_time(row):
            yield begun, ended, found.describe(run).category, False, run.operation
    for begun, ended, reason in found.gaps.get(track.device, ()):
        yield begun, ended, reason, True, None


def _joined(moments: Iterable[dict[tuple[str, bool, str | None], float]]) -> Iterator[Stretch]:
    begun, current = 0, None
    inside: dict[str | None, float] = defaultdict(float)
    at = -1
    for at, spent in enumerate(moments):
        sums: dict[tuple[str, bool], float] = defaultdict(float)
        for (name, idle, _), time in spent.items():
            sums[name, idle] += time
        most = max(sums, key=lambda key: sums[key], default=None)
        if most != current and at:
            yield from _stretch(begun, at, current, inside)
            begun, inside = at, defaultdict(float)
        current = most
        for (name, idle, operation), time in spent.items():
            if (name, idle) == most:
                inside[operation] += time
    yield from _stretch(begun, at + 1, current, inside)


def _stretch(
    begun: int, ended: int, most: tuple[str, bool] | None, inside: dict[str | None, float]
) -> Iterator[Stretch]:
    if most is not None:
        name, idle = most
        operation = max(inside, key=lambda each: inside[each], default=None)
        yield Stretch(begun / MOMENTS, ended / MOMENTS, name, idle, operation)
