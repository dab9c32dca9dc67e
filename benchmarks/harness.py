"""Tools of every benchmark: figures with their bounds, and statistics that a busy machine does not upset.

Whatever is compared is measured in turns within one run. Noise only ever adds time, so that a low quantile of many
short turns is what the code costs; where two things are subtracted, it is done turn by turn, and the median counts.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Measured value, with its bound if it has one."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    """Largest value allowed; None for what only explains another figure."""
    note: str = ""
    """Way in which the figure was measured, or what to compare it with."""
    compared: bool = True
    """Whether the baseline bounds the figure. Not what JAX, Python or another library costs, nor what is known only
    within an interval of confidence: its lower end is a figure of its own."""

    @property
    def holds(self) -> bool:
        """Whether the value is within its limit."""
        return self.limit is None or self.value <= self.limit


@contextlib.contextmanager
def without_gc() -> Iterator[None]:
    """Collects the garbage first, and not within the block."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values lie below."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def nanoseconds_per_call(
    functions: Mapping[str, Callable[..., Any]],
    argument: Any,
    *,
    rounds: int,
    calls: int,
    pieces: int = 8,
    prepare: Callable[[str], None] = lambda name: None,
) -> dict[str, float]:
    """Returns what a call of each function costs, undisturbed.

    In each round every function has a turn, in an order that changes. A turn is cut into pieces that are timed one
    by one, so that a disturbance spoils a piece and no turn; work that comes back once a turn stays in its piece.

    Args:
      functions: by name; each is called with `argument`.
      rounds: turns of each function.
      calls: in one turn; a multiple of `pieces`.
      prepare: called with the name before each turn, outside it.
    """
    order = random.Random(0)
    names = list(functions)
    times: dict[str, list[list[int]]] = {name: [[] for _ in range(pieces)] for name in names}
    loops = {name: caller(function, argument, calls // pieces) for name, function in functions.items()}
    with without_gc():
        for _ in range(rounds):
            order.shuffle(names)
            for name in names:
                prepare(name)
                loop = loops[name]
                for piece in times[name]:
                    started = time.perf_counter_ns()
                    loop()
                    piece.append(time.perf_counter_ns() - started)
    return {name: sum(quantile(piece, 0.2) for piece in each) / calls for name, each in times.items()}


def caller(fun: Callable[..., Any], argument: Any, calls: int) -> Callable[[], None]:
    """A loop that calls `fun(argument)` so many times, and does as little else as Python can."""

    def loop() -> None:
        for _ in itertools.repeat(None, calls):
            fun(argument)

    return loop


def interval(values: Sequence[float], *, confidence: float = 0.95, draws: int = 2000) -> tuple[float, float]:
    """Confidence interval of the median, by drawing from the values again."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(draws))
    cut = int(draws * (1 - confidence) / 2)
    return medians[cut], medians[-1 - cut]


@contextlib.contextmanager
def spinning() -> Iterator[Callable[[], float]]:
    """A thread that computes all the time; gives the longest wait for us that it had since the last question.

    In seconds that the asking thread spent on the processor meanwhile: other programs do not count.
    """
    asking = time.pthread_getcpuclockid(threading.get_ident())
    stop = threading.Event()
    longest = 0.0

    def spin() -> None:
        nonlocal longest
        last = time.clock_gettime(asking)
        while not stop.is_set():
            now = time.clock_gettime(asking)
            longest = max(longest, now - last)
            last = now

    def longest_wait() -> float:
        nonlocal longest
        found, longest = longest, 0.0
        return found

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        yield longest_wait
    finally:
        stop.set()
        thread.join()
