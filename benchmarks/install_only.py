"""`install()` alone: the time that `install()` adds to a call of a compiled function, which should be 0."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.harness import Effort, Figure, by_turns, caller, interval, quantile, without_gc

CALLS = 500
"""In one turn."""
WARM_UP = 5
"""Turns after installing or removing, which throw everything else out of the processor's caches."""
TURNS = 24
SECONDS = 16.0
MOST = 0.5
"""Percent of a call."""


def run(effort: Effort) -> list[Figure]:
    """Differences between neighbouring blocks with and without jaxobs."""
    import jax
    import jax.numpy as jnp

    import jaxobs

    def increment(x: Any) -> Any:
        return x + 1

    jitted = jax.jit(increment)
    x = jnp.float32(1)
    loop = caller(jitted, x, CALLS)
    loop()

    def block(installed: bool) -> float:
        """Nanoseconds of a call in a few turns, with jaxobs or without."""
        if installed:
            jaxobs.install()
        for _ in range(WARM_UP):
            loop()
        turns = []
        for _ in range(TURNS):
            started = time.thread_time_ns()
            loop()
            turns.append((time.thread_time_ns() - started) / CALLS)
        if installed:
            jaxobs.uninstall()
        return quantile(turns, 0.2)

    turns: list[float] = []

    def difference(swapped: bool) -> float:
        first, second = block(installed=swapped), block(installed=not swapped)
        installed, bare = (first, second) if swapped else (second, first)
        turns.append(bare)
        return installed - bare

    with without_gc():
        limit = block(installed=False) * MOST / 100
        added = by_turns(difference, effort, seconds=SECONDS, limit=limit)
    call = statistics.median(turns)
    median, (low, high) = statistics.median(added), interval(added)
    return [
        Figure(name="a call of `jax.jit`", value=call, unit="ns", compared=False),
        Figure(
            name="`install()` adds to a call", value=median, unit="ns", low=low, high=high, compared=False,
            note=f"{len(added)} pairs of blocks",
        ),
        Figure(
            name="`install()`'s share of the call", unit="%", limit=MOST, compared=False,
            value=median / call * 100, low=low / call * 100, high=high / call * 100,
        ),
    ]  # fmt: skip
