"""Found loops: the time that the call hook adds to a call and to a step of 1 ms, and the clock's share of a core.

The clock looks at the program's thread, to say where the host's time goes.
"""

from __future__ import annotations

import queue
import statistics
import threading
import time
from typing import Any
from unittest.mock import patch

from benchmarks.harness import Effort, Figure, by_turns, caller, interval, quantile, without_gc

CALLS = 500
"""In one turn."""
TURNS = 6
SECONDS = 6.0
STEP_NS = 1e6
MOST_OF_STEP, MOST_OF_SECOND = 0.1, 0.2
"""Percent."""
LOOKS = 200
MOST_OF_CORE = 0.1
"""Percent."""
SIZE = 256
PYTHON = 50_000
"""Turns of Python in a step."""
BATCH_SECONDS = 0.004


def run(effort: Effort) -> list[Figure]:
    """Calls that are seen, and looks of the clock."""
    return [*_hook(effort), *_looks(effort)]


def _hook(effort: Effort) -> list[Figure]:
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
        Figure(name="the hook adds to a call", value=median, unit="ns", low=low, high=high),
        Figure(
            name="the hook's share of a step of 1 ms", unit="%", limit=MOST_OF_STEP,
            value=median * per_step, low=low * per_step, high=high * per_step,
        ),
        Figure(
            name="the hook's share of a second, at most", unit="%", limit=MOST_OF_SECOND,
            value=median * per_second, low=low * per_second, high=high * per_second,
        ),
    ]  # fmt: skip


def _looks(effort: Effort) -> list[Figure]:
    """Looks at a loop that waits for its batches, runs Python and reads its loss, with the interruptions before them.

    They come as often as at the start of a program, and are counted as often as in the steady state.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    import jaxobs
    from jaxobs.loops.clock import Clock
    from jaxobs.loops.intervals import STEADY_LOOK_SECONDS
    from jaxobs.loops.spots import Glance

    jaxobs.install(sample_interval=0.5)
    batches: queue.Queue[Any] = queue.Queue(2)
    costs: list[float] = []
    wanted = effort.rounds(LOOKS)

    look, glance = Clock.look, Clock._glance
    started = 0.0

    def begins(clock: Clock) -> Glance | None:
        nonlocal started
        started = started or time.thread_time()
        return glance(clock)

    def timed(clock: Clock, seen: Glance | None = None) -> None:
        nonlocal started
        clock._made = 0  # for the next look to come as soon as at the start
        look(clock, seen)
        costs.append(time.thread_time() - started)
        started = 0.0

    def load() -> None:
        batch = np.ones((SIZE, SIZE), np.float32)
        while len(costs) < wanted:
            time.sleep(BATCH_SECONDS)
            batches.put(batch)
        batches.put(None)

    def train(w: Any, x: Any) -> tuple[Any, Any]:
        w = w - 0.01 * x.T @ jnp.tanh(x @ w) / len(x)
        return w, jnp.mean(w**2)

    step = jax.jit(train)
    threading.Thread(target=load, daemon=True).start()
    w = jnp.ones((SIZE, SIZE))
    with patch.object(Clock, "_glance", begins), patch.object(Clock, "look", timed):
        while (batch := batches.get()) is not None:
            for _ in range(PYTHON):
                pass
            w, loss = step(w, batch)
            float(loss)
        jaxobs.uninstall()
    low, high = interval(costs)
    note = f"{len(costs)} looks, one in {STEADY_LOOK_SECONDS} s after the first minute"
    share = 100 / STEADY_LOOK_SECONDS
    return [
        Figure(name="a look", value=statistics.median(costs) * 1e6, unit="µs", low=low * 1e6, high=high * 1e6),
        Figure(
            name="looks in the steady state", value=statistics.median(costs) * share, unit="%", limit=MOST_OF_CORE,
            low=low * share, high=high * share, note=note,
        ),
    ]  # fmt: skip
