"""What samples of the devices' time add up to."""

from __future__ import annotations

import threading
from collections import deque

from jaxobs.facts.compilations import OTHER
from jaxobs.facts.profile_samples import ProfileSample, ProfileState

MOST_FUNCTIONS = 30
"""Functions with figures of their own; what comes later shares `<other>`."""
MOST_LATEST = 16


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

    def take(self, sample: ProfileSample) -> None:
        """Adds a sample."""
        with self._lock:
            self._samples += 1
            self._window += sample.window_seconds
            self._latest.append(sample)
            for each in sample.functions:
                known = each.function in self._seconds or len(self._seconds) < MOST_FUNCTIONS
                name = each.function if known else OTHER
                seconds = self._seconds.setdefault(name, {})
                for category, spent in each.seconds.items():
                    seconds[category] = seconds.get(category, 0.0) + spent
                if each.exposed_seconds is not None:
                    self._exposed[name] = self._exposed.get(name, 0.0) + each.exposed_seconds

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
            )
