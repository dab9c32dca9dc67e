"""Python that holds a program up: functions that compiled programs call, and pauses of the garbage collector."""

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping

from jaxobs.base import threads
from jaxobs.facts.wall import HostCallback, HostWork
from jaxobs.internals.source_files import user_line

MOST_CALLBACKS, MOST_LINES, MOST_EARLY = 64, 256, 4096
LONG = 0.001
"""Seconds of a pause from which on it is noted where the program was."""


class HostMeter:
    """Counters of both. Python makes one pause at a time, whatever the thread; callbacks come on any."""

    def __init__(self) -> None:
        self._lock = threads.RLock()
        self._calls: dict[tuple[str, str], list[float]] = {}
        self._pauses = {generation: [0, 0.0] for generation in ("0", "1", "2")}
        self._began = 0.0
        self._early: deque[tuple[float, float]] | None = deque(maxlen=MOST_EARLY)
        """The latest pauses: the end of each and its seconds, until the moment of the first step is known."""
        self._before = (0, 0.0)
        self._compiling = [0, 0.0]
        """Pauses while a program was traced or compiled: part of what that costs, and not of the steps."""
        self.compiles: Callable[[], bool] = lambda: False
        """Returns whether one is traced or compiled now; called in a pause."""
        self._lines: dict[str, float] = {}

    def called(self, function: str, line: str, seconds: float | None) -> None:
        """Counts a call of Python by a compiled program; with None as it begins, then its seconds."""
        with self._lock:
            known = (function, line) in self._calls or len(self._calls) < MOST_CALLBACKS
            calls = self._calls.setdefault((function, line) if known else ("<other>", ""), [0, 0.0])
            calls[0] += seconds is None
            calls[1] += seconds or 0.0

    def collected(self, phase: str, info: Mapping[str, int]) -> None:
        """Counts a pause, for `gc.callbacks`: at any moment, in the middle of anything, so only what cannot fail."""
        now = time.perf_counter()
        if phase == "start":
            self._began = now
        elif self._began:
            took = now - self._began
            pauses = self._pauses.setdefault(str(info["generation"]), [0, 0.0])
            pauses[0] += 1
            pauses[1] += took
            if self.compiles():
                self._compiling[0] += 1
                self._compiling[1] += took
                return
            if (early := self._early) is not None:
                early.append((now, took))
            if took >= LONG and len(self._lines) < MOST_LINES:
                line = user_line(sys._getframe().f_back) or ""
                self._lines[line] = self._lines.get(line, 0.0) + took

    def frozen(self, first_step: float | None) -> HostWork:
        """Returns the state now; `first_step` is when the first step began, by `time.perf_counter`."""
        with self._lock:
            calls = sorted(((spent, int(made), key) for key, (made, spent) in self._calls.items()), reverse=True)
        pauses = {generation: (int(count), seconds) for generation, (count, seconds) in self._pauses.items()}
        count, seconds = sum(each[0] for each in pauses.values()), sum(each[1] for each in pauses.values())
        count, seconds = count - int(self._compiling[0]), seconds - self._compiling[1]
        if first_step is None:
            self._before = count, seconds
        elif (early := self._early) is not None:
            after = [took for when, took in early.copy() if when >= first_step]
            self._early, self._before = None, (count - len(after), seconds - sum(after))
        return HostWork(
            callbacks=tuple(HostCallback(function=f, line=at, calls=made, seconds=t) for t, made, (f, at) in calls),
            pauses={generation: each[0] for generation, each in pauses.items()},
            pause_seconds={generation: each[1] for generation, each in pauses.items()},
            step_pauses=max(0, count - self._before[0]), step_pause_seconds=max(0.0, seconds - self._before[1]),
            pause_line=max(self._lines.copy(), key=self._lines.__getitem__, default=None) or None,
        )  # fmt: skip
