"""The state: facts come in, a snapshot goes out.

Sources record facts; exporters subscribe to events or ask for a snapshot. Everything is bounded, and what a bound cuts
off is counted. Each subject is a module next to this one; the store puts them under one lock, and hands events on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from jaxobs import internals
from jaxobs.base import config, guard, threads
from jaxobs.base.config import Settings
from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.compilations import CacheLookup, Compilation, OpenCompilation
from jaxobs.facts.errors import OutOfMemory
from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.facts.memory import ArrayGroup, DeviceMemory, DeviceState, headroom
from jaxobs.facts.profile_samples import ProfileSample
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.standing import Standing
from jaxobs.state.call_stats import CallStats
from jaxobs.state.checkpoints import Checkpoints
from jaxobs.state.event_rings import EventRings
from jaxobs.state.function_rows import FunctionRows
from jaxobs.state.host_work import HostMeter
from jaxobs.state.input_waits import Inputs
from jaxobs.state.open_phases import OpenPhases, Read, unread
from jaxobs.state.parts import CacheTotals, Holdings, KeptFindings, ProcessFacts, ProfileSamples
from jaxobs.state.routes import Routes
from jaxobs.state.runs import Runs, time_state
from jaxobs.state.standing import standing
from jaxobs.state.transfers import Fallbacks, Transfers
from jaxobs.state.utilization import ProgramFlops, loop_states
from jaxobs.state.wall import Wall
from jaxobs.state.watched import watched_states

E = TypeVar("E", bound=Event)
T = TypeVar("T")


class Store:
    """Holds what is known of this process. Safe for threads; one lock, never held while foreign code runs."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._subscribers: list[Callable[[Event], None]] = []
        self._answering: list[Callable[[Event], None]] = []
        """Subscribers that record events of their own: the others have seen an event before its answer."""
        self.freshen: Callable[[], None] | None = None
        """Called before a snapshot; whoever samples may take a sample first, if that is cheap."""
        self.catch_up: Callable[[], None] | None = None
        """Has what programs cost read now that else is read on the slow tick."""
        self.step_calls: Callable[[], dict[str, int]] = self.calls
        """Returns the calls so far by function, for steps that are looked at: also those that no wrapper counts."""
        self.costs_wanted = 0
        """How many ask for the FLOPs and memory of every program, however small."""
        self.reset()

    def reset(self) -> None:
        """Forgets everything that was recorded, with fresh locks: for tests and for a forked child."""
        self._lock = threads.RLock()
        self._parts: dict[type, Any] = {}
        self._sequence = 0
        self._dropped: Counter[str] = Counter()
        self._rings = EventRings(self.settings.max_events)
        self._functions = FunctionRows(self.settings, self._dropped)
        self._findings = KeptFindings(self._dropped)
        self._facts = ProcessFacts(self._dropped)
        self._cache = CacheTotals()
        self._holdings = Holdings()
        self._last_out_of_memory: OutOfMemory | None = None
        self._process = (0, 1)
        self._placed = False
        self.started = time.time()
        self.orphan = False
        """Whether the process was forked from a process with backends awake: JAX does not work in such a child."""
        self.program: str | None = None
        self.installed = False
        self.collect_seconds: float | None = None
        self.cache_elsewhere: tuple[bool, str | None] = (False, None)
        """The persistent cache of another framework on XLA: whether it is in use, and its directory."""
        self.host: Mapping[str, float] = {}
        """The process on its host, by metric, as last sampled."""
        self.log_left: Callable[[], int | None] = lambda: None
        """Bytes that the event log's disk has left."""

    def after_fork(self) -> None:
        """In a forked child: nothing was done yet; what is known of the program and its wrappers stays."""
        orphan = self.orphan or internals.backends_awake()
        functions, facts = self._functions, self._facts
        known = self._process, self.program, self.installed
        self.reset()
        self.orphan = orphan
        self._process, self.program, self.installed = known
        self._functions, self._facts = functions.after_fork(self._dropped), facts.after_fork(self._dropped)

    def configure(self, settings: Settings) -> None:
        """Puts new bounds in force; what is recorded stays."""
        with self._lock:
            self.settings = settings
            self._rings.resize(settings.max_events)
            self._functions.configure(settings)

    def part(self, kind: type[T]) -> T:
        """Returns the object that keeps one kind of state, made at the first call, also for the bases of its class.

        So a room above fills a place of this room: the snapshot asks for `NoLoops` and gets what `loops` has found.
        """
        found: T | None = self._parts.get(kind)
        if found is None:
            with self._lock:
                found = self._parts.get(kind)
                if found is None:
                    found = kind()
                    self._parts.update(dict.fromkeys(kind.__mro__[:-1], found))
        return found

    # ------------------------------------------------------------------------------------------ coming in

    def subscribe(self, callback: Callable[[Event], None], *, answers: bool = False) -> Callable[[], None]:
        """Calls `callback` with each event from now on, on the thread that records it; returns the way out.

        Args:
          answers: whether it records events of its own, which it may; it is called after all that do not.
        """
        subscribers = self._answering if answers else self._subscribers
        with self._lock:
            subscribers.append(callback)

        def unsubscribe() -> None:
            with self._lock:
                if callback in subscribers:
                    subscribers.remove(callback)

        return unsubscribe

    def record(self, event: E) -> E:
        """Takes an event in, numbers it, and hands it on; returns the numbered event."""
        index, _ = self._place()
        with self._lock:
            # In one step: a signal handler may record while this thread is in here.
            sequence = self._sequence = self._sequence + 1
            event = dataclasses.replace(event, sequence=sequence, pid=os.getpid(), process_index=index)
            self._rings.append(event)
            self._take(event)
            subscribers = (*self._subscribers, *self._answering)
        for callback in subscribers:
            with guard.guarded("subscriber"):
                callback(event)
        return event

    def replay(self, event: Event) -> None:
        """Takes in an event of another time or process, as it was numbered there: for what reads an event log back."""
        with self._lock:
            self._take(event)

    def _take(self, event: Event) -> None:
        """Updates what snapshots show by an event."""
        if isinstance(event, Compilation):
            self._functions.see_compilation(event)
            self._cache.see_compilation(event)
            self.part(ProgramFlops).see(event)
        elif isinstance(event, CacheLookup):
            self._cache.see_lookup(event)
        elif isinstance(event, Finding):
            self._findings.keep(event)
        elif isinstance(event, ProfileSample):
            self.part(ProfileSamples).take(event)
        elif isinstance(event, OutOfMemory):
            self._functions.see_out_of_memory(event)
            if event.causes:
                self._last_out_of_memory = event

    def _place(self) -> tuple[int, int]:
        """Index and count of processes: asked until a backend is initialized; after that no job can be joined."""
        if not self._placed:
            with guard.guarded("process_index"):
                self._placed = internals.backends_awake()
                before, self._process = self._process, internals.process_index_and_count()
                if before[0] != self._process[0]:
                    with self._lock:  # events of the time before this process had joined its job were its own, too
                        self._rings.relabel(self._process[0])
                        self._findings.relabel(self._process[0])
        return self._process

    def set_program(self, function: str, compiled: float, **found: Any) -> None:
        """Fields of a function's `ProgramState` that were read later, if it is still the one that was compiled then."""
        with self._lock:
            self._functions.set_program(function, compiled, **found)

    def set_holdings(self, groups: tuple[ArrayGroup, ...], executables: int | None) -> None:
        """The largest groups of live arrays, and how many executables are loaded, as sampled."""
        with self._lock:
            self._holdings.array_groups, self._holdings.executables = groups, executables

    def refresh_finding(self, finding: Finding) -> None:
        """A finding that was recorded has grown, too little to be reported again: the snapshot has it as it is now."""
        with self._lock:
            self._findings.refresh(finding)

    def name_of(self, stats: CallStats) -> str | None:
        """The function that a wrapper counts for; None where it shares its row with others."""
        with self._lock:
            return self._functions.name_of(stats)

    def calls(self) -> dict[str, int]:
        """Calls so far of each function that is counted; what shares a row with others is left out."""
        with self._lock:
            return self._functions.calls()

    def call_stats(self, name: str) -> CallStats:
        """Returns the counters of the function called `name`, which all wrappers of that name share."""
        with self._lock:
            return self._functions.call_stats(name)

    def all_call_stats(self) -> list[CallStats]:
        """Returns the counters of all wrappers."""
        with self._lock:
            return self._functions.all_call_stats()

    def compilations(self) -> int:
        """How many compilations were recorded."""
        return self._rings.count(Compilation.kind)

    def tick(self) -> None:
        """Digests what the hot path left, and lets it time a few more calls; for the sampler's thread."""
        for stats in self.all_call_stats():
            stats.tick()

    def begin(self, thread: int, phase: OpenCompilation, read: Read = unread) -> None:
        """A phase began on a thread; `read` finds out about one that begins a compilation."""
        self.part(OpenPhases).begin(thread, phase, read)

    def end(self, thread: int, phase: str, failed: float | None = None) -> None:
        """The innermost open phase of that name ended on a thread; `failed` is when an exception ended it."""
        self.part(OpenPhases).end(thread, phase, failed)

    def in_progress(self) -> tuple[OpenCompilation, ...]:
        """The outermost open phase of each thread."""
        return self.part(OpenPhases).outermost()

    def nothing_open(self) -> None:
        """Forgets the open phases: their ends were lost."""
        self.part(OpenPhases).clear()
        self.part(Wall).nothing_open()

    def set_device(self, state: DeviceState, memory: DeviceMemory) -> None:
        """A sample of one device; its history keeps the latest ones, and ever fewer of the older."""
        with self._lock:
            self._holdings.set_device(state, memory)

    def set_accelerators(self, states: tuple[AcceleratorState, ...], driver: str = "nvml") -> None:
        """How a driver sees its devices, all of them, instead of what was known from it."""
        with self._lock:
            self._holdings.set_accelerators(states, driver)

    def set_cache_size(self, size: int | None, entries: int | None, grown: int | None) -> None:
        """Bytes and entries of the persistent cache on disk, and by how much it grew; None where out of sight."""
        with self._lock:
            self._cache.size = (size, entries, grown)

    def describe(
        self, *, versions: Mapping[str, str] | None = None, capabilities: Mapping[str, bool] | None = None
    ) -> None:
        """Facts about the process that become known once JAX is there; those that are not named stay."""
        with self._lock:
            self._facts.describe(versions, capabilities)

    def note(self, sentence: str) -> bool:
        """Keeps a sentence for a person, once; returns whether it was new."""
        with self._lock:
            return self._facts.note(sentence)

    def warn(self, sentence: str) -> None:
        """Keeps a sentence and logs it, once; handlers and filters of the program, which may raise, cannot disturb."""
        with contextlib.suppress(Exception):
            if self.note(sentence):
                guard.logger.warning("%s", sentence)

    def drop(self, reason: str, count: int = 1) -> None:
        """Counts what a bound cut off."""
        with self._lock:
            self._dropped[reason] += count

    # ------------------------------------------------------------------------------------------ going out

    def events(self, since: int = 0, kind: str | None = None) -> tuple[list[Event], int, int]:
        """Events after number `since`, oldest first; the newest number; how many of them are no longer kept.

        Each kind has its own bound. Of one kind the last figure is exact unless `since` is older than what is kept.
        """
        self._place()
        with self._lock:
            newest = self._sequence
            found, lost = self._rings.after(since, kind)
        return found, newest, max(0, newest - since) - len(found) if kind is None else lost

    def snapshot_devices(self) -> tuple[DeviceState, ...]:
        """The devices as last sampled; empty until a backend is initialized."""
        with self._lock:
            return self._holdings.devices()

    def snapshot_accelerators(self) -> tuple[AcceleratorState, ...]:
        """The devices as their driver saw them when last sampled."""
        with self._lock:
            return self._holdings.accelerators()

    def snapshot_last_out_of_memory(self) -> OutOfMemory | None:
        """The latest report of a call that ran out of memory."""
        with self._lock:
            return self._last_out_of_memory

    def snapshot_findings(self, *, unrecorded: bool = False) -> tuple[Finding, ...]:
        """The findings as each is now, the latest first; or those that have grown since they were events."""
        with self._lock:
            return self._findings.unrecorded() if unrecorded else self._findings.frozen()

    def snapshot_versions(self) -> dict[str, str]:
        """Versions of what runs here; empty until JAX is there."""
        with self._lock:
            return dict(self._facts.versions)

    def snapshot(self, *, fresh: bool = True) -> Snapshot:
        """Returns everything at this moment. `fresh` allows a sample first, which may hang on a device."""
        if fresh and self.freshen is not None:
            with guard.guarded("freshen"):
                self.freshen()
        cache = self.cache_elsewhere if self.cache_elsewhere[0] else internals.persistent_cache()
        self._place()
        platform, run = internals.default_platform(), (self.settings.run_id, self.part(Runs).last_exit)
        routes, in_flight = self.part(Routes).frozen(), self.part(Routes).in_flight()
        wall = time_state(self.part(Wall), self.part(Checkpoints), self.part(Runs), self.part(HostMeter))
        inputs, watched, moved = self.part(Inputs).frozen(), watched_states(self.part), self.part(Transfers).frozen()
        with self._lock:
            return Snapshot(
                time=time.time(), process=self._facts.process(self.program, self.started, self._process, platform, run),
                functions=(functions := self._functions.frozen()), phases=self._functions.phases(),
                in_progress=self.in_progress(), unfinished=self.part(OpenPhases).unfinished(time.time()),
                devices=(devices := self._holdings.devices()), cache=self._cache.frozen(*cache),
                observer=self._facts.observer(self.installed, self.collect_seconds), last_sequence=self._sequence,
                wall=wall, findings=self._findings.frozen(), array_groups=self._holdings.array_groups,
                headroom=headroom(devices), executables=self._holdings.executables,
                accelerators=self._holdings.accelerators(), last_out_of_memory=self._last_out_of_memory,
                loops=loop_states(self.part, functions, devices, self.settings.peak_flops), routes=routes,
                inputs=inputs, watched=watched, transfers=moved, profile=self.part(ProfileSamples).frozen(),
                requests_in_flight=in_flight, engines=self.part(Routes).engines.frozen(), host=self.host,
                fallbacks=self.part(Fallbacks).frozen(),
            )  # fmt: skip

    def standing(self) -> Standing:
        """Returns the part of the state that no event tells, as short as can be: for the event log."""
        with self._lock:
            functions, devices = self._functions.frozen(), self._holdings.devices()
        return standing(self.part, functions, devices, self.settings.peak_flops)


_store: Store | None = None
_store_lock = threads.Lock()
_hooked = False


def current() -> Store:
    """The process's store, made when first asked for."""
    global _store, _hooked
    if _store is None:
        with _store_lock:
            if _store is None:
                if not _hooked and hasattr(os, "register_at_fork"):
                    os.register_at_fork(after_in_child=_after_fork)
                    _hooked = True
                _store = Store(config.of_environment())
    return _store


def _after_fork() -> None:
    """In a forked child: another process, which has done nothing yet."""
    global _store_lock
    _store_lock = threads.Lock()
    guard.reset()
    if _store is not None:
        with guard.guarded("fork"):
            _store.after_fork()
