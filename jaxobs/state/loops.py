"""Loops of steps: how many, how long, how fast. Nothing here waits for a device.

A step's end is marked by a tuple in a list, and that is all that happens on the program's thread. What the marks say is
worked out when somebody asks, on the sampler's thread, or by the step that finds too many of them waiting.

The time of a step runs from the end of the one before it on the same thread to its own. A program hands its work to the
device and goes on; but no faster than the device takes it in, so that over many steps the intervals are the time that
steps take, where the time inside the scope may be nothing but that of the dispatch. For the same reason the mean shows
what the median may not: a host that runs ahead and then waits has many short intervals and a few long ones.
"""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from jaxobs.base import threads
from jaxobs.facts.compilations import OTHER
from jaxobs.facts.loops import LoopState
from jaxobs.metrics.buckets import STEP_BOUNDS
from jaxobs.state.call_stats import MutableHistogram, label
from jaxobs.state.step_history import StepHistory
from jaxobs.state.wall import Wall

MOST_LOOPS = 8
"""Loops with figures of their own; later ones share `<other>`."""
MOST_WAITING = 4096
"""Marks that wait at most: about 1 MB."""
MOST_RECENT = 512
MOST_SHOWN = 120
MOST_THREADS = 64
MOST_LOOKS = 64
MOST_FUNCTIONS = 32
MOST_SLOW = 8
"""Slow steps that are reported one by one in a sample interval."""

SLOW = 3.0
SLOW_SECONDS = 0.1
FEWEST = 64
"""Steps after which there is a usual time that a slow one can be reported by: of the first, a device lets 32 wait."""
RHYTHM = 2
"""More long steps than that among the recent ones are how the loop goes: it waits for the device now and then."""
MOST_AHEAD = 64.0
"""How many steps a host is taken to run ahead at most."""
REST_SECONDS = 60.0
"""A loop that made no step for so long, and for several times its usual, is at rest."""

WATCHED = "<watched>"
"""Among calls by function: which watch has seen them. The calls of a step are known if one watch saw all of them."""
UNNAMED = "<unnamed>"
"""Among calls by function: programs that were compiled ahead of time, and functions without a name."""

Mark = tuple[int, float, float, float, float, "float | None", bool, "dict[str, int] | None"]
"""A step that has ended: the thread's number (0 the charged one), when it was entered and ended, what was apart from
the loop by then (see `Wall.apart`), its items, whether it ended well, and the calls in it if it was looked at."""


class Thread(threading.local):
    """A number for each thread that makes steps and is not charged: those of the system come back."""

    numbers = itertools.count(1)

    def __init__(self) -> None:
        self.number = next(self.numbers)


@dataclass(frozen=True, slots=True)
class SlowStep:
    """A step that took far longer than usual. Times by `perf_counter`."""

    loop: str
    number: int
    began: float
    """The end of the step before it."""
    entered: float
    ended: float
    seconds: float
    usual: float


@dataclass(slots=True)
class Stretch:
    """The steps since they were last reported."""

    began: float
    seconds: list[float] = field(default_factory=list)
    items: float | None = None


