"""Adds up where the devices' time went in a trace."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from jaxobs.base import pacing
from jaxobs.drivers import peaks
from jaxobs.facts.profiles import (
    PRODUCTS,
    CollectiveTime,
    DeviceTime,
    FunctionTime,
    IdleTime,
    OperationTime,
    Profile,
)  # fmt: skip
from jaxobs.profiles import idle, intervals
from jaxobs.profiles.intervals import Interval
from jaxobs.profiles.programs import Operation, Programs
from jaxobs.profiles.tracks import Run, Trace, Track

NANO = 1e-9

_Key: TypeAlias = tuple[str, str, int | None]
"""An operation: its name, its program's name and number."""
Describe: TypeAlias = Callable[[Run], Operation]


@dataclass(slots=True)
class OwnTime:
    """The time of one device, by what ran."""

    seconds: dict[_Key, float] = field(default_factory=lambda: defaultdict(float))
    counts: Counter[_Key] = field(default_factory=Counter)
    busy: list[Interval] = field(default_factory=list)
    collectives: list[Interval] = field(default_factory=list)
    others: list[Interval] = field(default_factory=list)
    """Intervals in which something other than an exchange ran."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """A trace with what was found out about it: for whoever draws it, or writes it in another form."""

    trace: Trace
    profile: Profile
    busy: Mapping[str, Sequence[Interval]]
    """Intervals in which each device had something to do, in nanoseconds of the trace's clock."""
    gaps: Mapping[str, Sequence[idle.Gap]]
    """Intervals in which each device had nothing to do, and why."""
    describe: Describe
    """Returns the operation of a run."""
    function: Callable[[Run], str | None]
    """Returns the function whose program a run belongs to."""


def analyse(
    trace: Trace, kinds: Mapping[str, str] | None = None, host: Mapping[str, Sequence[Interval]] | None = None,
    programs: Programs | None = None,
) -> Analysis:  # fmt: skip
    """Finds out where the devices' time went.

    Args:
      kinds: JAX's `device_kind` of devices by name, for what the trace itself doesn't report them.
      host: by reason for idle time, what is known about the host from elsewhere, in nanoseconds of the trace's clock.
      programs: those that ran, if an earlier trace had them, too; what was found out about them is not done again.
    """
    programs = programs or Programs(trace.programs)
    known = programs.known

    def describe(run: Run) -> Operation:
        return programs.operation(run.operation, run.module, run.program, run.stats)

    def function(run: Run) -> str | None:
        return programs.function(run.module, run.program) if run.module else None

    times = {track.device: own_time(track, describe) for track in trace.tracks}
    busy = {device: each.busy for device, each in times.items()}
    pacing.offer()
    gaps = idle.gaps(trace, busy, host)
    pacing.offer()
    start, end = trace.window
    window = (end - start) * NANO
    operations = _operations(trace, times, known, programs, kinds or {})
    profile = Profile(
        window_seconds=window,
        steps=len({(each.name, each.number) for each in trace.steps}) if trace.steps else None,
        devices=tuple(_device(device, each, window) for device, each in times.items()),
        functions=_functions(trace, times, programs, known),
        operations=operations,
        idle=tuple(
            IdleTime(reason=reason, seconds=time * NANO) for reason, time in idle.seconds_by_reason(gaps) if time
        ),
        collectives=_collectives(times.values()) if operations else None,
    )
    return Analysis(trace, profile, busy, gaps, describe, function)


def _device(device: str, time: OwnTime, window: float) -> DeviceTime:
    busy = intervals.total(time.busy) * NANO
    return DeviceTime(device=device, busy_seconds=busy, busy_ratio=min(1.0, busy / window) if window else 0.0)


def own_time(track: Track, describe: Describe) -> OwnTime:
    """Returns the time that each operation of a device took itself.

    A loop or a call has only the time in which nothing that it runs does, on its own row or, where a CPU's thread
    waits for another one, on those next to it.
    """
    made = OwnTime()
    control: list[list[tuple[float, float, Run]]] = []
    working: list[list[Interval]] = []
    for row in track.rows:
        parts = intervals.own_time(row)
        for run in row:
            made.counts[run.operation, run.module, run.program] += 1
        holding: list[tuple[float, float, Run]] = []
        exchanging: list[Interval] = []
        computing: list[Interval] = []
        for number, (start, end, run) in enumerate(parts):
            if not number & 63:
                pacing.offer()
            category = describe(run).category
            if category == "control":
                holding.append((start, end, run))
                continue
            made.seconds[run.operation, run.module, run.program] += end - start
            (exchanging if category == "collective" else computing).append((start, end))
        control.append(holding)
        working.append(intervals.merged([exchanging, computing]))
        made.collectives += exchanging
        made.others += computing
        made.busy += [(start, end) for start, end, _ in parts]
    everything = intervals.merged(working)
    for holding in control:
        for start, end, run in holding:
            made.seconds[run.operation, run.module, run.program] += 0.0
            if len(working) == 1:
                made.seconds[run.operation, run.module, run.program] += end - start
        if len(working) > 1:
            _spend(holding, everything, made)
    for row in track.aside:
        made.collectives += [(run.start, run.end) for run in row if describe(run).category == "collective"]
    made.busy, made.others = intervals.union(made.busy), intervals.union(made.others)
    made.collectives = intervals.union(made.collectives)
    return made


def _spend(holding: list[tuple[float, float, Run]], others: list[Interval], made: OwnTime) -> None:
    """Gives each part of a row's control the time that no other row has work in."""
    free = intervals.without([(start, end) for start, end, _ in holding], others)
    at = 0
    for start, end in free:
        while holding[at][1] <= start:
            at += 1
        run = holding[at][2]
        made.seconds[run.operation, run.module, run.program] += end - start


