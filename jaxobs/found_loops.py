"""Loops that nobody told of: instrumented functions that are called again and again.

Their calls are the steps. Nothing is written for it: the calls are counted anyway, and two counts with the time between
them tell how long a call's turn takes. There are no percentiles, for single calls are not timed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from jaxobs.facts import LoopState
from jaxobs.loops import MOST_SHOWN

FEWEST_CALLS = 20
MOST_FOUND = 5
LEAST_SECONDS = 0.4
"""Counts that are closer together tell too little."""


class _Found:
    """One function: its calls at the last count, and the turns since it began to be called."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.turns: deque[tuple[int, float]] = deque(maxlen=MOST_SHOWN)
        """Calls between two counts, and the seconds between these."""
        self.ended: float | None = None
        self.going = False


class FoundLoops:
    """The functions that are called in a loop, as far as the counts of their calls tell."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._found: dict[str, _Found] = {}
        self._counted: float | None = None

    def forget(self) -> None:
        """The program tells of its loops itself."""
        with self._lock:
            self._found = {}
            self._counted = None

    def count(self, calls: Mapping[str, int]) -> None:
        """Takes in how often each instrumented function has been called."""
        with self._lock:
            now = perf_counter()
            passed = None if self._counted is None else now - self._counted
            if passed is not None and passed < LEAST_SECONDS:
                return
            self._counted = now
            for name, made in calls.items():
                found = self._found.get(name)
                if found is None:
                    self._found[name] = _Found(made)
                elif passed is not None:
                    _turn(found, made, passed)

    def frozen(self) -> list[LoopState]:
        """Those that are called most, each as a loop."""
        with self._lock:
            found = {
                name: each for name, each in self._found.items() if each.calls >= FEWEST_CALLS and each.turns
            }  # fmt: skip
            most = sorted(found, key=lambda name: -found[name].calls)[:MOST_FOUND]
            return [_state(name, found[name]) for name in most]


def _turn(found: _Found, made: int, passed: float) -> None:
    since, found.calls = made - found.calls, made
    # The first turn with calls may have begun before the loop did, and the last one may end after it.
    if since > 0 and found.going:
        found.turns.append((since, passed))
    found.going = since > 0
    if since > 0:
        found.ended = time.time()


def _state(name: str, found: _Found) -> LoopState:
    calls, seconds = (sum(each) for each in zip(*found.turns, strict=True))
    mean = seconds / calls
    known: dict[str, Any] = {"recent": tuple(passed / each for each, passed in found.turns)}
    return LoopState(
        name=name, found=True, steps=found.calls, ended=found.ended, mean_seconds=mean, steps_per_second=1 / mean,
        calls={name: 1.0}, **known,
    )  # fmt: skip
