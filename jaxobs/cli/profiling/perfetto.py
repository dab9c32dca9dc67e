"""A trace for Perfetto and `chrome://tracing`: the devices' operations, with tracks of our own next to them.

Each device has a track for each row of its operations and one for the reasons of its idle time; the host has one for
steps, and one for each thing that it did instead of dispatching. The trace that JAX writes has all of the host's calls;
this has what the profile says.
"""

import json
from collections.abc import Iterator
from typing import Any

from jaxobs.profiles import idle
from jaxobs.profiles.analysis import Analysis
from jaxobs.profiles.reading import Reading
from jaxobs.profiles.tracks import Track

_MICRO = 1e-3


def perfetto(reading: Reading) -> Iterator[str]:
    """The file, piece by piece: a trace can have a million events."""
    yield '{"displayTimeUnit":"ns","traceEvents":['
    first = True
    for event in _events(reading):
        yield ("" if first else ",\n") + json.dumps(event, separators=(",", ":"), allow_nan=False)
        first = False
    yield "]}\n"


def _events(reading: Reading) -> Iterator[dict[str, Any]]:
    pid = 0
    for host, found in reading.hosts.items():
        prefix = f"{host} " if len(reading.hosts) > 1 else ""
        pid += 1
        yield _named(pid, f"{prefix}host")
        yield from _host(found, pid)
        for track in found.trace.tracks:
            pid += 1
            yield _named(pid, f"{prefix}{track.device}")
            yield from _device(found, track, pid)


def _named(pid: int, name: str, tid: int | None = None) -> dict[str, Any]:
    kind = "process_name" if tid is None else "thread_name"
    return {"ph": "M", "pid": pid, "tid": tid or 0, "name": kind, "args": {"name": name}}


def _slice(pid: int, tid: int, name: str, start: float, end: float, **args: Any) -> dict[str, Any]:
    made = {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": start * _MICRO, "dur": (end - start) * _MICRO}
    told = {key: value for key, value in args.items() if value is not None}
    return made | ({"args": told} if told else {})


def _host(found: Analysis, pid: int) -> Iterator[dict[str, Any]]:
    yield _named(pid, "steps", 1)
    for step in found.trace.steps:
        yield _slice(pid, 1, f"{step.name} {step.number}", step.start, step.end)
    did, _ = idle.host_times(found.trace)
    for tid, reason in enumerate(each for each in idle.ORDER if did.get(each)):
        yield _named(pid, reason.replace("_", " "), tid + 2)
        for start, end in did[reason]:
            yield _slice(pid, tid + 2, reason, start, end)


def _device(found: Analysis, track: Track, pid: int) -> Iterator[dict[str, Any]]:
    rows = [(f"operations {number}" if number else "operations", row) for number, row in enumerate(track.rows)]
    rows += [("beside them", row) for row in track.aside]
    for tid, (name, row) in enumerate(rows, 1):
        yield _named(pid, name, tid)
        for run in sorted(row, key=lambda each: (each.start, -each.end)):
            known = found.describe(run)
            yield _slice(
                pid, tid, run.operation, run.start, run.end, function=found.function(run), category=known.category,
                scope=known.scope, source=known.source, flops=known.flops, bytes=known.bytes,
            )  # fmt: skip
    gaps = found.gaps.get(track.device, ())
    if gaps:
        yield _named(pid, "idle, and why", len(rows) + 1)
    for start, end, reason in gaps:
        yield _slice(pid, len(rows) + 1, reason, start, end)
