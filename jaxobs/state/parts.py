"""Small parts of the store, each changed under the lock of the store: the process, cache totals, devices, findings."""

from __future__ import annotations

import dataclasses
import os
import statistics
from collections import Counter, deque
from collections.abc import Mapping
from platform import node

from jaxobs import internals
from jaxobs.base import guard, threads
from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.compilations import OTHER, CacheLookup, CacheState, Compilation
from jaxobs.facts.findings import Finding
from jaxobs.facts.memory import ArrayGroup, DeviceMemory, DeviceState
from jaxobs.facts.process import InternalError, ObserverState, ProcessState
from jaxobs.facts.profile_samples import LoopBaseline, ProfileSample, ProfileState, median_parts

MOST_NOTES = 20


class ProcessFacts:
    """Versions of what runs here, what jaxobs can see in them, and sentences for a person."""

    def __init__(self, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self.versions: dict[str, str] = {}
        self.capabilities: dict[str, bool] = {}
        self.notes: tuple[str, ...] = ()

    def after_fork(self, dropped: Counter[str]) -> ProcessFacts:
        """In a forked child: the same versions and capabilities."""
        fresh = ProcessFacts(dropped)
        fresh.versions, fresh.capabilities = self.versions, self.capabilities
        return fresh

    def describe(self, versions: Mapping[str, str] | None, capabilities: Mapping[str, bool] | None) -> None:
        """Adds to what is known."""
        self.versions = {**self.versions, **(versions or {})}
        self.capabilities = {**self.capabilities, **(capabilities or {})}

    def note(self, sentence: str) -> bool:
        """Keeps a sentence for a person, once; returns whether it was new."""
        if sentence in self.notes:
            return False
        if len(self.notes) >= MOST_NOTES:
            self._dropped["notes"] += 1
        self.notes = (*self.notes, sentence)[-MOST_NOTES:]
        return True

    def process(
        self,
        program: str | None,
        started: float,
        place: tuple[int, int],
        platform: str | None,
        run: tuple[str | None, str],
    ) -> ProcessState:
        """The process now: `place` is its index in its job and their number; `run`, the setting and `last_exit`."""
        index, count = place
        return ProcessState(
            pid=os.getpid(), hostname=node(), program=program, started=started, process_index=index,
            process_count=count, versions=dict(self.versions), platform=platform,
            run_id=run[0] or internals.distributed.coordinator() or "", last_exit=run[1],
        )  # fmt: skip

    def observer(self, installed: bool, collect_seconds: float | None) -> ObserverState:
        """How jaxobs itself is doing."""
        return ObserverState(
            installed=installed, capabilities=dict(self.capabilities), internal_errors=guard.internal_errors(),
            latest_errors={
                each: InternalError(since=since, latest=latest, text=text)
                for each, (since, latest, text) in guard.latest_errors().items()
            },
            dropped=dict(self._dropped), collect_seconds=collect_seconds, notes=self.notes,
        )  # fmt: skip


class CacheTotals:
    """Programs that were not stored, compile time saved, and the size of the cache on disk."""

    def __init__(self) -> None:
        self.size: tuple[int | None, int | None, int | None] = (None, None, None)
        """Bytes, entries, and bytes by which it grew; None where it is out of sight."""
        self._unsaved: Counter[str] = Counter()
        self._saved_seconds = 0.0

    def see_compilation(self, event: Compilation) -> None:
        """Counts a program that was compiled and not stored."""
        if event.cache == "miss" and event.uncached_because is not None:
            self._unsaved[event.uncached_because] += 1

    def see_lookup(self, event: CacheLookup) -> None:
        """Adds the compile time that a hit saved."""
        self._saved_seconds += max(0.0, event.saved_seconds or 0.0)

    def frozen(self, enabled: bool, directory: str | None) -> CacheState:
        """With how JAX is configured now."""
        size, entries, grown = self.size
        return CacheState(
            enabled=enabled, directory=directory, unsaved=dict(self._unsaved), saved_seconds=self._saved_seconds,
            bytes=size, entries=entries, grown_bytes=grown,
        )  # fmt: skip


MOST_HISTORY = 360
RECENT_HISTORY = 120


class Holdings:
    """Devices as JAX and as their drivers see them, the largest groups of live arrays, loaded executables."""

    def __init__(self) -> None:
        self.array_groups: tuple[ArrayGroup, ...] = ()
        self.executables: int | None = None
        self._devices: dict[str, DeviceState] = {}
        self._accelerators: dict[str, tuple[AcceleratorState, ...]] = {}

    def set_device(self, state: DeviceState, memory: DeviceMemory) -> None:
        """A sample of one device; its history keeps the latest ones, and ever fewer of the older."""
        old = self._devices.get(state.device)
        point = (memory.time, memory.in_use_bytes, memory.live_array_bytes)
        history = (*(old.history if old else ()), point)
        if len(history) > MOST_HISTORY:
            history = history[:-RECENT_HISTORY:2] + history[-RECENT_HISTORY:]
        self._devices[state.device] = dataclasses.replace(state, memory=memory, history=history)

    def set_accelerators(self, states: tuple[AcceleratorState, ...], driver: str) -> None:
        """How a driver sees its devices, all of them, instead of what was known from it."""
        self._accelerators[driver] = states

    def devices(self) -> tuple[DeviceState, ...]:
        """As JAX sees them."""
        return tuple(self._devices.values())

    def accelerators(self) -> tuple[AcceleratorState, ...]:
        """As their drivers see them."""
        return tuple(state for states in self._accelerators.values() for state in states)


MOST_FINDINGS = 100


class KeptFindings:
    """Findings by their identity, in the order in which they were last recorded."""

    def __init__(self, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self._findings: dict[str, Finding] = {}
        self._refreshed: set[str] = set()
        """Identities of findings that have grown since they were recorded as an event."""

    def keep(self, finding: Finding) -> None:
        """Keeps a finding instead of an earlier one of the same identity."""
        self._refreshed.discard(finding.id)
        self._findings.pop(finding.id, None)
        self._findings[finding.id] = finding
        if len(self._findings) > MOST_FINDINGS:
            oldest = next(iter(self._findings))
            del self._findings[oldest]
            self._refreshed.discard(oldest)
            self._dropped["findings"] += 1

    def refresh(self, finding: Finding) -> None:
        """A finding that was recorded has grown: it stays the event that it was."""
        told = self._findings.get(finding.id)
        if told is not None:
            self.keep(
                dataclasses.replace(finding, process_index=told.process_index, pid=told.pid, sequence=told.sequence)
            )
            if told.summary != finding.summary or told.count != finding.count:
                self._refreshed.add(finding.id)

    def unrecorded(self) -> tuple[Finding, ...]:
        """Returns the findings that have grown since they were recorded as an event, the oldest first."""
        return tuple(each for key, each in self._findings.items() if key in self._refreshed)

    def relabel(self, process_index: int) -> None:
        """All of them were of the process with this index."""
        for key, finding in self._findings.items():
            self._findings[key] = dataclasses.replace(finding, process_index=process_index)

    def frozen(self) -> tuple[Finding, ...]:
        """The latest first."""
        return tuple(reversed(self._findings.values()))


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
        self._lock = threads.RLock()
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
            for function in sample.functions:
                known = function.function in self._seconds or len(self._seconds) < MOST_FUNCTIONS
                name = function.function if known else OTHER
                seconds = self._seconds.setdefault(name, {})
                for category, spent in function.seconds.items():
                    seconds[category] = seconds.get(category, 0.0) + spent
                if function.exposed_seconds is not None:
                    self._exposed[name] = self._exposed.get(name, 0.0) + function.exposed_seconds

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
                samples=self._samples, window_seconds=self._window,
                device_seconds={name: dict(each) for name, each in self._seconds.items()},
                exposed_seconds=dict(self._exposed), busy=dict(self._latest[-1].busy), latest=tuple(self._latest),
                baselines=tuple(self._baselines.values()),
            )  # fmt: skip
