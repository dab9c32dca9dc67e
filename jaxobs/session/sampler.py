"""The slow tick: one daemon thread that samples the sources and lets the exporters write, within a budget."""

import math
import threading
from collections.abc import Callable, Sequence
from time import monotonic, sleep, thread_time
from typing import Protocol, runtime_checkable

from jaxobs.base import threads
from jaxobs.base.config import Settings
from jaxobs.base.guard import guarded
from jaxobs.state.store import Store

BUDGET = 0.004
"""Share of one core that sampling aims at. It may take 0.5 %; the next sample may cost more than the last."""
MOST_BUDGET = 0.05
"""Largest share of one core if samples are wanted more often than by default: the share grows in proportion."""
_FIRST_SAMPLES = 0.5
_FRESH_SECONDS = 1.0
_STRETCH = 0.001
"""Seconds of a core that a source takes at most before other threads are offered the interpreter."""
_CHEAP_SECONDS = 0.005
_PATIENCE = 0.5
"""Seconds to wait for a sample that another thread takes: a device that hangs holds it for good."""


def budget(interval: float) -> float:
    """Share of one core that samples every `interval` seconds may take."""
    return min(MOST_BUDGET, BUDGET * max(1.0, Settings().sample_interval / interval))


class Sampled(Protocol):
    """Source that can be sampled."""

    def sample(self) -> None: ...


@runtime_checkable
class Ending(Protocol):
    """A source that has something to say when the program has ended, before its last sample."""

    def ending(self) -> None: ...


@runtime_checkable
class Concluding(Protocol):
    """A source that draws conclusions from what all others have recorded, after the last sample."""

    def concluding(self) -> None: ...


class Written(Sampled, Protocol):
    """An exporter: what wants to be called every `every` seconds, or never where that is infinite."""

    @property
    def every(self) -> float: ...


class Sampler:
    """Samples every `interval` seconds, or as rarely as keeps it within its share of a core."""

    def __init__(
        self, store: Store, interval: float, sources: Sequence[Sampled], exporters: Callable[[], Sequence[Written]]
    ) -> None:
        self._store = store
        self._interval = interval
        self._sources = sources
        self._exporters = exporters
        self._stop = threads.Event()
        self._last = False
        self._lock = threads.Lock()
        self._sampled = -math.inf
        self._cost = 0.0
        self._thread = threads.Thread(target=self._run, name="jaxobs-sampler")
        self._thread.start()

    def _run(self) -> None:
        next_sample = monotonic() + min(self._interval, _FIRST_SAMPLES)
        next_writes: dict[Written, float] = {}
        while True:
            now = monotonic()
            next_writes = {each: next_writes.get(each, now + each.every) for each in self._exporters()}
            if self._stop.wait(max(0.0, min([next_sample, *next_writes.values()]) - now)):
                if self._last:
                    self._sample_last()
                return
            now = monotonic()
            if now >= next_sample:
                self.sample()
                next_sample = monotonic() + self.pause()
            for each, due in next_writes.items():
                if now >= due:
                    with guarded(f"sample {type(each).__name__}"):
                        each.sample()
                    next_writes[each] = now + each.every

    def _sample_last(self) -> None:
        for source in self._sources:
            if isinstance(source, Ending):
                with guarded(f"end {type(source).__name__}"):
                    source.ending()
        self.sample()
        for source in self._sources:
            if isinstance(source, Concluding):
                with guarded(f"conclude {type(source).__name__}"):
                    source.concluding()

    def pause(self) -> float:
        """Returns seconds to the next sample: fewer until a backend is initialized, more if samples are expensive."""
        awake = bool(self._store.snapshot_devices())
        wanted = self._interval if awake else min(self._interval, _FIRST_SAMPLES)
        return max(wanted, self._cost / budget(self._interval))

    def sample(self) -> None:
        """Takes one sample now, on the calling thread; gives up if another thread has been at it for long."""
        if self._lock.acquire(timeout=_PATIENCE):
            try:
                self._sample()
            finally:
                self._lock.release()

    def if_cheap(self) -> None:
        """Takes a sample before a scrape when the last one is old and was cheap; else the scrape gets the last."""
        if self._is_stale() and self._cost < _CHEAP_SECONDS and self._lock.acquire(blocking=False):
            try:
                if self._is_stale():
                    self._sample()
            finally:
                self._lock.release()

    def _is_stale(self) -> bool:
        return monotonic() - self._sampled > _FRESH_SECONDS

    def _sample(self) -> None:
        started = thread_time()
        try:
            for source in self._sources:
                if self._stop.is_set() and not self._last and threading.current_thread() is self._thread:
                    return
                began = thread_time()
                with guarded(f"sample {type(source).__name__}"):
                    source.sample()
                if thread_time() - began > _STRETCH:
                    sleep(0)  # others may have the interpreter
            self._store.tick()
        finally:
            self._sampled, self._cost = monotonic(), thread_time() - started

    def stop(self, *, last: bool = False) -> None:
        """Ends the thread, after a `last` sample if wanted; waits a little, and no longer if a device hangs."""
        self._last = last
        self._stop.set()
        if self._thread is not threading.current_thread():
            threads.join(self._thread)