class Loop:
    """A declared loop. The scopes append marks (see `jaxobs.instruments.stepping`); everything else is locked."""

    def __init__(self, name: str, wall: Wall, calls: Callable[[], dict[str, int]]) -> None:
        self.name = name
        self.looks = MOST_LOOKS
        """Steps that are still to be looked at for the functions that they call."""
        self.wall = wall
        self.calls = calls
        """How often each function has been called, as far as that is known, and `WATCHED`."""
        self.marks: list[Mark] = []
        # Reentrant: a signal handler of the program may make a step, or ask for a snapshot, while this thread is here.
        self._lock = threads.RLock()
        self._steps = self._failed = self._slow = 0
        self._items: float | None = None
        self._histogram = MutableHistogram(STEP_BOUNDS)
        self._last: dict[int, tuple[float, float]] = {}
        self._ended: float | None = None
        self._recent: deque[tuple[float, float, int, bool]] = deque(maxlen=MOST_RECENT)
        """Seconds, items, thread, and whether it was long: slow, or a wait for the device that was ahead of it."""
        self._history = StepHistory()
        self._sum = self._long_sum = 0.0
        self._long = 0
        self._ahead: dict[int, float] = {}
        self._looked: deque[dict[str, int]] = deque(maxlen=MOST_LOOKS)
        self._told: deque[SlowStep] = deque(maxlen=MOST_SLOW)
        self._stretch = Stretch(perf_counter())

    def look(self, before: Mapping[str, int]) -> dict[str, int] | None:
        """How often each function was called since then, in a step that is looked at; None if calls were missed."""
        self.looks -= 1
        now = self.calls()
        if now.get(WATCHED, 0) < 0 or now.get(WATCHED) != before.get(WATCHED):
            return None
        return {name: made - before.get(name, 0) for name, made in now.items() if made > before.get(name, 0)}

    # ------------------------------------------------------------------------------------- under the lock

    def drain(self) -> None:
        """Works out what the marks say."""
        with self._lock:
            waiting = self.marks[:]
            del self.marks[: len(waiting)]
            for mark in waiting:
                self._take(*mark)

    def _take(
        self, thread: int, entered: float, ended: float, apart: float, left: float, items: float | None,
        finished: bool, looked: dict[str, int] | None,
    ) -> None:  # fmt: skip
        before = self._last.pop(thread, None)
        self._last[thread] = (ended, left)
        if len(self._last) > MOST_THREADS:
            oldest = next(iter(self._last))
            del self._last[oldest]
            self._ahead.pop(oldest, None)
        if not finished:
            self._failed += 1
            return
        self._steps += 1
        self._ended = ended if self._ended is None else max(self._ended, ended)
        if items is not None and items >= 0:
            self._items = items + (self._items or 0)
            self._stretch.items = items + (self._stretch.items or 0)
        if looked is not None and before is not None:  # the first step compiles, and its calls are not all seen
            self._looked.append(looked)
        began = entered if before is None else before[0]
        seconds = ended - began
        if before is not None and apart > before[1]:
            seconds -= min(apart - before[1], max(0.0, entered - began))
        self._histogram.observe(seconds)
        if len(self._stretch.seconds) < MOST_WAITING:
            self._stretch.seconds.append(seconds)
        if before is not None:
            self._remember(thread, began, entered, ended, seconds, items)

    def _remember(
        self, thread: int, began: float, entered: float, ended: float, seconds: float, items: float | None
    ) -> None:
        self._history.add(ended, seconds)
        usual = self._usual()
        long = usual is not None and seconds > max(SLOW * usual, SLOW_SECONDS)
        if usual is not None and self._is_slow(thread, seconds, usual):
            self._slow += 1
            self._told.append(SlowStep(self.name, self._steps, began, entered, ended, seconds, usual))
        if len(self._recent) == MOST_RECENT:
            gone, _, _, was_long = self._recent.popleft()
            self._sum -= gone
            if was_long:
                self._long_sum -= gone
                self._long -= 1
        self._recent.append((seconds, 0.0 if items is None else items, thread, long))
        self._sum += seconds
        if long:
            self._long_sum += seconds
            self._long += 1

    def _usual(self) -> float | None:
        """Seconds of a typical step; None as long as there were too few steps."""
        if len(self._recent) < FEWEST:
            return None
        if self._long > RHYTHM:
            return self._sum / len(self._recent)
        return (self._sum - self._long_sum) / (len(self._recent) - self._long)

    def _is_slow(self, thread: int, seconds: float, usual: float) -> bool:
        """Returns whether a step took longer than the steps that the host was ahead of the device explain."""
        ahead = self._ahead.get(thread, 0.0)
        if seconds > 2 * usual:
            self._ahead[thread] = 0.0
        else:
            self._ahead[thread] = min(max(0.0, ahead + usual - seconds), MOST_AHEAD * usual)
        return seconds - ahead > max(SLOW * usual, SLOW_SECONDS)

    def slow_steps(self) -> list[SlowStep]:
        """The slow steps since they were last asked for, the oldest first."""
        with self._lock:
            self.drain()
            told = list(self._told)
            self._told.clear()
            return told

    def stretch(self, least: float) -> tuple[Stretch, int] | None:
        """The steps since they were last asked for, and the number of the last; None before `least` seconds passed."""
        with self._lock:
            self.drain()
            if not self._stretch.seconds or perf_counter() - self._stretch.began < least:
                return None
            found, self._stretch = self._stretch, Stretch(perf_counter())
            self.looks = max(self.looks, MOST_LOOKS // 4)
            return found, self._steps

    def frozen(self) -> LoopState:
        """Returns the state of the loop; what needs programs and devices is added by who knows them."""
        with self._lock:
            self.drain()
            now = perf_counter()
            known: dict[str, Any] = {}
            if self._recent:
                known = rates([each[0] for each in self._recent], len({each[2] for each in self._recent}))
                if self._items is not None and known["steps_per_second"] is not None:
                    known["items_per_second"] = (
                        known["steps_per_second"] * sum(each[1] for each in self._recent) / len(self._recent)
                    )
            return LoopState(
                name=self.name, steps=self._steps, failed=self._failed, slow=self._slow, items=self._items,
                seconds=self._histogram.frozen(), history=self._history.frozen(time.time() - now),
                ended=None if self._ended is None else time.time() - (now - self._ended), calls=_mean(self._looked),
                **known,
            )  # fmt: skip

    def threads(self) -> int:
        """How many threads made the recent steps."""
        with self._lock:
            return len({each[2] for each in self._recent})


def rates(seconds: list[float], threads: int, wall: float | None = None) -> dict[str, Any]:
    """Times and rates of a `LoopState` by the recent steps, at least one; each thread makes its own.

    `wall` is the mean time from the beginning of a step to its end, where `seconds` leave some out.
    """
    mean = statistics.fmean(seconds)
    ordered = sorted(seconds)

    def percentile(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {
        "recent": tuple(seconds[-MOST_SHOWN:]),
        "mean_seconds": mean,
        "least_seconds": ordered[0],
        "p50_seconds": statistics.median(ordered),
        "p90_seconds": percentile(0.9),
        "p99_seconds": percentile(0.99),
        "steps_per_second": threads / (wall or mean) if wall or mean > 0 else None,
    }


def _mean(looked: deque[dict[str, int]]) -> dict[str, float]:
    """Calls a step by function; those that are called most, where there are very many."""
    total: dict[str, int] = {}
    for calls_by_name in looked:
        for name, calls in calls_by_name.items():
            total[name] = total.get(name, 0) + calls
    most = sorted(total, key=lambda name: -total[name])[:MOST_FUNCTIONS]
    return {name: total[name] / len(looked) for name in most}


def number_of(items: Any) -> float | None:
    """A number of items, if it is one that is known now: an array on a device would have to be waited for."""
    if isinstance(items, int | float) or type(items).__module__ == "numpy":
        number = float(items)
        return number if 0 <= number < float("inf") else None
    return None


class NoLoops:
    """The loops that were found in a program that declares none: the room `loops` derives its own class from this."""

    def frozen(self) -> Sequence[LoopState]:
        """Returns the loops, those with most work first."""
        return ()

    def threads(self, name: str) -> int:
        """Returns the number of threads that made the recent steps of a loop."""
        return 1


class Loops:
    """The loops that the program declares."""

    def __init__(self) -> None:
        self._lock = threads.RLock()
        self._loops: dict[str, Loop] = {}
        self.dropped = 0
        """Loops that had to share a name, each time that one was asked for."""

    @property
    def any(self) -> bool:
        """Whether the program has reported a loop."""
        return bool(self._loops)

    def loop(self, name: str, wall: Wall, calls: Callable[[], dict[str, int]]) -> Loop:
        """The loop of that name, made when first asked for."""
        found = self._loops.get(name)
        if found is None:
            with self._lock:
                found = self._loops.get(label(name))
                if found is None:
                    if len(self._loops) >= MOST_LOOPS:
                        self.dropped += 1
                        name = OTHER
                        if OTHER in self._loops:
                            return self._loops[OTHER]
                    found = self._loops[label(name)] = Loop(label(name), wall, calls)
        return found

    def names(self) -> set[str]:
        """Returns the names of the loops."""
        return set(self._loops)

    def all(self) -> list[Loop]:
        """Every loop, in the order in which they began."""
        with self._lock:
            return list(self._loops.values())

    def steps(self) -> dict[str, int]:
        """Steps so far by loop."""
        return {each.name: each.frozen().steps for each in self.all()}
