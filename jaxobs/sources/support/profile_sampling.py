"""Takes samples of where the devices' time goes: a short trace now and then, on a thread of its own, read at once."""

import dataclasses
import math
import threading
import time
from time import perf_counter

from jaxobs import internals
from jaxobs.base import pacing, threads
from jaxobs.base.guard import guarded
from jaxobs.internals import short_traces
from jaxobs.internals.short_traces import ShortTrace
from jaxobs.internals.xplane.wire import WireError
from jaxobs.loops.found_loops import FoundLoops
from jaxobs.sources.support.host_looks import HostLooks
from jaxobs.sources.support.sample_reading import Reader, names_of
from jaxobs.state.host_record import HostRecord
from jaxobs.state.loops import Loops
from jaxobs.state.store import Store
from jaxobs.state.wall import Wall

STEPS = 3
"""Steps that a sample is to hold, where a loop is known."""
LEAST_SECONDS, MOST_SECONDS = 0.02, 2.0
"""Seconds that are recorded at least and at most, whatever a step takes."""
UNKNOWN_SECONDS = 0.25
"""Seconds that are recorded if no loop is known."""
MOST_BYTES = 32 * 2**20
"""A larger trace is not read, and the next one is shorter."""
MANY_BYTES = 4 * 2**20
FIRST_SECONDS = 10.0
"""The first sample is taken after so long at the latest."""
LOOK_SECONDS = 0.005
BUSY_SECONDS = 0.5
"""Seconds for which a sample is put off while the program compiles, or writes a checkpoint."""
BUDGET = 0.001
"""Share of the time between samples that one may cost."""
USUAL_INTERVAL = 60.0
"""Interval below which samples may cost as many times as much, up to `MOST_BUDGET`."""
MOST_BUDGET = 0.05
LONGEST_INTERVAL = 3600.0
_APART = frozenset(("checkpoint", "trace", "compile", "cache_load"))


class ProfileSampling:
    """The thread that takes samples, until `stop`."""

    def __init__(self, store: Store, interval: float) -> None:
        self._store = store
        self._wanted = interval
        self.interval = interval
        """Seconds from one sample to the next, as things are."""
        self._shorter = 1.0
        """Factor by which less is recorded than wanted, because traces are large."""
        self._reader = Reader()
        self._stopping = threads.Event()
        self._thread = threads.Thread(target=self._run, name="jaxobs-profile-samples")
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; a sample under way is given up. Waits for the profiler, which must not be left running."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            threads.join(self._thread)

    def _run(self) -> None:
        pause = min(self.interval, FIRST_SECONDS)
        while not self._stopping.wait(pause):
            pause = self.interval
            with guarded("profile_sampling"):
                try:
                    pause = self._next()
                except pacing.AbandonedError:
                    return

    def _next(self) -> float:
        """Takes a sample, unless something is in the way; seconds until the next."""
        why = short_traces.obstacle()
        if why is not None:
            self._store.note(f"The setting `profile_interval` has no effect: {why}.")
            return self.interval
        if not internals.backends_awake() or self._is_apart():
            return min(self.interval, BUSY_SECONDS)
        cost = self._sample()
        if cost is None:
            return min(self.interval, BUSY_SECONDS)
        self._weigh(cost)
        return self.interval

    def _is_apart(self) -> bool:
        """Whether the program does what is not part of its steps: it compiles, or writes or reads a checkpoint."""
        return bool(self._store.in_progress()) or self._store.part(Wall).category in _APART

    def _weigh(self, cost: float) -> None:
        """Takes samples half as often where they cost too much, and more often again where they cost little."""
        share = min(MOST_BUDGET, BUDGET * max(1.0, USUAL_INTERVAL / self._wanted))
        if cost > share * self.interval:
            self.interval = min(2 * self.interval, max(LONGEST_INTERVAL, self._wanted))
        elif cost < share * self.interval / 4:
            self.interval = max(self.interval / 2, self._wanted)

    def _sample(self) -> float | None:
        """Seconds that the sample cost; None if none could be taken now."""
        loop, step = self._loop()
        wanted = UNKNOWN_SECONDS if step is None else min(max(STEPS * step, LEAST_SECONDS), MOST_SECONDS)
        asked = perf_counter()
        trace = short_traces.begin(programs=self._reader.wants_programs)
        if trace is None:
            return None
        start, looks, whole = trace.began - asked, HostLooks(), False
        host = None
        try:
            host = HostRecord(self._store.part(Wall))
            whole = self._record(trace, looks, wanted * self._shorter)
        finally:
            if host is not None:
                host.stop()
            asked = perf_counter()
            data = trace.end()
            stop = perf_counter() - asked
        if not whole or data is None:
            return None
        self._shorten(len(data))
        if len(data) > MOST_BYTES:
            self._store.drop("profile_samples")
            return start + stop
        return start + stop + self._read(data, trace, (looks, host), (start, stop), (loop, step))

    def _record(self, trace: ShortTrace, looks: HostLooks, seconds: float) -> bool:
        """Lets the trace run; whether nothing came in between."""
        wall = self._store.part(Wall)
        until = trace.began + seconds
        while (left := until - perf_counter()) > 0:
            if self._stopping.wait(min(LOOK_SECONDS, left)):
                return False
            with threads.current_frames() as frames:
                if trace.has_waiters(frames) or self._is_apart():
                    return False
                # In no scope the stack says more than the account, which was told of it some time ago.
                looks.look(frames.get(wall.thread or 0), None if wall.at_rest else wall.category)
        return True

    def _shorten(self, size: int) -> None:
        if size > MANY_BYTES:
            self._shorter = max(self._shorter / 2, 1 / 64)
        elif size < MANY_BYTES / 4:
            self._shorter = min(self._shorter * 2, 1.0)

    def _read(
        self, data: bytes, trace: ShortTrace, seen: tuple[HostLooks, HostRecord], held: tuple[float, float],
        loop: tuple[str | None, float | None],
    ) -> float:  # fmt: skip
        """Reads the trace and records what it says; processor time that this took."""
        began = time.thread_time()
        kinds = {each.device: each.device_kind for each in self._store.snapshot_devices()}
        try:
            with pacing.politely(self._stopping):
                names = names_of(self._store.events(kind="compilation")[0])
                sample = self._reader.read(data, *seen, trace.began, kinds, names)
        except WireError as error:
            self._store.note(f"A sample of the devices' time could not be read: {error}.")
            return time.thread_time() - began
        spent = time.thread_time() - began
        self._store.record(
            dataclasses.replace(
                sample, loop=loop[0], step_seconds=loop[1], start_seconds=held[0], stop_seconds=held[1],
                reading_seconds=spent,
            )
        )  # fmt: skip
        return spent

    def _loop(self) -> tuple[str | None, float | None]:
        """The loop that goes on, and how long its steps take."""
        declared = self._store.part(Loops)
        states = [each.frozen() for each in declared.all()] if declared.any else self._store.part(FoundLoops).frozen()
        rest = 2 * self._store.settings.sample_interval + FIRST_SECONDS
        known = [
            each for each in states
            if each.mean_seconds is not None and each.ended is not None
            and time.time() - each.ended < rest + 2 * each.mean_seconds
        ]  # fmt: skip
        if not known:
            return None, None
        latest = max(known, key=lambda each: each.ended or -math.inf)
        return latest.name, latest.mean_seconds
