"""Reads the trace of a sample: where the devices' time went in it."""

import dataclasses
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from time import perf_counter

from jaxobs.base import pacing
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.facts.profile_samples import ProfileSample, SampledFunction
from jaxobs.facts.profiles import PRODUCTS, IdleTime, OperationTime, Profile
from jaxobs.internals.short_traces import MARK
from jaxobs.internals.xplane import space
from jaxobs.internals.xplane.modules import Module
from jaxobs.profiles import analysis, exposure, host_record, idle, intervals
from jaxobs.profiles.analysis import Analysis
from jaxobs.profiles.idle import Gap
from jaxobs.profiles.intervals import Interval
from jaxobs.profiles.programs import Programs
from jaxobs.profiles.tracks import Trace, trace_of, wanted
from jaxobs.sources.support.host_looks import WAITS, HostLooks
from jaxobs.state.host_record import HostRecord

_WAITS = re.compile(r"Buffer::Await$|BlockHostUntil|BlockUntilReady")
"""Names of what a thread does on the host while it waits for a device."""
MOST_OPERATIONS = 10
MOST_FUNCTIONS = 20
MOST_PROGRAMS = 256
"""Programs that are kept from one sample to the next: those that ran last."""
NONE = "<none>"
"""The function of what belongs to no program, such as transfers that the host asks for."""
EAGER = "<eager>"


class Reader:
    """Reads samples, and keeps what it learnt about programs: with them, a trace is several times larger."""

    def __init__(self) -> None:
        self._programs: OrderedDict[int, Module] = OrderedDict()
        self._described = Programs({})
        self._without: set[int] = set()
        """Numbers of programs that ran and that no trace has in it."""
        self._devices: set[str] = set()
        self.wants_programs = True
        """Whether the next trace should have the programs in it."""

    def read(
        self, data: bytes, looks: HostLooks, host: HostRecord, began: float, kinds: Mapping[str, str],
        names: Mapping[str, str],
    ) -> ProfileSample:  # fmt: skip
        """Returns what a trace says, as an event without what only its taker knows.

        Args:
          data: the trace.
          looks: where the program's thread was meanwhile.
          host: what the account of its time noted meanwhile.
          began: when its first mark began, by `perf_counter`.
          kinds: JAX's `device_kind` by device.
          names: functions by JAX's name for them.

        Raises:
          WireError: it is not one.
        """
        trace = self._with_programs(trace_of(space.read(data, wanted)))
        at_zero = began - _marked(trace) * 1e-9
        did = looks.spans(at_zero)
        waits = did.pop(WAITS, [])
        noted = host.as_json()["spans"]
        for reason, times in host_record.reasons(noted, (at_zero + time.time() - perf_counter()) * 1e9).items():
            did[reason] = [*did.get(reason, []), *times]
        spans = {reason: intervals.union(each) for reason, each in did.items()}
        found = analysis.analyse(trace, kinds, spans, self._described)
        pacing.offer()
        profile, gaps = found.profile, _without_waits(found, waits)
        exposed = (
            exposure.by_function(trace, self._described) if profile.collectives and profile.collectives.seconds else {}
        )
        busy = {each.device: each.busy_ratio for each in profile.devices}
        self._devices |= busy.keys()
        return ProfileSample(
            time=time.time(),
            window_seconds=profile.window_seconds,
            busy={device: busy.get(device, 0.0) for device in sorted(self._devices)},
            functions=_functions(profile, exposed, names),
            operations=tuple(
                dataclasses.replace(each, function=names.get(each.function or "", each.function))
                for each in profile.operations[:MOST_OPERATIONS]
            ),
            idle=tuple(
                IdleTime(reason=reason, seconds=seconds * 1e-9)
                for reason, seconds in idle.seconds_by_reason(gaps)
                if seconds
            ),
            collective_seconds=profile.collectives.seconds if profile.collectives else None,
            exposed_seconds=profile.collectives.exposed_seconds if profile.collectives else None,
            places=looks.places(gaps.values(), at_zero),
            looks=len(looks),
            bytes=len(data),
        )

    def _with_programs(self, trace: Trace) -> Trace:
        if trace.programs:
            self._programs.update(trace.programs)
            self._described = Programs(self._programs)
        ran = {run.program for track in trace.tracks for row in track.rows for run in row if run.program is not None}
        if self.wants_programs:
            self._without = ran - self._programs.keys()
        self.wants_programs = not ran <= self._programs.keys() | self._without
        for number in ran & self._programs.keys():
            self._programs.move_to_end(number)
        while len(self._programs) > MOST_PROGRAMS:
            self._programs.popitem(last=False)
        return dataclasses.replace(trace, programs=dict(self._programs))


