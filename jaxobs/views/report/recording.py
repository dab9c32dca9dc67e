"""A process as its event log shows it: event by event into the state that its live page would have shown.

The same store folds the events as in the process itself, so that a report and a live page count alike. The recording
has the times of events, too: compilations, samples of memory, and what else marks the run.
"""

import dataclasses
import functools
import math
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jaxobs.base.config import Settings
from jaxobs.facts.actions import Action
from jaxobs.facts.compilations import CacheLookup, CacheState, Compilation
from jaxobs.facts.errors import Error, OutOfMemory
from jaxobs.facts.events import Event, as_event, plain
from jaxobs.facts.findings import Finding
from jaxobs.facts.loops import LoopState
from jaxobs.facts.memory import ArrayGroup, DeviceMemory, DeviceState, account, headroom
from jaxobs.facts.numbers import NonFinite
from jaxobs.facts.process import Exit, Manifest, ProcessState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.standing import Standing
from jaxobs.facts.steps import Step
from jaxobs.findings import standing
from jaxobs.findings.cases import KINDS, Scene
from jaxobs.findings.patterns import Patterns
from jaxobs.findings.verdict import judged
from jaxobs.state.loops import MOST_SHOWN
from jaxobs.state.step_history import MOST_SPANS
from jaxobs.state.store import Store
from jaxobs.views.report.kept import Newest, Thinned
from jaxobs.views.story import ProcessEvents, latest_findings

MOST_COMPILATIONS = 20_000
MOST_EAGER = 5_000
"""Operations that JAX compiled by themselves have a bound of their own: they must not push out the program's."""
MOST_MARKS = 1_000
MOST_SAMPLES = 1_500
MOST_GROUP_SAMPLES = 60
"""Samples of one device that also say what holds its memory."""
MOST_FUNCTIONS = 1_000
MOST_GROUPS = 50
_MOST_LOOKUPS = 100
_MOST_RARER = 256
_MOST_TEXT = 1_000

MARKS: Mapping[type[Event], tuple[str, ...]] = {
    Manifest: ("program", "versions"),
    Exit: ("reason", "detail", "code", "report", "compiling"),
    NonFinite: ("name", "path", "what", "step", "call_site"),
    Error: ("error", "error_kind", "message", "call_site", "report"),
    Action: ("name", "origin", "result", "detail", "path", "bytes", "seconds"),
    OutOfMemory: ("function", "stage", "error", "message", "device", "call_site", "wanted_bytes", "report"),
    Finding: ("id", "finding", "function", "subject", "summary", "since"),
}
"""Events that are drawn as marks next to compilations, with the fields that the report shows of them."""


