"""Tools of every benchmark: figures with their bounds, and statistics that a busy machine does not upset.

Whatever is compared is measured in turns within one run. Noise only ever adds time, so that a low quantile of many
short turns is what the code costs; where two things are subtracted, it is done turn by turn, and the median counts.
Calls are timed on the thread's clock of the processor: other programs do not count.
Turns go on until the interval of confidence is clear of the bound: see `by_turns`.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Measured value, with its bound if it has one."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    """Largest value allowed; None for what only explains another figure."""
    low: float | None = None
    high: float | None = None
    """Ends of the interval of confidence, for a figure that has one."""
    note: str = ""
    """Way in which the figure was measured, or what to compare it with."""
    compared: bool = True
    """Whether the baseline bounds the figure. Not what JAX, Python or another library costs, nor what is known only
    within an interval of confidence."""

    @property
    def verdict(self) -> Literal["", "holds", "over", "unsure"]:
        """Says whether the bound holds: unsure if it lies inside the interval."""
        if self.limit is None:
            return ""
        low, high = (self.value if end is None else end for end in (self.low, self.high))
        return _verdict(self.value, low, high, self.limit)


EXACT = 0.1
"""An interval that reaches no further than this share of the bound to either side leaves the verdict to the median."""


def _verdict(value: float, low: float, high: float, limit: float) -> Literal["holds", "over", "unsure"]:
    exact = high - low <= 2 * EXACT * abs(limit)
    if high <= limit or (exact and value <= limit):
        return "holds"
    return "over" if low > limit or exact else "unsure"


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a benchmark measures."""

    share: float = 1.0
    """Times what `make bench` measures."""
    stops: bool = True
    """Whether pairs end when the bound is settled; otherwise they take all of their time, for exact figures."""

    def rounds(self, usual: int) -> int:
        """Rounds in place of the usual number."""
        return max(3, round(usual * self.share))


QUICK, USUAL, LONGER, THOROUGH = Effort(0.25), Effort(), Effort(3.0), Effort(5.0, stops=False)
LEAST_PAIRS = 8
_CAREFUL = 0.99
"""Confidence of the interval that ends a measurement: it is looked at several times."""


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
                    started = time.thread_time_ns()
                    loop()
                    piece.append(time.thread_time_ns() - started)
    return {name: sum(quantile(piece, 0.2) for piece in each) / calls for name, each in times.items()}


BATCHES = 6
"""Measurements of their own, of which each is as good: their median lies between the least and the largest of six
with 97 % confidence."""


def in_batches(rounds: int, measured: Callable[[int], dict[str, float]]) -> list[dict[str, float]]:
    """Returns what costs are in each batch of so many rounds altogether."""
    return [measured(-(-rounds // BATCHES)) for _ in range(BATCHES)]


def of_batches(name: str, values: Iterable[float], **more: Any) -> Figure:
    """A figure with its interval, from one value of each batch."""
    ordered = sorted(values)
    return Figure(name=name, value=statistics.median(ordered), low=ordered[0], high=ordered[-1], **more)


def caller(fun: Callable[..., Any], argument: Any, calls: int) -> Callable[[], None]:
    """A loop that calls `fun(argument)` so many times, and does as little else as Python can."""

    def loop() -> None:
        for _ in itertools.repeat(None, calls):
            fun(argument)

    return loop


def by_turns(
    difference: Callable[[bool], float], effort: Effort, *, seconds: float, limit: float | None = None
) -> list[float]:
    """Returns differences between neighbours, measured until it is settled whether their median is within a bound.

    Args:
      difference: measures both of a pair, and returns what the one takes more than the other. It is called with
        False and True by turns, for the order of the two: what drifts cancels.
      seconds: after which the usual effort ends, settled or not.
      limit: bound of the median, in the unit of the differences; None to use all of the time.
    """
    found: list[float] = []
    ends = time.perf_counter() + seconds * effort.share
    for swapped in itertools.cycle((False, True)):
        found.append(difference(swapped))
        if len(found) < LEAST_PAIRS or len(found) % 2:
            continue
        if time.perf_counter() >= ends or (effort.stops and limit is not None and _settled(found, limit)):
            break
    return found


def _settled(values: Sequence[float], limit: float) -> bool:
    low, high = interval(values, confidence=_CAREFUL, draws=400)
    return _verdict(statistics.median(values), low, high, limit) != "unsure"


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
