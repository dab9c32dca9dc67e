"""What samples of the devices' time add up to."""

from __future__ import annotations

import statistics
import threading
from collections import deque

from jaxobs.facts.compilations import OTHER
from jaxobs.facts.profile_samples import LoopBaseline, ProfileSample, ProfileState, median_parts

MOST_FUNCTIONS = 30
"""Functions with figures of their own; what comes later shares `<other>`."""
MOST_LATEST = 16
BASELINE = 8
"""The first samples of a loop, with which later ones are compared."""
MOST_LOOPS = 4
"""Loops that have a baseline: the first ones."""


class ProfileSamples:
    """The samples of one process; see `Store.part`."""

    def __init__(self) -> None:
        # Reentrant: a signal handler of the program may ask for a snapshot while this thread is in here.
        self._lock = threading.RLock()
        self._samples = 0
        self._window = 0.0
        self._seconds: dict[str, dict[str, float]] = {}
        self._exposed: dict[str, float] = {}
        self._latest: deque[ProfileSample] = deque(maxlen=MOST_LATEST)
        self._first: dict[str, list[ProfileSample]] = {}
        self._baselines: dict[str, LoopBaseline] = {}

    def take(self, sample: ProfileSample) -> None:
        """Adds a sample."""
        with self._lock:
            self._samples += 1
            self._window += sample.window_seconds
            self._latest.append(sample)
            self._take_first(sample)
            for each in sample.functions:
                known = each.function in self._seconds or len(self._seconds) < MOST_FUNCTIONS
                name = each.function if known else OTHER
                seconds = self._seconds.setdefault(name, {})
                for category, spent in each.seconds.items():
                    seconds[category] = seconds.get(category, 0.0) + spent
                if each.exposed_seconds is not None:
                    self._exposed[name] = self._exposed.get(name, 0.0) + each.exposed_seconds

    def _take_first(self, sample: ProfileSample) -> None:
        loop = sample.loop
        if loop is None or sample.step_seconds is None or not any(sample.busy.values()) or loop in self._baselines:
            return
        if loop not in self._first and len(self._first) + len(self._baselines) >= MOST_LOOPS:
            return
        first = self._first.setdefault(loop, [])
        first.append(sample)
        if len(first) == BASELINE:
            del self._first[loop]
            times = [each.step_seconds for each in first if each.step_seconds is not None]
            self._baselines[loop] = LoopBaseline(
                loop=loop, samples=BASELINE, step_seconds=statistics.median(times), most_step_seconds=max(times),
                parts=median_parts(first),
            )  # fmt: skip

    def frozen(self) -> ProfileState | None:
        """All of them together; None before the first."""
        with self._lock:
            if not self._samples:
                return None
            return ProfileState(
                samples=self._samples,
                window_seconds=self._window,
                device_seconds={name: dict(each) for name, each in self._seconds.items()},
                exposed_seconds=dict(self._exposed),
                busy=dict(self._latest[-1].busy),
                latest=tuple(self._latest),
                baselines=tuple(self._baselines.values()),
            )
