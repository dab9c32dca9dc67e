"""Finds the trace behind a path and reads it: a file, or a directory as JAX's profiler and jaxobs's captures make."""

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jaxobs.base.errors import JaxobsError
from jaxobs.facts.profiles import CollectiveTime, FunctionTime, IdleTime, OperationTime, Profile
from jaxobs.internals.xplane import space
from jaxobs.internals.xplane.wire import WireError
from jaxobs.profiles import host_record
from jaxobs.profiles.analysis import Analysis, analyse
from jaxobs.profiles.intervals import Interval
from jaxobs.profiles.tracks import Step, Trace, trace_of, wanted

ENDING = ".xplane.pb"
MOST_BYTES = 2 * 2**30
_MOST_DEEP = 6
_MOST_PLACES = 10_000


class TraceError(JaxobsError, ValueError):
    """There is no trace, or it cannot be read."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A trace that was read."""

    profile: Profile
    hosts: Mapping[str, Analysis] = field(default_factory=dict)
    """The trace of each host, by its name."""
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences for a person: what is missing, and what else lies there."""


def read(path: str | os.PathLike[str], kinds: Mapping[str, str] | None = None) -> Reading:
    """Returns the profile of a trace, or of a directory's newest; raises `TraceError`, which says what to do."""
    files, notes = _find(Path(path))
    traces = {each.name.removesuffix(ENDING): (_read(each), host_record.find(each)) for each in files}
    if not any(each.tracks for each, _ in traces.values()):
        notes.append(
            "The trace has no operations of a device: nothing ran on one while it was taken, or the backend does not "
            "report them."
        )
    elif not any(each.programs for each, _ in traces.values()):
        notes.append(
            "The trace has no programs, so scopes, source lines, FLOPs and bytes are unknown: it was taken with "
            "`enable_hlo_proto` off, or by a JAX that does not write them."
        )
    hosts = {host: _analysed(trace, spans, kinds) for host, (trace, spans) in traces.items()}
    profile = merged({host: each.profile for host, each in hosts.items()})
    return Reading(profile, hosts, tuple(map(str, files)), tuple(notes))


def _analysed(trace: Trace, spans: Mapping[str, list[Interval]], kinds: Mapping[str, str] | None) -> Analysis:
    """With what jaxobs recorded of the host, if it took the trace."""
    began = trace.began
    if not spans or began is None:
        return analyse(trace, kinds)
    if not trace.steps:
        made = enumerate(host_record.steps(spans, began, trace.window))
        trace = dataclasses.replace(trace, steps=tuple(Step(*span, "step", number) for number, span in made))
    return analyse(trace, kinds, host_record.reasons(spans, began))


def _find(path: Path) -> tuple[list[Path], list[str]]:
    """Returns the files of one trace, one for each host, and sentences about what else is there."""
    if not path.exists():
        raise TraceError(
            f"`{path}` does not exist. Give a file `*{ENDING}`, or the directory that `jax.profiler.start_trace` or "
            f"`jaxobs.capture` wrote to."
        )
    if path.is_file():
        return [path], []
    if not path.is_dir():
        raise TraceError(f"`{path}` is neither a file nor a directory. Give a file `*{ENDING}` or a directory.")
    sessions: dict[Path, list[Path]] = {}
    for found in _below(path):
        sessions.setdefault(found.parent, []).append(found)
    if not sessions:
        raise TraceError(
            f"`{path}` has no file `*{ENDING}`: it is not the directory of a trace, or the trace was not stopped. "
            f"Give the directory that `jax.profiler.start_trace` or `jaxobs.capture` wrote to."
        )
    newest = max(sessions, key=lambda each: (max(file.stat().st_mtime for file in sessions[each]), each.name))
    notes = []
    if len(sessions) > 1:
        notes.append(f"`{path}` has {len(sessions)} traces. This is the newest, `{newest}`: name another to read that.")
    return sorted(sessions[newest]), notes


def _below(path: Path) -> Iterator[Path]:
    left, seen = [(path, 0)], 0
    while left:
        folder, deep = left.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            raise TraceError(f"`{folder}` cannot be read: {error.strerror or error}.") from None
        for entry in entries:
            seen += 1
            if entry.name.endswith(ENDING) and entry.is_file():
                yield Path(entry.path)
            elif deep < _MOST_DEEP and seen < _MOST_PLACES and entry.is_dir(follow_symlinks=False):
                left.append((Path(entry.path), deep + 1))