def _marked(trace: Trace) -> float:
    """Returns when our first mark is, in nanoseconds of the trace; the trace's beginning if there is none."""
    marks = [each.start for events in trace.host.values() for each in events if each.name == MARK]
    return min(marks, default=trace.window[0])


def _without_waits(found: Analysis, seen: Sequence[Interval]) -> dict[str, list[Gap]]:
    """The gaps; while the program's thread waits for a device, it is not what keeps devices idle."""
    traced = [
        (each.start, each.end) for events in found.trace.host.values() for each in events if _WAITS.search(each.name)
    ]
    waits = intervals.union([*seen, *traced])
    gaps: dict[str, list[Gap]] = {}
    for device, each in found.gaps.items():
        made = [gap for gap in each if gap[2] != "dispatch"]
        own = [(start, end) for start, end, reason in each if reason == "dispatch"]
        made += [(start, end, "unknown") for start, end in intervals.common(own, waits)]
        made += [(start, end, "dispatch") for start, end in intervals.without(own, waits)]
        gaps[device] = sorted(made)
    return gaps


def _functions(profile: Profile, exposed: Mapping[str, float], names: Mapping[str, str]) -> tuple[SampledFunction, ...]:
    seconds: dict[str, dict[str, float]] = {}
    replicated: dict[str, float] = {}
    widened: dict[str, float] = {}
    for operation in profile.operations:
        by_category = seconds.setdefault(_named(operation, names), {})
        by_category[operation.category] = by_category.get(operation.category, 0.0) + operation.device_seconds
        if operation.category in PRODUCTS:
            _add(replicated, operation, names, operation.replicated)
        _add(widened, operation, names, operation.widened)
    shown: dict[str, float] = {}
    for function, spent in exposed.items():
        name = names.get(function, function) or NONE
        shown[name] = shown.get(name, 0.0) + spent
    ordered = sorted(seconds, key=lambda name: -sum(seconds[name].values()))
    return tuple(
        SampledFunction(
            function=name,
            seconds=seconds[name],
            exposed_seconds=shown.get(name),
            replicated_seconds=replicated.get(name),
            widened_seconds=widened.get(name),
        )
        for name in ordered[:MOST_FUNCTIONS]
    )


def _add(seconds: dict[str, float], operation: OperationTime, names: Mapping[str, str], counts: bool | None) -> None:
    """Adds an operation's time to its function's, if it counts; nothing if nobody knows."""
    if counts is not None:
        name = _named(operation, names)
        seconds[name] = seconds.get(name, 0.0) + operation.device_seconds * counts


def _named(operation: OperationTime, names: Mapping[str, str]) -> str:
    return NONE if operation.function is None else names.get(operation.function, operation.function)


def names_of(events: Sequence[Event]) -> dict[str, str]:
    """The functions that compiled, by JAX's name for each, if no two have the same."""
    found: dict[str, set[str]] = {}
    for event in events:
        if isinstance(event, Compilation):
            own = event.function.rpartition(".")[2]
            found.setdefault(own, set()).add(EAGER if event.eager else event.function)
    clear = {own: names - {EAGER} or names for own, names in found.items()}
    return {own: next(iter(names)) for own, names in clear.items() if len(names) == 1}