class Recording:
    """State of one process, as its event log reports it."""

    def __init__(self, owner: ProcessEvents) -> None:
        self._owner, self.pid = owner, owner.pid
        self.manifest: Manifest | None = None
        self.exit: Exit | None = None
        self.first: float | None = None
        self.last = 0.0
        self.compiled = 0
        self.seconds = 0.0
        self.compilations = Newest(MOST_COMPILATIONS)
        self.eager = Newest(MOST_EAGER)
        self.marks = Newest(MOST_MARKS)
        self.unknown = 0
        """Events of kinds that this version does not know."""
        self._store = Store(Settings(max_functions=MOST_FUNCTIONS, max_events=1))
        self._patterns = Patterns()
        self._lookups: dict[tuple[str, float], CacheLookup] = {}
        self._newest = 0
        self._cache_used = False
        self._stood = Stood()
        self._rarer: dict[type[Event], deque[Any]] = {kind: deque(maxlen=_MOST_RARER) for kind in KINDS}
        self._memory: dict[str, DeviceMemory] = {}
        self._with_groups: dict[str, DeviceMemory] = {}
        self._samples = defaultdict[str, Thinned[DeviceMemory]](lambda: Thinned(MOST_SAMPLES, _height))
        self._group_samples = defaultdict[str, Thinned[DeviceMemory]](lambda: Thinned(MOST_GROUP_SAMPLES, _height))

    @property
    def process_index(self) -> int:
        """Index of the process: 0 until it joins its job."""
        return self._owner.process_index

    def take(self, event: Event | None) -> None:
        """Takes in the next event of the process; None is one that this version does not know."""
        if event is None:
            self.unknown += 1
            return
        self.first = event.time if self.first is None else min(self.first, event.time)
        self.last = max(self.last, event.time)
        self._newest = max(self._newest, event.sequence)
        self._store.replay(event)
        self._stood.take(event)
        if isinstance(event, Compilation):
            self._take_compilation(event)
        elif isinstance(event, DeviceMemory):
            self._take_memory(event)
        elif isinstance(event, CacheLookup):
            self._lookups[event.function, event.time] = event
            if len(self._lookups) > _MOST_LOOKUPS:
                del self._lookups[next(iter(self._lookups))]
        elif type(event) in MARKS:
            self._take_mark(event)
        usual = (isinstance(event, Step) and not event.slow) or (isinstance(event, Compilation) and not event.long)
        if type(event) in self._rarer and not usual:
            self._rarer[type(event)].append(event)

    def _take_compilation(self, event: Compilation) -> None:
        self._patterns.see(event)
        self.compiled += 1
        self.seconds += sum(filter(math.isfinite, event.phases.values()))
        self._cache_used |= event.cache != "disabled"
        lookup = self._lookups.pop((event.function, event.time), None)
        (self.eager if event.eager else self.compilations).add(functools.partial(_compiled, event, lookup))

    def _take_memory(self, event: DeviceMemory) -> None:
        self._memory[event.device] = event
        if event.groups:
            self._with_groups[event.device] = event
            self._group_samples[event.device].add(event)
        self._samples[event.device].add(dataclasses.replace(event, groups=()))

    def _take_mark(self, event: Event) -> None:
        if isinstance(event, Manifest):
            again, self.manifest = self.manifest is not None, event
            if again:  # told again because more is known: the process began once
                return
        elif isinstance(event, Exit):
            self.exit = event = dataclasses.replace(event, standing=None)
        self.marks.add(functools.partial(_marked, event))

    # --------------------------------------------------------------------------------------------- going out

    def snapshot(self, process_count: int = 1) -> Snapshot:
        """State at the last event, unknowns as `None`, empty or "", in a job of so many processes or more."""
        manifest = self.manifest
        devices = tuple(self._device(memory) for memory in self._memory.values())
        known = self._store.snapshot()
        told = latest_findings(known.findings, self._patterns.standing())
        as_it_was = dataclasses.replace(
            known,
            time=self.last,
            process=ProcessState(
                pid=self.pid,
                hostname=(manifest.hostname if manifest is not None else None) or "",
                program=manifest.program if manifest is not None else None,
                started=self.last if self.first is None else self.first,
                process_index=self.process_index,
                process_count=max(process_count, manifest.process_count if manifest is not None else 1),
                versions=manifest.versions if manifest is not None else {},
                platform=devices[0].platform if devices else None,
            ),
            devices=devices,
            cache=CacheState(
                enabled=self._cache_used,
                directory=None,
                unsaved=known.cache.unsaved,
                saved_seconds=known.cache.saved_seconds,
            ),
            findings=tuple(told),
            array_groups=self._groups(),
            headroom=headroom(devices),
            last_sequence=self._newest,
            unfinished=self.exit.compiling if self.exit is not None else (),
            **self._stood.fields(),
        )
        found = latest_findings(as_it_was.findings, standing.shown_by(self._scene(as_it_was)))
        return judged(dataclasses.replace(as_it_was, findings=tuple(sorted(found, key=lambda each: -each.time))))

    def _scene(self, snapshot: Snapshot) -> Scene:
        rarer = self._rarer
        return Scene(
            snapshot=snapshot,
            nonfinite=tuple(rarer[NonFinite]),
            steps=tuple(rarer[Step]),
            errors=tuple(rarer[Error]),
            out_of_memory=tuple(rarer[OutOfMemory]),
            lookups=tuple(rarer[CacheLookup]),
            compilations=tuple(rarer[Compilation]),
            ended=self.exit is not None and (self.exit.reason != "normal" or bool(self.exit.code)),
        )

    @property
    def findings(self) -> int:
        """How many patterns it reported, or its compilations show."""
        return len({each.id for each in (*self._store.snapshot_findings(), *self._patterns.standing())})

    @property
    def groups_told(self) -> float | None:
        """Time of the last entry on what holds the memory: once a minute, and when memory ran out."""
        died = self._store.snapshot_last_out_of_memory()
        times = [each.time for each in self._with_groups.values()]
        return max((*times, died.time) if died is not None and died.arrays else times, default=None)

    @property
    def devices(self) -> int:
        """How many devices it reported."""
        return len(self._memory)

    def memory(self, most: int, most_with_groups: int) -> list[dict[str, Any]]:
        """Samples of memory as events, the oldest first; so many at most of each device."""
        found: dict[tuple[float, str], DeviceMemory] = {}
        for device in self._samples:
            for sample in (
                *self._samples[device].samples(most),
                *self._group_samples[device].samples(most_with_groups),
            ):
                found[sample.time, device] = sample
        return [brief(sample) for _, sample in sorted(found.items(), key=lambda item: item[0])]

    def _device(self, memory: DeviceMemory) -> DeviceState:
        platform, _, number = memory.device.partition(":")
        return DeviceState(
            device=memory.device,
            id=int(number) if number.isdecimal() else 0,
            platform=platform,
            device_kind=platform,
            process_index=self.process_index,
            memory=dataclasses.replace(memory, groups=()),
            account=account(memory),
        )

    def _groups(self) -> tuple[ArrayGroup, ...]:
        """The largest groups as last told, those of the devices together."""
        died = self._store.snapshot_last_out_of_memory()
        if died is not None and died.arrays and died.time == self.groups_told:
            return died.arrays
        found: dict[object, ArrayGroup] = {}
        for event in self._with_groups.values():
            for group in event.groups:
                known = found.get(group.key)
                if known is not None:
                    size = {**known.bytes_per_device, **group.bytes_per_device}
                    group = dataclasses.replace(group, bytes_per_device=size, count=max(group.count, known.count))
                found[group.key] = group
        return tuple(sorted(found.values(), key=lambda group: -group.bytes)[:MOST_GROUPS])


