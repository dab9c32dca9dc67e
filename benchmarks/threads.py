"""Threads: whether jaxobs counts calls exactly while threads call functions, functions fail, and a client scrapes."""

from __future__ import annotations

import sys
import threading
from typing import Any

from benchmarks.harness import Effort, Figure

THREADS = 16
CALLS = 3_000
FAILING = 50
"""Every so manieth call raises."""


def run(effort: Effort) -> list[Figure]:
    """Calls and errors that were miscounted by 16 threads, with an interpreter that switches as often as it can."""
    import jax.numpy as jnp

    import jaxobs
    from jaxobs.exporters.forms.exposition import Renderer
    from jaxobs.state.store import current

    calls = effort.rounds(CALLS)

    def increment(x: Any) -> Any:
        return x + 1

    shared = jaxobs.jit(increment, name="shared")
    every = jaxobs.jit(increment, name="every call timed")
    own = [jaxobs.jit(increment, name=f"own {number}") for number in range(THREADS)]
    x = jnp.float32(1)
    for function in (shared, every, *own):
        function(x)
    current().call_stats("every call timed").time("all")
    failing = jaxobs.instrument(_fails, name="failing")
    ready, stop = threading.Barrier(THREADS), threading.Event()

    def work(number: int) -> None:
        ready.wait()
        for call in range(calls):
            shared(x)
            every(x)
            own[number](x)
            if call % FAILING == 0:
                try:
                    failing()
                except ZeroDivisionError:
                    continue

    def scrape() -> None:
        renderer = Renderer(current())
        while not stop.wait(0.01):
            renderer.render()
            current().tick()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    scraper = threading.Thread(target=scrape)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    try:
        for thread in (*threads, scraper):
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        stop.set()
    scraper.join()

    found = {each.name: each for each in current().snapshot().functions}
    failures = THREADS * len(range(0, calls, FAILING))
    expected = {"shared": THREADS * calls + 1, "every call timed": THREADS * calls + 1, "failing": failures}
    expected |= {f"own {number}": calls + 1 for number in range(THREADS)}
    wrong = sum(abs((found[name].calls or 0) - number) for name, number in expected.items())
    wrong += abs(found["failing"].errors["ZeroDivisionError"] - failures)
    timed = found["every call timed"].dispatch
    assert timed is not None
    return [
        Figure(
            name=f"calls miscounted by {THREADS} threads",
            value=wrong,
            unit="calls",
            limit=0,
            note=f"of {sum(expected.values())}, among scrapes and ticks",
        ),
        Figure(
            name="share of calls without a time, with every call timed",
            value=(1 - sum(timed.counts) / expected["every call timed"]) * 100,
            unit="%",
        ),
    ]


def _fails() -> None:
    raise ZeroDivisionError
