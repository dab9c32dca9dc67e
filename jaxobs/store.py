"""The state: facts come in, a snapshot goes out.

Sources record facts; exporters subscribe to events or ask for a snapshot. Everything is bounded, and what a bound
cuts off is counted. Calls are counted by `jaxobs.call_stats`, and read here.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jaxobs import config, guard, internals
from jaxobs.call_stats import CallStats, MutableHistogram, label
from jaxobs.catalogue import PHASE_BOUNDS
from jaxobs.checkpoints import Checkpoints
from jaxobs.config import Settings
from jaxobs.errors import SettingError
from jaxobs.facts import (
    EAGER,
    OTHER,
    AcceleratorState,
    ArrayGroup,
    CacheLookup,
    CacheState,
    Compilation,
    DeviceMemory,
    DeviceState,
    Event,
    Exit,
    Finding,
    FunctionState,
    ObserverState,
    OpenCompilation,
    OutOfMemory,
    ProcessState,
    ProgramState,
    Snapshot,
    Standing,
    Step,
    headroom,
)
from jaxobs.input_waits import Inputs
from jaxobs.routes import Routes
from jaxobs.runs import Runs, time_state
from jaxobs.transfers import Transfers
from jaxobs.utilization import ProgramFlops, loop_states
from jaxobs.wall import Wall
from jaxobs.watched import Watched

E = TypeVar("E", bound=Event)
T = TypeVar("T")

MOST_DISPATCH_HISTOGRAMS = 40
MOST_HISTORY = 360
RECENT_HISTORY = 120
MOST_CHANGES = 12_000
"""Changes that the kept events of one kind may list together."""
MOST_NOTES = 20
MOST_FINDINGS = 100


@dataclass(slots=True)
class _Function:
    """One function's row, changed under the store's lock."""

    name: str
    stats: CallStats | None = None
    compilations: dict[str, Counter[str]] = field(default_factory=dict)
    phase_seconds: dict[str, float] = field(default_factory=dict)
    phase_counts: Counter[str] = field(default_factory=Counter)
    cache: Counter[str] = field(default_factory=Counter)
    last_compiled: float | None = None
    last_reason: str | None = None
    program: ProgramState | None = None
    out_of_memory: Counter[str] = field(default_factory=Counter)
    shows_dispatch: bool = False
    """Whether its histograms are shown."""

    def frozen(self) -> FunctionState:
        stats = self.stats
        falls, why = ({}, None) if stats is None else stats.falls()
        device, skipped = (None, {}) if stats is None else stats.device()
        return FunctionState(
            name=self.name,
            calls=None if stats is None else stats.calls,
            compilations={cause: dict(by_cache) for cause, by_cache in self.compilations.items()},
            phase_seconds=dict(self.phase_seconds),
            phase_counts=dict(self.phase_counts),
            cache=dict(self.cache),
            errors={} if stats is None else stats.errors(),
            error_kinds={} if stats is None else stats.error_kinds(),
            fastpath_misses=falls,
            fastpath_reason=why,
            fastpath_watched=stats is not None and stats.watched,
            dispatch=stats.dispatch() if stats is not None and self.shows_dispatch else None,
            device=device if self.shows_dispatch else None,
            device_skipped=skipped,
            last_compiled=self.last_compiled,
            last_reason=self.last_reason,
            program=self.program,
            out_of_memory=dict(self.out_of_memory),
        )


class _Ring:
    """The latest events of one kind: so many, and fewer where they list very many changes."""

    __slots__ = ("_changes", "events", "lost", "newest_lost")

    def __init__(self, most: int) -> None:
        self.events: deque[Event] = deque(maxlen=most)
        self.lost = 0
        self.newest_lost = 0
        self._changes = 0

    def append(self, event: Event) -> None:
        if len(self.events) == self.events.maxlen:
            self._lose()
        self.events.append(event)
        self._changes += _changes(event)
        while self._changes > MOST_CHANGES and len(self.events) > 1:
            self._lose()

    def _lose(self) -> None:
        event = self.events.popleft()
        self._changes -= _changes(event)
        self.lost += 1
        self.newest_lost = event.sequence

    def resize(self, most: int) -> None:
        kept, self.events, self._changes = self.events, deque(maxlen=most), 0
        for event in kept:
            self.append(event)


def _kept(event: Event) -> Event:
    """The event without what is for the event log only, and would take a ring's memory."""
    if isinstance(event, Compilation) and event.signature is not None:
        return dataclasses.replace(event, signature=None)
    if isinstance(event, DeviceMemory) and event.groups:
        return dataclasses.replace(event, groups=())
    if isinstance(event, Step | Exit) and event.standing is not None:
        return dataclasses.replace(event, standing=None)
    return event


