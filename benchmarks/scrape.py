"""Per scrape: the time of a scrape with every bound full, and the longest wait of another thread meanwhile."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.full import PHASES, full_store, function_name
from benchmarks.harness import Effort, Figure, quantile, spinning, without_gc

if TYPE_CHECKING:
    from jaxobs.state.store import Store

ROUNDS = 16
CHANGING = 50
"""Functions whose counters change between two scrapes of a busy process."""


def run(effort: Effort) -> list[Figure]:
    """Milliseconds of a first scrape and of those of a busy process, and the longest wait of another thread."""
    from jaxobs.exporters.forms.exposition import OPENMETRICS, TEXT, Renderer

    rounds = effort.rounds(ROUNDS)
    store = full_store()
    renderer = Renderer(store)
    series = sum(not line.startswith(b"#") for line in renderer.render().splitlines())
    note = f"{series} series"

    def first() -> None:
        Renderer(store).render(OPENMETRICS)

    def first_text() -> None:
        Renderer(store).render(TEXT)

    renderer.render(OPENMETRICS)
    formats = itertools.cycle((TEXT, OPENMETRICS))

    def again() -> None:
        renderer.render(next(formats))

    figures = []
    with without_gc():
        for name, scrape in (
            ("a first scrape, OpenMetrics", first),
            ("a first scrape, text", first_text),
            ("a scrape of a busy process", again),
        ):
            seconds = [_seconds(store, scrape, number) for number in range(rounds)]
            figures.append(Figure(name=name, value=statistics.median(seconds) * 1e3, unit="ms", limit=40.0, note=note))
        figures += _stalls(store, first, again, rounds)
    return figures


def _seconds(store: Store, scrape: Callable[[], None], number: int) -> float:
    _change(store, number)
    started = time.perf_counter()
    scrape()
    return time.perf_counter() - started


def _change(store: Store, number: int) -> None:
    """Does what a busy process does between two scrapes: many functions are called, one is compiled."""
    from jaxobs.facts.compilations import Compilation

    for called in range(CHANGING):
        stats = store.call_stats(function_name((number * 7 + called) % 200))
        next(stats.counter)
        stats.durations.append(1e-4 * called)
    function = function_name(number % 200)
    store.record(
        Compilation(time=time.time(), function=function, cause="shape", reason="Another shape.", phases=PHASES)
    )


def _stalls(store: Store, first: Callable[[], None], again: Callable[[], None], rounds: int) -> list[Figure]:
    """Longest times for which a scrape keeps the interpreter from a thread that only computes."""
    scrapes = {"a first scrape": first, "a scrape of a busy process": again}
    waits: dict[str, list[float]] = {name: [] for name in scrapes}
    with spinning() as longest_wait:
        for number in range(rounds):
            for name, scrape in scrapes.items():
                _change(store, number)
                time.sleep(0.01)
                longest_wait()
                scrape()
                time.sleep(0.01)  # or what is asked for was noticed by nobody yet
                waits[name].append(longest_wait() * 1e3)
    return [
        Figure(
            name=f"longest wait of another thread during {name}",
            value=quantile(found, 0.2),
            unit="ms",
            limit=5.0,
            note=f"at worst {max(found):.1f} ms in {len(found)} scrapes",
        )
        for name, found in waits.items()
    ]
