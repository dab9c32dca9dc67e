"""Durations, counted in buckets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts in buckets: `counts[i]` observations were at most `bounds[i]`, the last one has no bound."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    """Not cumulative; one longer than `bounds`."""
    sum: float
