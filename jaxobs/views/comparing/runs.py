"""Figures of one run of one process from its event log: the manifest, functions, devices and loops."""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxobs.base.errors import JaxobsError, did_you_mean
from jaxobs.base.json_lines import Damage
from jaxobs.facts.compilations import EAGER, CacheLookup, Compilation
from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.facts.loops import LoopState
from jaxobs.facts.memory import DeviceMemory
from jaxobs.facts.process import Exit, Manifest
from jaxobs.facts.standing import Standing
from jaxobs.facts.steps import Step
from jaxobs.facts.wall import TimeState
from jaxobs.views import story
from jaxobs.views.story import ProcessEvents

_READ = (Manifest, Compilation, CacheLookup, DeviceMemory, Step, Finding, Exit)

FEWEST_RECENT = 20
"""Steps that a percentile takes."""
FEWEST_MEDIANS = 4
UNKNOWN_NOISE = 0.25
"""Share of the step time that counts as noise if there are too few steps to know their variation."""


class NoRunError(JaxobsError, ValueError):
    """A log has no such process."""


@dataclass(slots=True)
class FunctionFigures:
    """Compilations of one function; operations outside any function are one function, `<eager>`."""

    programs: int = 0
    seconds: float = 0.0
    """All phases."""
    compile_seconds: float = 0.0
    """Seconds of the phase `compile` alone, which the persistent cache spares."""
    causes: Counter[str] = field(default_factory=Counter)
    cache: Counter[str] = field(default_factory=Counter)
    fingerprints: dict[str, None] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    """Bytes by section of its largest program, by what it takes next to its arguments."""
    flops: float | None = None
    """FLOPs of the largest program."""
    arrays: tuple[str, ...] | None = None
    """Types and shapes that its first program was compiled for, each once; None where they are not logged."""
    examples: dict[str, str] = field(default_factory=dict)
    """By cause, a change that led to a program: `batch` float32[64] -> float32[65]."""

    def add(self, event: Compilation) -> None:
        """Counts a compilation in."""
        self.programs += 1
        self.seconds += sum(event.phases.values())
        self.compile_seconds += event.phases.get("compile", 0.0)
        self.causes[event.cause] += 1
        self.cache[event.cache] += 1
        self.fingerprints |= dict.fromkeys(filter(None, [event.fingerprint]))
        if sum(event.memory.values()) >= sum(self.memory.values()):
            self.memory = dict(event.memory) or self.memory
        if event.flops is not None:
            self.flops = max(self.flops or 0.0, event.flops)
        if self.arrays is None and event.signature is not None:
            self.arrays = _arrays(event.signature)
        for change in event.changes[:1]:
            path = f"`{change.path}` " if change.path else ""
            self.examples.setdefault(event.cause, f"{path}{change.before} -> {change.after}")


@dataclass(slots=True)
class LoopFigures:
    """The steps of one loop."""

    steps: int = 0
    seconds: float = 0.0
    items: float | None = None
    found: bool = False
    """Whether the program does not mark its steps, and the turns of a loop stand for them."""
    state: LoopState | None = None
    """State of the loop when that was last logged, its recent steps with it."""
    _medians: list[tuple[float, int]] = field(default_factory=list)

    def add(self, event: Step) -> None:
        """Takes in the steps of a sample interval. A slow step that is reported by itself is among them already."""
        if event.slow:
            return
        self.steps += event.count
        self.seconds += event.seconds
        if event.items is not None:
            self.items = (self.items or 0.0) + event.items
        self._medians.append((event.median_seconds, event.count))

    def stand(self, state: LoopState) -> None:
        """Takes in how the loop was, which is all that is logged of one that was found."""
        self.state = state
        if state.found:
            self.found, self.steps = True, max(state.steps, self.steps)
            self.seconds = self.steps * (state.mean_seconds or 0.0)

    @property
    def median(self) -> float | None:
        """The usual step: the median of the intervals' medians, each as often as it had steps. Robust to pauses."""
        if not self._medians:
            return None if self.state is None else self.state.p50_seconds
        repeated = sorted(self._medians)
        reached = itertools.accumulate(count for _, count in repeated)
        half = sum(count for _, count in repeated) / 2
        return next(value for (value, _), seen in zip(repeated, reached, strict=True) if seen >= half)

    @property
    def mean(self) -> float | None:
        """All their time by their number: what the run took."""
        return self.seconds / self.steps if self.steps and self.seconds else None

    @property
    def recent(self) -> tuple[float, ...]:
        """Seconds of the latest steps that are logged one by one."""
        return () if self.state is None or self.state.p50_seconds is None else self.state.recent

    @property
    def p95(self) -> float | None:
        """95th percentile of the recent steps in seconds; None if there were fewer than twenty."""
        ordered = sorted(self.recent)
        return ordered[int(0.95 * len(ordered))] if len(ordered) >= FEWEST_RECENT else None

    @property
    def noise(self) -> float:
        """How far chance may move the median, as a share of it: three standard errors, by how much steps vary."""
        samples = [seconds for seconds, _ in self._medians] if len(self._medians) >= FEWEST_MEDIANS else self.recent
        if len(samples) < FEWEST_MEDIANS or not self.median:
            return UNKNOWN_NOISE
        low, _, high = statistics.quantiles(samples, n=4)
        return 3 * 1.25 * (high - low) / 1.35 / math.sqrt(len(samples)) / self.median