def _read(path: Path) -> Trace:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise TraceError(
                f"`{path}` has {size / 2**30:.1f} GiB, and at most {MOST_BYTES / 2**30:.0f} GiB are read. "
                f"Trace fewer steps."
            )
        data = path.read_bytes()
    except OSError as error:
        raise TraceError(f"`{path}` cannot be read: {error.strerror or error}.") from None
    try:
        found = space.read(data, wanted)
    except space.TooManyEventsError as error:
        raise TraceError(f"`{path}` is too large: {error}. Trace fewer steps.") from None
    except WireError as error:
        raise TraceError(f"`{path}` is not a trace, or only a part of one: {error}. {_instead(path, data)}") from None
    if not found.planes:
        raise TraceError(f"`{path}` is not a trace: it has no planes. {_instead(path, data)}")
    return trace_of(found)


def _instead(path: Path, data: bytes) -> str:
    if path.name.endswith((".json", ".json.gz")) or data[:2] in (b"\x1f\x8b", b'{"', b"{\n"):
        return f"This looks like the trace for a viewer: give the file `*{ENDING}` beside it."
    return f"Give a file `*{ENDING}` that JAX's profiler wrote, and copy it again if it was cut off on the way."


def merged(profiles: Mapping[str, Profile]) -> Profile:
    """Devices side by side, named by their host where there are several; everything else added up.

    The window is the longest one: the hosts' clocks don't agree well enough to find moments that all of them saw.
    """
    each = list(profiles.values())
    if len(each) == 1:
        return each[0]
    window = max((one.window_seconds for one in each), default=0.0)
    steps = [one.steps for one in each if one.steps is not None]
    exchanges = [one.collectives for one in each if one.collectives is not None]
    return Profile(
        window_seconds=window,
        steps=max(steps, default=None),
        devices=tuple(
            dataclasses.replace(device, device=f"{host}/{device.device}")
            for host, one in profiles.items()
            for device in one.devices
        ),
        functions=_functions([row for one in each for row in one.functions]),
        operations=_operations([row for one in each for row in one.operations]),
        idle=_idle([row for one in each for row in one.idle]),
        collectives=CollectiveTime(
            seconds=sum(one.seconds for one in exchanges),
            exposed_seconds=sum(one.exposed_seconds for one in exchanges),
        ) if exchanges else None,
    )  # fmt: skip


def _functions(rows: Sequence[FunctionTime]) -> tuple[FunctionTime, ...]:
    found: dict[str, FunctionTime] = {}
    for row in rows:
        known = found.get(row.function)
        calls = [each.calls for each in (known, row) if each is not None and each.calls is not None]
        found[row.function] = FunctionTime(
            function=row.function,
            device_seconds=row.device_seconds + (known.device_seconds if known is not None else 0.0),
            calls=max(calls, default=None),
        )
    return tuple(sorted(found.values(), key=lambda row: (-row.device_seconds, row.function)))


def _operations(rows: Sequence[OperationTime]) -> tuple[OperationTime, ...]:
    together: dict[tuple[str | None, ...], list[OperationTime]] = {}
    for row in rows:
        key = row.operation, row.function, row.category, row.scope, row.source, row.bound
        together.setdefault(key, []).append(row)
    everything = sum(row.device_seconds for row in rows)
    found = []
    for same in together.values():
        seconds = sum(row.device_seconds for row in same)
        found.append(
            dataclasses.replace(
                same[0],
                device_seconds=seconds,
                share=seconds / everything if everything else 0.0,
                count=sum(row.count for row in same),
                flops=_added(row.flops for row in same),
                bytes=_added(row.bytes for row in same),
                roofline_ratio=_mean_ratio(same),
            )
        )
    return tuple(sorted(found, key=lambda row: (-row.device_seconds, row.operation)))


def _added(figures: Iterable[float | None]) -> float | None:
    known = [each for each in figures if each is not None]
    return sum(known) if known else None


def _mean_ratio(rows: Sequence[OperationTime]) -> float | None:
    """By their time; None if it isn't known of one."""
    seconds = sum(row.device_seconds for row in rows)
    if not seconds or any(row.roofline_ratio is None for row in rows):
        return None
    return sum((row.roofline_ratio or 0.0) * row.device_seconds for row in rows) / seconds


def _idle(rows: Sequence[IdleTime]) -> tuple[IdleTime, ...]:
    seconds: dict[str, float] = {}
    for row in rows:
        seconds[row.reason] = seconds.get(row.reason, 0.0) + row.seconds
    found = [IdleTime(reason=reason, seconds=time) for reason, time in seconds.items()]
    return tuple(sorted(found, key=lambda row: (-row.seconds, row.reason)))
