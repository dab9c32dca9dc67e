"""Which of several processes differ from the others: median and MAD over several windows, before any threshold."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FEWEST = 3
"""Processes among which one can differ, and windows in which it has to."""
WINDOWS = 5
"""Latest windows, which vote."""
_SCALE = 1.4826
"""Makes the MAD of normal values their standard deviation."""
_DEVIATIONS = 3.5
_LEAST_SHARE = 0.1
"""Least share of the median: processes of one job differ by a few per cent without anything being wrong."""


@dataclass(frozen=True, slots=True)
class Outlier:
    """Process that differs from the others of its job."""

    name: str
    value: float
    """Value in the latest window in which it voted."""
    median: float
    """Median of all processes in that window."""
    votes: int
    windows: int


def outliers(series: Mapping[str, Sequence[tuple[float, float]]]) -> list[Outlier]:
    """Returns the processes that differ from the others in most of the latest windows.

    Args:
      series: samples of each process: time and value, at common times.
    """
    by_time: dict[float, dict[str, float]] = {}
    for name, points in series.items():
        for at, value in points:
            by_time.setdefault(at, {})[name] = value
    windows = [(at, each) for at, each in sorted(by_time.items()) if len(each) >= FEWEST][-WINDOWS:]
    if len(windows) < FEWEST:
        return []
    votes: dict[str, list[tuple[float, float]]] = {}
    for _, values in windows:
        middle = statistics.median(values.values())
        spread = _SCALE * statistics.median(abs(each - middle) for each in values.values())
        bound = max(_DEVIATIONS * spread, _LEAST_SHARE * abs(middle))
        for name, value in values.items():
            if abs(value - middle) > bound:
                votes.setdefault(name, []).append((value, middle))
    needed = max(FEWEST, (len(windows) * 3 + 4) // 5)
    return [
        Outlier(name, *given[-1], votes=len(given), windows=len(windows))
        for name, given in sorted(votes.items())
        if len(given) >= needed
    ]


def changed(points: Sequence[tuple[float, float]], since: float) -> tuple[float, float] | None:
    """Returns the medians before and after a moment, if they differ by more than the ordinary variation."""
    before = [value for at, value in points if at < since]
    after = [value for at, value in points if at >= since]
    if len(before) < FEWEST or len(after) < FEWEST:
        return None
    typical, now = statistics.median(before), statistics.median(after)
    spread = _SCALE * statistics.median(abs(each - typical) for each in before)
    return (typical, now) if abs(now - typical) > max(_DEVIATIONS * spread, 0.25 * abs(typical), 1e-12) else None