def _rounded(seconds: Iterable[float]) -> tuple[float, ...]:
    """To four digits, which is more than a picture shows."""
    return tuple(float(f"{each:.4g}") for each in seconds)


def _changes(event: Event) -> int:
    return len(event.changes) if isinstance(event, Compilation) else 0


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
        self.costs_wanted = 0
        """How many ask for the FLOPs and memory of every program, however small."""
        self.reset()

    def reset(self) -> None:
        """Forgets everything that was recorded, with fresh locks: for tests and for a forked child."""
        self._lock = threading.RLock()
        self._parts: dict[type, Any] = {}
        self._functions: dict[str, _Function] = {}
        self._phases: dict[str, MutableHistogram] = {}
        self._rings: dict[str, _Ring] = {}
        self._sequence = 0
        self._dropped: Counter[str] = Counter()
        self._unsaved: Counter[str] = Counter()
        self._saved_seconds = 0.0
        self._findings: dict[str, Finding] = {}
        self._last_out_of_memory: OutOfMemory | None = None
        self._cache_size: tuple[int | None, int | None, int | None] = (None, None, None)
        self._open: dict[int, list[OpenCompilation]] = {}
        self._devices: dict[str, DeviceState] = {}
        self._array_groups: tuple[ArrayGroup, ...] = ()
        self._executables: int | None = None
        self._accelerators: dict[str, tuple[AcceleratorState, ...]] = {}
        self._versions: dict[str, str] = {}
        self._capabilities: dict[str, bool] = {}
        self._notes: list[str] = []
        self._process = (0, 1)
        self._placed = False
        self.started = time.time()
        self.orphan = False
        """Whether this process was forked from one with backends awake: JAX does not work in it."""
        self.program: str | None = None
        self.installed = False
        self.collect_seconds: float | None = None

    def after_fork(self) -> None:
        """In a forked child: nothing was done yet; what is known of the program and its wrappers stays."""
        orphan = self.orphan or internals.backends_awake()
        kept = {
            name: _Function(name, stats=row.stats, shows_dispatch=row.shows_dispatch)
            for name, row in self._functions.items()
            if row.stats is not None
        }
        known = self._versions, self._capabilities, self._process, self.program, self.installed
        self.reset()
        self.orphan = orphan
        self._versions, self._capabilities, self._process, self.program, self.installed = known
        for row in kept.values():
            assert row.stats is not None
            row.stats.reset()
        self._functions = kept

    def configure(self, settings: Settings) -> None:
        """Puts new bounds in force; what is recorded stays."""
        with self._lock:
            self.settings = settings
            for ring in self._rings.values():
                ring.resize(settings.max_events)
            for row in self._functions.values():
                if row.stats is not None:
                    row.stats.time(settings.dispatch_timing)

    def part(self, kind: type[T]) -> T:
        """What keeps one kind of state of this process, made when first asked for and forgotten with the rest."""
        found: T | None = self._parts.get(kind)
        if found is None:
            with self._lock:
                found = self._parts.setdefault(kind, kind())
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
            if event.kind not in self._rings:
                self._rings[event.kind] = _Ring(self.settings.max_events)
            self._rings[event.kind].append(_kept(event))
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
        """What a snapshot keeps of an event."""
        if isinstance(event, Compilation):
            self._add_compilation(event)
            self.part(ProgramFlops).see(event)
        elif isinstance(event, CacheLookup):
            self._saved_seconds += max(0.0, event.saved_seconds or 0.0)
        elif isinstance(event, Finding):
            self._keep_finding(event)
        elif isinstance(event, OutOfMemory):
            self._row(event.function).out_of_memory[event.device or ""] += 1
            if event.causes:
                self._last_out_of_memory = event

    def _place(self) -> tuple[int, int]:
        """Index and count of processes: asked until a backend is awake; after that no job can be joined."""
        if not self._placed:
            with guard.guarded("process_index"):
                self._placed = internals.backends_awake()
                before, self._process = self._process, internals.process_index_and_count()
                if before[0] != self._process[0]:
                    self._relabel(self._process[0])
        return self._process

    def _relabel(self, index: int) -> None:
        """Events of the time before this process had joined its job were its own too."""
        with self._lock:
            for ring in self._rings.values():
                known = [dataclasses.replace(event, process_index=index) for event in ring.events]
                ring.events = deque(known, maxlen=ring.events.maxlen)
            for key, finding in self._findings.items():
                self._findings[key] = dataclasses.replace(finding, process_index=index)

    def _add_compilation(self, event: Compilation) -> None:
        row = self._row(EAGER if event.eager else event.function)
        row.compilations.setdefault(event.cause, Counter())[event.cache] += 1
        row.cache[event.cache] += 1
        for phase, seconds in event.phases.items():
            row.phase_seconds[phase] = row.phase_seconds.get(phase, 0.0) + seconds
            row.phase_counts[phase] += 1
            self._phases.setdefault(phase, MutableHistogram(PHASE_BOUNDS)).observe(seconds)
        row.last_compiled, row.last_reason = event.time, event.reason
        if row.name not in (EAGER, OTHER):
            self._keep_program(row, event)
        if event.cache == "miss" and event.uncached_because is not None:
            self._unsaved[event.uncached_because] += 1

    def _keep_program(self, row: _Function, event: Compilation) -> None:
        """The latest program, which one that a transformation derived does not push out."""
        if row.program is None or event.transform is None or row.program.transform is not None:
            row.program = ProgramState(
                time=event.time,
                fingerprint=event.fingerprint,
                transform=event.transform,
                flops=event.flops,
                bytes_accessed=event.bytes_accessed,
                memory=event.memory,
            )

    def set_program(self, function: str, compiled: float, **found: Any) -> None:
        """Fields of a function's `ProgramState` that were read later, if it is still the one that was compiled then."""
        with self._lock:
            row = self._functions.get(label(function))
            if row is not None and row.program is not None and row.program.time == compiled:
                row.program = dataclasses.replace(row.program, **found)

    def set_holdings(self, groups: tuple[ArrayGroup, ...], executables: int | None) -> None:
        """The largest groups of live arrays, and how many executables are loaded, as sampled."""
        with self._lock:
            self._array_groups, self._executables = groups, executables

    def _keep_finding(self, finding: Finding) -> None:
        self._findings.pop(finding.id, None)
        self._findings[finding.id] = finding
        if len(self._findings) > MOST_FINDINGS:
            del self._findings[next(iter(self._findings))]
            self._dropped["findings"] += 1

    def refresh_finding(self, finding: Finding) -> None:
        """A finding that was recorded has grown, too little to be told again: the snapshot has it as it stands now."""
        with self._lock:
            told = self._findings.get(finding.id)
            if told is not None:
                self._keep_finding(
                    dataclasses.replace(finding, process_index=told.process_index, pid=told.pid, sequence=told.sequence)
                )

    def _row(self, name: str) -> _Function:
        name = label(name)
        row = self._functions.get(name)
        if row is None:
            own = len(self._functions) - (EAGER in self._functions) - (OTHER in self._functions)
            if own >= self.settings.max_functions and name not in (EAGER, OTHER):
                self._dropped["max_functions"] += 1
                return self._row(OTHER)
            row = self._functions[name] = _Function(name)
        return row

    def name_of(self, stats: CallStats) -> str | None:
        """The function that a wrapper counts for; None where it shares its row with others."""
        with self._lock:
            return next((name for name, row in self._functions.items() if row.stats is stats and name != OTHER), None)

    def calls(self) -> dict[str, int]:
        """Calls so far of each function that is counted; what shares a row with others is left out."""
        with self._lock:
            return {
                name: row.stats.calls
                for name, row in self._functions.items()
                if row.stats is not None and name != OTHER
            }

    def call_stats(self, name: str) -> CallStats:
        """Where the wrapper of the function called `name` counts; wrappers of one name share it."""
        with self._lock:
            row = self._row(name)
            if row.stats is None:
                row.stats = CallStats()
                row.stats.time(self.settings.dispatch_timing)
                shown = sum(each.shows_dispatch for each in self._functions.values())
                row.shows_dispatch = shown < MOST_DISPATCH_HISTOGRAMS
                if not row.shows_dispatch:
                    self._dropped["dispatch_histograms"] += 1
            return row.stats

    def all_call_stats(self) -> list[CallStats]:
        """Where all wrappers count."""
        with self._lock:
            return [row.stats for row in self._functions.values() if row.stats is not None]

    def compilations(self) -> int:
        """How many compilations were recorded."""
        ring = self._rings.get(Compilation.kind)
        return 0 if ring is None else ring.lost + len(ring.events)

    def tick(self) -> None:
        """Digests what the hot path left, and lets it time a few more calls; for the sampler's thread."""
        for stats in self.all_call_stats():
            stats.tick()

    def begin(self, thread: int, phase: OpenCompilation) -> None:
        """A phase began on a thread."""
        self._open.setdefault(thread, []).append(phase)

    def end(self, thread: int, phase: str) -> None:
        """The innermost open phase of that name ended on a thread, and with it all that it contained."""
        stack = self._open.get(thread)
        if stack is None:
            return
        for position in range(len(stack) - 1, -1, -1):
            if stack[position].phase == phase:
                del stack[position:]
                break
        if not stack:
            self._open.pop(thread, None)

    def nothing_open(self) -> None:
        """Forgets the open phases: their ends were lost."""
        self._open.clear()
        self.part(Wall).nothing_open()

    def set_device(self, state: DeviceState, memory: DeviceMemory) -> None:
        """A sample of one device; its history keeps the latest ones, and ever fewer of the older."""
        with self._lock:
            old = self._devices.get(state.device)
            point = (memory.time, memory.in_use_bytes, memory.live_array_bytes)
            history = (*(old.history if old else ()), point)
            if len(history) > MOST_HISTORY:
                history = history[:-RECENT_HISTORY:2] + history[-RECENT_HISTORY:]
            self._devices[state.device] = dataclasses.replace(state, memory=memory, history=history)

    def set_accelerators(self, states: tuple[AcceleratorState, ...], driver: str = "nvml") -> None:
        """How a driver sees its devices, all of them, in the place of what was known from it."""
        with self._lock:
            self._accelerators[driver] = states

    def set_cache_size(self, size: int | None, entries: int | None, grown: int | None) -> None:
        """Bytes and entries of the persistent cache on disk, and by how much it grew; None where out of sight."""
        with self._lock:
            self._cache_size = (size, entries, grown)

    def describe(
        self, *, versions: Mapping[str, str] | None = None, capabilities: Mapping[str, bool] | None = None
    ) -> None:
        """Facts about the process that become known once JAX is there; those that are not named stay."""
        with self._lock:
            if versions is not None:
                self._versions = {**self._versions, **versions}
            if capabilities is not None:
                self._capabilities = {**self._capabilities, **capabilities}

    def note(self, sentence: str) -> bool:
        """Keeps a sentence for a person, once; returns whether it was new."""
        with self._lock:
            if sentence in self._notes:
                return False
            if len(self._notes) >= MOST_NOTES:
                self._dropped["notes"] += 1
            self._notes = [*self._notes, sentence][-MOST_NOTES:]
            return True

    def drop(self, reason: str, count: int = 1) -> None:
        """Counts what a bound cut off."""
        with self._lock:
            self._dropped[reason] += count

    # ------------------------------------------------------------------------------------------ going out

    def events(self, since: int = 0, kind: str | None = None) -> tuple[list[Event], int, int]:
        """Events after number `since`, oldest first; the newest number; how many of them are no longer kept.

        Each kind has its own bound, so that frequent ones do not push out the rare. For one kind the number that is no
        longer kept is exact when `since` is 0 or is not older than what is kept, and too high in between.
        """
        self._place()
        with self._lock:
            newest = self._sequence
            rings = list(self._rings.values()) if kind is None else [r for k, r in self._rings.items() if k == kind]
            found = [event for ring in rings for event in ring.events if event.sequence > since]
            lost = sum(ring.lost for ring in rings if ring.newest_lost > since)
        found.sort(key=lambda event: event.sequence)
        return found, newest, max(0, newest - since) - len(found) if kind is None else lost

    def snapshot_devices(self) -> tuple[DeviceState, ...]:
        """The devices as last sampled; empty until a backend is awake."""
        with self._lock:
            return tuple(self._devices.values())

    def snapshot_accelerators(self) -> tuple[AcceleratorState, ...]:
        """The devices as their driver saw them when last sampled."""
        with self._lock:
            return tuple(state for states in self._accelerators.values() for state in states)

    def snapshot_last_out_of_memory(self) -> OutOfMemory | None:
        """The latest report of a call that died of memory."""
        with self._lock:
            return self._last_out_of_memory

    def snapshot_findings(self) -> tuple[Finding, ...]:
        """The findings as each stands now, the latest first."""
        with self._lock:
            return tuple(reversed(self._findings.values()))

    def snapshot_versions(self) -> dict[str, str]:
        """Versions of what runs here; empty until JAX is there."""
        with self._lock:
            return dict(self._versions)

    def snapshot(self, *, fresh: bool = True) -> Snapshot:
        """Everything at this moment.

        Args:
          fresh: whether a sample may be taken first. Not for the user's thread: a device may hang.
        """
        if fresh and self.freshen is not None:
            with guard.guarded("freshen"):
                self.freshen()
        enabled, directory = internals.persistent_cache()
        index, count = self._place()
        platform, hostname = internals.default_platform(), socket.gethostname()
        routes, in_flight = self.part(Routes).frozen(), self.part(Routes).in_flight()
        wall = time_state(self.part(Wall), self.part(Checkpoints), self.part(Runs))
        inputs, watched = self.part(Inputs).frozen(), self.part(Watched).frozen()
        transfers = self.part(Transfers).frozen()
        with self._lock:
            return Snapshot(
                time=time.time(),
                process=ProcessState(
                    pid=os.getpid(),
                    hostname=hostname,
                    program=self.program,
                    started=self.started,
                    process_index=index,
                    process_count=count,
                    versions=dict(self._versions),
                    platform=platform,
                ),
                functions=(functions := tuple(row.frozen() for row in self._functions.values())),
                phases={phase: histogram.frozen() for phase, histogram in self._phases.items()},
                in_progress=self._in_progress(),
                devices=tuple(self._devices.values()),
                cache=CacheState(
                    enabled=enabled,
                    directory=directory,
                    unsaved=dict(self._unsaved),
                    saved_seconds=self._saved_seconds,
                    bytes=self._cache_size[0],
                    entries=self._cache_size[1],
                    grown_bytes=self._cache_size[2],
                ),
                observer=ObserverState(
                    installed=self.installed,
                    capabilities=dict(self._capabilities),
                    internal_errors=guard.internal_errors(),
                    dropped=dict(self._dropped),
                    collect_seconds=self.collect_seconds,
                    notes=tuple(self._notes),
                ),
                last_sequence=self._sequence,
                wall=wall,
                findings=tuple(reversed(self._findings.values())),
                array_groups=self._array_groups,
                headroom=headroom(self._devices.values()),
                executables=self._executables,
                accelerators=self.snapshot_accelerators(),
                last_out_of_memory=self._last_out_of_memory,
                loops=loop_states(self.part, functions, self._devices.values(), self.settings.peak_flops),
                routes=routes,
                inputs=inputs,
                watched=watched,
                transfers=transfers,
                requests_in_flight=in_flight,
            )

    def standing(self) -> Standing:
        """What of this moment only a state tells, as short as can be: for the event log."""
        with self._lock:
            functions = tuple(row.frozen() for row in self._functions.values())
            devices = tuple(self._devices.values())
        loops = loop_states(self.part, functions, devices, self.settings.peak_flops)
        return Standing(
            wall=time_state(self.part(Wall), self.part(Checkpoints), self.part(Runs)),
            loops=tuple(dataclasses.replace(each, recent=_rounded(each.recent)) for each in loops),
            inputs=tuple(dataclasses.replace(each, receipt=None) for each in self.part(Inputs).frozen()),
            watched=self.part(Watched).frozen(),
            routes=self.part(Routes).frozen(),
            transfers=self.part(Transfers).frozen(),
        )

    def _in_progress(self) -> tuple[OpenCompilation, ...]:
        """The outermost open phase of each thread; threads change their stacks without our lock."""
        stacks = [list(stack) for stack in list(self._open.values())]
        return tuple(stack[0] for stack in stacks if stack)


_store: Store | None = None
_store_lock = threading.Lock()
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
                _store = Store(_settings())
    return _store


def _settings() -> Settings:
    """What the environment sets; `install` is where a wrong value is told of."""
    try:
        return config.resolve({})
    except SettingError:
        return Settings()


def _after_fork() -> None:
    """In a forked child: another process, which has done nothing yet."""
    global _store_lock
    _store_lock = threading.Lock()
    guard.reset()
    if _store is not None:
        with guard.guarded("fork"):
            _store.after_fork()
