"""Loops that are found: what the hook that sees calls adds to a call of a compiled function, and to a step of 1 ms."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

from benchmarks.harness import Figure, caller, interval, quantile, without_gc

CALLS = 500
"""In one turn."""
TURNS = 6
PAIRS = 120
QUICK_PAIRS = 40
STEP_NS = 1e6


def run(quick: bool) -> list[Figure]:
    """Differences between neighbouring blocks of calls with and without the hook, by turns."""
    import jax
    import jax.numpy as jnp

    from jaxobs.internals import post_hook
    from jaxobs.loops import seen_calls
    from jaxobs.loops.host_waits import HostWaits
    from jaxobs.loops.loop_outputs import LoopOutputs
    from jaxobs.state.wall import Wall

    def increment(x: Any) -> Any:
        return x + 1

    jitted = jax.jit(increment)
    loop = caller(jitted, jnp.float32(1), CALLS)
    loop()
    calls = seen_calls.SeenCalls(lambda stats: None, LoopOutputs(), HostWaits())
    wall = Wall()

    def block(seen: bool) -> float:
        """Nanoseconds of a call in a few turns, with the hook or without."""
        turns = []
        for _ in range(TURNS):
            if seen:
                calls._left = seen_calls.MOST_CALLS
                calls.watch(wall)
            started = time.perf_counter_ns()
            loop()
            turns.append((time.perf_counter_ns() - started) / CALLS)
            post_hook.take(calls.hook)
            calls.fold()
        return quantile(turns, 0.2)

    added, plain = [], []
    with without_gc():
        for _, swapped in zip(range(QUICK_PAIRS if quick else PAIRS), itertools.cycle((False, True)), strict=False):
            first, second = block(seen=swapped), block(seen=not swapped)
            seen, bare = (first, second) if swapped else (second, first)
            added.append(seen - bare)
            plain.append(bare)
    calls.stop()
    median, (low, high) = statistics.median(added), interval(added)
    return [
        Figure(name="a call of `jax.jit`", value=statistics.median(plain), unit="ns", compared=False),
        Figure(
            name="the hook adds to a call that it sees",
            value=median,
            unit="ns",
            note=f"95 % confidence: {low:+.1f} to {high:+.1f}",
        ),
        Figure(name="that is, of a step of 1 ms", value=median / STEP_NS * 100, unit="%", limit=0.1),
        Figure(
            name="all calls that it sees in a second at most",
            value=median * seen_calls.CALLS_A_SECOND / 1e9 * 100,
            unit="%",
            limit=0.2,
        ),
    ]
