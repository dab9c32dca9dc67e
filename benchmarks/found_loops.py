"""Loops that are found: what the hook that sees calls adds to a call of a compiled function, and to a step of 1 ms."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.harness import Effort, Figure, by_turns, caller, interval, quantile, without_gc

CALLS = 500
"""In one turn."""
TURNS = 6
SECONDS = 6.0
STEP_NS = 1e6
MOST_OF_STEP, MOST_OF_SECOND = 0.1, 0.2
"""Percent."""


def run(effort: Effort) -> list[Figure]:
    """Differences between neighbouring blocks of calls with and without the hook, by turns."""
    import jax
    import jax.numpy as jnp

    from jaxobs.internals import post_hook
    from jaxobs.loops import seen_calls
    from jaxobs.loops.loop_outputs import LoopOutputs
    from jaxobs.state.wall import Wall

    def increment(x: Any) -> Any:
        return x + 1

    jitted = jax.jit(increment)
    loop = caller(jitted, jnp.float32(1), CALLS)
    loop()
    calls = seen_calls.SeenCalls(lambda stats: None, LoopOutputs())
    wall = Wall()

    def block(seen: bool) -> float:
        """Nanoseconds of a call in a few turns, with the hook or without."""
        turns = []
        for _ in range(TURNS):
            if seen:
                calls._left = seen_calls.MOST_CALLS
                calls.watch(wall)
            started = time.thread_time_ns()
            loop()
            turns.append((time.thread_time_ns() - started) / CALLS)
            post_hook.take(calls.hook)
            calls.fold()
        return quantile(turns, 0.2)

    plain: list[float] = []

    def difference(swapped: bool) -> float:
        first, second = block(seen=swapped), block(seen=not swapped)
        seen, bare = (first, second) if swapped else (second, first)
        plain.append(bare)
        return seen - bare

    per_step, per_second = 100 / STEP_NS, 100 * seen_calls.CALLS_A_SECOND / 1e9
    with without_gc():
        limit = min(MOST_OF_STEP / per_step, MOST_OF_SECOND / per_second)
        added = by_turns(difference, effort, seconds=SECONDS, limit=limit)
    calls.stop()
    median, (low, high) = statistics.median(added), interval(added)
    return [
        Figure(name="a call of `jax.jit`", value=statistics.median(plain), unit="ns", compared=False),
        Figure(name="the hook adds to a call that it sees", value=median, unit="ns", low=low, high=high),
        Figure(
            name="that is, of a step of 1 ms", unit="%", limit=MOST_OF_STEP,
            value=median * per_step, low=low * per_step, high=high * per_step,
        ),
        Figure(
            name="all calls that it sees in a second at most", unit="%", limit=MOST_OF_SECOND,
            value=median * per_second, low=low * per_second, high=high * per_second,
        ),
    ]  # fmt: skip
