"""`install()` alone: what it adds to a call of a compiled function, which should be nothing."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

from benchmarks.harness import Figure, caller, interval, quantile, without_gc

CALLS = 500
"""In one turn."""
WARM_UP = 5
"""Turns after installing or removing, which throw everything else out of the processor's caches."""
TURNS = 8
PAIRS = 120
QUICK_PAIRS = 40


def run(quick: bool) -> list[Figure]:
    """Differences between neighbouring blocks with and without jaxobs, against those between two blocks without."""
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
            started = time.perf_counter_ns()
            loop()
            turns.append((time.perf_counter_ns() - started) / CALLS)
        if installed:
            jaxobs.uninstall()
        return quantile(turns, 0.2)

    with_it, without, turns = [], [], []
    with without_gc():
        for _, swapped in zip(range(QUICK_PAIRS if quick else PAIRS), itertools.cycle((False, True)), strict=False):
            # The one first, then the other, by turns: what drifts cancels.
            first, second = block(installed=swapped), block(installed=not swapped)
            installed, bare = (first, second) if swapped else (second, first)
            with_it.append(installed - bare)
            one, another = block(installed=False), block(installed=False)
            without.append(one - another)
            turns.append(bare)
    call = statistics.median(turns)
    low, high = interval(with_it)
    null_low, null_high = interval(without)
    return [
        Figure(name="a call of `jax.jit`", value=call, unit="ns", compared=False),
        Figure(
            name="`install()` adds to a call",
            value=statistics.median(with_it),
            unit="ns",
            note=f"95 % confidence: {low:+.1f} to {high:+.1f}; without it: {null_low:+.1f} to {null_high:+.1f}",
            compared=False,
        ),
        Figure(
            name="`install()` surely adds to a call",
            value=max(0.0, low) / call * 100,
            unit="%",
            limit=0.5,
            note="lower end of the confidence interval: 0 if no difference was measured",
        ),
    ]