def _compiled(event: Compilation, lookup: CacheLookup | None) -> dict[str, Any]:
    body = brief(event) | {"phases": plain({phase: round(seconds, 6) for phase, seconds in event.phases.items()})}
    return body if lookup is None else body | {"lookup": brief(lookup)}


def _marked(event: Event) -> dict[str, Any]:
    whole = brief(event)
    told = {name: whole[name] for name in ("time", "event", "sequence", *MARKS[type(event)]) if name in whole}
    return {name: value[:_MOST_TEXT] if isinstance(value, str) else value for name, value in told.items()}


def brief(event: Event) -> dict[str, Any]:
    """The event as in the API, less what is the default of its kind and whose it is (see `defaults`)."""
    kind: Any = type(event)
    usual = defaults(kind)
    return {
        name: value
        for name, value in as_event(event).items()
        if name not in ("pid", "process_index") and not (name in usual and usual[name] == value)
    }


@functools.cache
def defaults(kind: Any) -> dict[str, Any]:
    """Returns the default of each field of a kind of event."""
    found: dict[str, Any] = {}
    for entry in dataclasses.fields(kind):
        if entry.default is not dataclasses.MISSING:
            found[entry.name] = plain(entry.default)
        elif entry.default_factory is not dataclasses.MISSING:
            found[entry.name] = plain(entry.default_factory())
    return found


def _height(sample: DeviceMemory) -> float:
    return sample.in_use_bytes or sample.live_array_bytes or 0


MOST_LOOPS = 100


class Stood:
    """Event by event, what the snapshot has of steps, time, inputs, watched values and requests."""

    def __init__(self) -> None:
        self._told = Standing()
        self._loops: dict[str, LoopState] = {}

    def take(self, event: object) -> None:
        """Takes in the next event of the process; most do not matter here."""
        if isinstance(event, Step | Exit):
            if isinstance(event, Step):
                self._take_step(event)
            if event.standing is not None:
                self._told = event.standing
                self._loops = {each.name: each for each in event.standing.loops}

    def _take_step(self, event: Step) -> None:
        loop = self._loops.get(event.loop)
        if loop is None:
            if len(self._loops) >= MOST_LOOPS:
                return
            loop = LoopState(name=event.loop)
        self._loops[event.loop] = replace(loop, slow=loop.slow + 1) if event.slow else _gone_on(loop, event)

    def fields(self) -> dict[str, Any]:
        """Fields of the snapshot."""
        return {
            "wall": self._told.wall,
            "loops": tuple(self._loops.values()),
            "inputs": self._told.inputs,
            "watched": self._told.watched,
            "routes": self._told.routes,
        }


def _gone_on(loop: LoopState, event: Step) -> LoopState:
    """The loop after these steps. Percentiles need every step, so that they stay as they were reported last."""
    mean = event.seconds / event.count if event.count else None
    span = () if mean is None else ((event.time, mean, event.most_seconds),)
    items = event.items
    return replace(
        loop,
        steps=max(loop.steps, event.last),
        ended=event.time,
        items=loop.items if items is None else (loop.items or 0) + items,
        recent=loop.recent if mean is None else (*loop.recent, mean)[-MOST_SHOWN:],
        history=(*loop.history, *span)[-MOST_SPANS:],
        mean_seconds=mean,
        least_seconds=min(filter(None, (loop.least_seconds, event.least_seconds)), default=None),
        steps_per_second=1 / mean if mean else None,
        items_per_second=items / event.seconds if items is not None and event.seconds else None,
    )