def _operations(
    trace: Trace,
    times: Mapping[str, OwnTime],
    known: Mapping[_Key, Operation],
    programs: Programs,
    kinds: Mapping[str, str],
) -> tuple[OperationTime, ...]:
    seconds: dict[_Key, float] = defaultdict(float)
    counts: Counter[_Key] = Counter()
    for own in times.values():
        for key, time in own.seconds.items():
            seconds[key] += time * NANO
        counts.update(own.counts)
    everything = sum(seconds.values())
    limits = {_limits(track, kinds) for track in trace.tracks}
    limit = next(iter(limits)) if len(limits) == 1 else (None, None, None)
    rows = []
    for key, time in seconds.items():
        pacing.offer()
        operation, count = known[key], counts[key]
        peak, bandwidth = _peaks(operation, *limit)
        rows.append(
            OperationTime(
                operation=key[0],
                function=programs.function(key[1], key[2]) if key[1] else None,
                category=operation.category,
                scope=operation.scope,
                source=operation.source,
                device_seconds=time,
                share=time / everything if everything else 0.0,
                count=count,
                flops=None if operation.flops is None else operation.flops * count,
                bytes=None if operation.bytes is None else operation.bytes * count,
                bound=_bound(operation, peak, bandwidth),
                dtype=operation.dtype,
                roofline_ratio=_roofline_ratio(operation, peak, bandwidth, time / count) if count and time else None,
                replicated=operation.replicated,
                widened=operation.widened,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.device_seconds, row.operation)))


_Limits: TypeAlias = tuple[str | None, float | None, float | None]


def _limits(track: Track, kinds: Mapping[str, str]) -> _Limits:
    """Returns a device's kind, its peak in FLOP/s as the trace tells it, and its memory's bandwidth in bytes/s."""
    kind = track.kind or kinds.get(track.device)
    bandwidth = (peaks.peak_bandwidth(kind) if kind is not None else None) or track.bandwidth
    return kind, track.peak_flops, bandwidth


def _peaks(
    operation: Operation, kind: str | None, told: float | None, bandwidth: float | None
) -> tuple[float | None, float | None]:
    """Returns the device's peaks: in an operation's number format, in FLOP/s, and of its memory, in bytes/s."""
    peak = peaks.peak_flops_of(kind, operation.dtype) if kind is not None else None
    return peak or told, bandwidth


def _roofline_ratio(
    operation: Operation, peak: float | None, bandwidth: float | None, seconds: float
) -> float | None:  # fmt: skip
    """Returns the share of the time that the operation would take at the peaks of products or the memory."""
    if not operation.bytes or bandwidth is None or operation.category not in _LIMITED:
        return None
    least = operation.bytes / bandwidth
    if operation.category in PRODUCTS:
        if operation.flops is None or peak is None:
            return None
        least = max(least, operation.flops / peak)
    return min(1.0, least / seconds)


_LIMITED = PRODUCTS | {"copy", "elementwise", "reduce"}


def _bound(operation: Operation, peak: float | None, bandwidth: float | None) -> str:
    """By the arithmetic that a byte from memory must pay for, so that the device can compute at its peak."""
    if operation.flops is None or not operation.bytes or peak is None or bandwidth is None:
        return "unknown"
    return "compute" if operation.flops / operation.bytes >= peak / bandwidth else "memory"


def _functions(
    trace: Trace, times: Mapping[str, OwnTime], programs: Programs, known: Mapping[_Key, Operation]
) -> tuple[FunctionTime, ...]:
    seconds: dict[str, float] = defaultdict(float)
    for own in times.values():
        for (_, module, program), time in own.seconds.items():
            if module:
                seconds[programs.function(module, program)] += time * NANO
    calls = _calls(trace, programs, known)
    rows = [FunctionTime(function=name, device_seconds=time, calls=calls.get(name)) for name, time in seconds.items()]
    return tuple(sorted(rows, key=lambda row: (-row.device_seconds, row.function)))


def _calls(trace: Trace, programs: Programs, known: Mapping[_Key, Operation]) -> dict[str, int]:
    """Returns how often each function ran: by the numbers of its executions, else by what runs once in each."""
    numbered: dict[tuple[str, int | None], set[int]] = defaultdict(set)
    once: dict[tuple[str, int | None], Counter[int]] = defaultdict(Counter)
    for track in trace.tracks:
        counts: Counter[_Key] = Counter()
        for run in _each_run(track):
            if run.module:
                if run.execution is not None:
                    numbered[run.module, run.program].add(run.execution)
                else:
                    counts[run.operation, run.module, run.program] += 1
        for key, count in counts.items():
            if ":" in track.device and key in known and known[key].entry:
                once[key[1], key[2]][count] += 1
    found: dict[str, int] = defaultdict(int)
    for name, executions in numbered.items():
        found[programs.function(*name)] += len(executions)
    for name, seen in once.items():
        if name not in numbered:
            found[programs.function(*name)] += max(seen, key=lambda count: (seen[count], -count))
    return found


def _each_run(track: Track) -> Iterable[Run]:
    yield from track.executions
    for row in track.rows:
        yield from row


def _collectives(times: Iterable[OwnTime]) -> CollectiveTime:
    seconds = exposed = 0.0
    for own in times:
        seconds += intervals.total(own.collectives) * NANO
        exposed += intervals.total(intervals.without(own.collectives, own.others)) * NANO
    return CollectiveTime(seconds=seconds, exposed_seconds=exposed)