@dataclass(slots=True)
class Run:
    """A run of one process."""

    source: str
    process: ProcessEvents
    manifest: Manifest | None = None
    functions: dict[str, FunctionFigures] = field(default_factory=dict)
    memory_peak: dict[str, int] = field(default_factory=dict)
    """Bytes by device: the allocator's peak, else the largest sample in use; empty if the backend reports neither."""
    live_peak: dict[str, int] = field(default_factory=dict)
    """Bytes of live arrays by device: the largest sample."""
    standing: Standing | None = None
    """State of the process when that was last logged: at its end, or a minute before."""
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
            _most(self.memory_peak, event.device, event.peak_bytes or event.in_use_bytes)
            _most(self.live_peak, event.device, event.live_array_bytes)
        elif isinstance(event, Step):
            self.loops.setdefault(event.loop, LoopFigures()).add(event)
            self._stand(event.standing)
        elif isinstance(event, Finding):
            self.findings[event.id] = event
        elif isinstance(event, Exit):
            self.exit = event
            self._stand(event.standing)

    def _stand(self, standing: Standing | None) -> None:
        if standing is not None:
            self.standing = standing
            for each in standing.loops:
                self.loops.setdefault(each.name, LoopFigures()).stand(each)

    @property
    def wall(self) -> TimeState | None:
        """Account of the run's time as last logged."""
        return None if self.standing is None else self.standing.wall

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds of the run by category; empty if the log does not have them."""
        return {} if self.wall is None else self.wall.seconds

    @property
    def wall_seconds(self) -> float | None:
        """Wall seconds of the run; None if the log does not have them."""
        return None if self.wall is None else self.wall.wall_seconds

    @property
    def loop(self) -> str | None:
        """The loop that took most of the time."""
        return max(self.loops, key=lambda name: self.loops[name].seconds, default=None)


def _arrays(signature: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the arrays of a recorded signature, as `float32[64,128]`."""
    found = []
    for node in signature.get("nodes") or ():
        if isinstance(node, Mapping) and isinstance(node.get("shape"), list) and "dtype" in node:
            found.append(f"{node['dtype']}[{','.join(map(str, node['shape']))}]")
    return tuple(found)


def _most(sizes: dict[str, int], device: str, size: int | None) -> None:
    """Nothing at all is not a peak: the backend does not tell, or nothing was there when the sample was taken."""
    if size:
        sizes[device] = max(size, sizes.get(device, 0))


def read_run(path: str, process: int = 0) -> Run:
    """Returns the latest run of the process with this index; raises `EventLogError` or `NoRunError`."""
    runs: dict[ProcessEvents, Run] = {}
    damage = Damage()
    for whose, event in story.events(path, damage, _READ, signatures=True):
        runs.setdefault(whose, Run(path, whose)).take(event)
    found = [run for run in runs.values() if run.process.process_index == process]
    if not found:
        indices = [str(index) for index in sorted({each.process_index for each in runs})]
        known = ", ".join(indices[:20])
        meant = did_you_mean(str(process), indices)
        raise NoRunError(
            f"`{path}` has no process {process}. {meant}It has: {known}. Select one of them with --process N."
        )
    told = [run for run in found if run.functions or run.loops] or found
    chosen = told[-1]
    chosen.notes = _notes(path, runs.values(), told, chosen, damage)
    return chosen


def _notes(path: str, runs: Iterable[Run], found: Sequence[Run], chosen: Run, damage: Damage) -> list[str]:
    notes = []
    if len(found) > 1:
        notes.append(f"{path}: {len(found)} runs of process {chosen.process.process_index}; this compares the latest.")
    others = {run.process.process_index for run in runs} - {chosen.process.process_index}
    if others:
        left = "1 other process" if len(others) == 1 else f"{len(others)} other processes"
        notes.append(f"{path}: left out {left}; --process N compares one of them.")
    return [*notes, f"{path}: {note}"] if (note := damage.sentence()) else notes
