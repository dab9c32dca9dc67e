"""What an event log tells of one run of one process: the manifest, and figures by function, device and loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from jaxobs import story
from jaxobs.errors import JaxobsError
from jaxobs.facts import EAGER, CacheLookup, Compilation, DeviceMemory, Event, Exit, Finding, Manifest, Step
from jaxobs.story import ProcessEvents

_READ = frozenset({each.kind for each in (Manifest, Compilation, CacheLookup, DeviceMemory, Step, Finding, Exit)})


class NoRunError(JaxobsError, ValueError):
    """A log has no such process."""


@dataclass(slots=True)
class FunctionFigures:
    """What one function compiled; operations outside any function are one, `<eager>`."""

    programs: int = 0
    seconds: float = 0.0
    """All phases."""
    compile_seconds: float = 0.0
    """Of the phase `compile` alone, which the persistent cache spares."""
    causes: Counter[str] = field(default_factory=Counter)
    cache: Counter[str] = field(default_factory=Counter)
    fingerprints: list[str] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    """Bytes by section of its largest program, by what it takes beside its arguments."""
    flops: float | None = None
    """Of its largest program."""

    def add(self, event: Compilation) -> None:
        """Counts a compilation in."""
        self.programs += 1
        self.seconds += sum(event.phases.values())
        self.compile_seconds += event.phases.get("compile", 0.0)
        self.causes[event.cause] += 1
        self.cache[event.cache] += 1
        if event.fingerprint is not None and event.fingerprint not in self.fingerprints:
            self.fingerprints.append(event.fingerprint)
        if sum(event.memory.values()) >= sum(self.memory.values()):
            self.memory = dict(event.memory) or self.memory
        if event.flops is not None:
            self.flops = max(self.flops or 0.0, event.flops)


@dataclass(slots=True)
class LoopFigures:
    """The steps of one loop."""

    steps: int = 0
    seconds: float = 0.0
    items: float | None = None
    _medians: list[tuple[float, int]] = field(default_factory=list)

    def add(self, event: Step) -> None:
        """Takes in the steps of a sample interval. A slow step that is told by itself is among them already."""
        if event.slow:
            return
        self.steps += event.count
        self.seconds += event.seconds
        if event.items is not None:
            self.items = (self.items or 0.0) + event.items
        self._medians.append((event.median_seconds, event.count))

    @property
    def median(self) -> float | None:
        """The usual step: the median of the intervals' medians, each as often as it had steps. Robust to pauses."""
        repeated = sorted(self._medians)
        half, seen = sum(count for _, count in repeated) / 2, 0
        for value, count in repeated:
            seen += count
            if seen >= half:
                return value
        return None

    @property
    def mean(self) -> float | None:
        """All their time by their number: what the run took."""
        return self.seconds / self.steps if self.steps else None


@dataclass(slots=True)
class Run:
    """One process's run."""

    source: str
    process: ProcessEvents
    manifest: Manifest | None = None
    functions: dict[str, FunctionFigures] = field(default_factory=dict)
    memory_peak: dict[str, int] = field(default_factory=dict)
    """Bytes by device: the allocator's peak, else the largest sample in use, else of live arrays."""
    loops: dict[str, LoopFigures] = field(default_factory=dict)
    saved_seconds: float = 0.0
    findings: dict[str, Finding] = field(default_factory=dict)
    exit: Exit | None = None
    notes: list[str] = field(default_factory=list)

    def take(self, event: Event | None) -> None:
        """Counts an event in."""
        if isinstance(event, Manifest):
            self.manifest = event
        elif isinstance(event, Compilation):
            self.functions.setdefault(EAGER if event.eager else event.function, FunctionFigures()).add(event)
        elif isinstance(event, CacheLookup):
            self.saved_seconds += max(0.0, event.saved_seconds or 0.0)
        elif isinstance(event, DeviceMemory):
            known = (event.peak_bytes, event.in_use_bytes, event.live_array_bytes)
            size = next((each for each in known if each is not None), None)
            if size is not None:
                self.memory_peak[event.device] = max(size, self.memory_peak.get(event.device, 0))
        elif isinstance(event, Step):
            self.loops.setdefault(event.loop, LoopFigures()).add(event)
        elif isinstance(event, Finding):
            self.findings[event.id] = event
        elif isinstance(event, Exit):
            self.exit = event

    @property
    def loop(self) -> str | None:
        """The loop that took most of the time."""
        return max(self.loops, key=lambda name: self.loops[name].seconds, default=None)


def read_run(path: str, process: int = 0) -> Run:
    """The run of the process with this index, the latest of them where there are several.

    Raises:
      EventLogError: the file is no event log.
      NoRunError: no process of it has this index.
    """
    runs: dict[ProcessEvents, Run] = {}
    torn: list[int] = []
    for number, whose, body in story.lines(path, torn):
        run = runs.setdefault(whose, Run(path, whose))
        if body["event"] in _READ:
            run.take(story.event_of(path, number, body))
    found = [run for run in runs.values() if run.process.process_index == process]
    if not found:
        known = ", ".join(str(index) for index in sorted({each.process_index for each in runs})[:20])
        raise NoRunError(f"`{path}` has no process {process}. It has: {known}. Name one of them with --process N.")
    told = [run for run in found if run.functions or run.loops] or found
    chosen = told[-1]
    chosen.notes = _notes(path, runs.values(), told, chosen, torn)
    return chosen


def _notes(path: str, runs: Iterable[Run], found: Sequence[Run], chosen: Run, torn: Sequence[int]) -> list[str]:
    notes = []
    if len(found) > 1:
        notes.append(f"{path}: {len(found)} runs of process {chosen.process.process_index}; the latest is compared.")
    others = {run.process.process_index for run in runs} - {chosen.process.process_index}
    if others:
        left = "1 other process is" if len(others) == 1 else f"{len(others)} other processes are"
        notes.append(f"{path}: {left} left out; --process N compares one of them.")
    if torn:
        notes.append(f"{path}: {len(torn)} half-written lines were passed over.")
    return notes
