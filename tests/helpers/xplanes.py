"""Traces as bytes, as JAX's profiler would write them, made by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jaxobs.internals.xplane.space import Event, Kind, Line, Plane, Space, Stats, Value
from jaxobs.internals.xplane.wire import encoded, number, sized


@dataclass
class _Names:
    """The numbers of a plane's names."""

    known: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        return self.known.setdefault(name, len(self.known) + 1)


def _stat(names: _Names, name: str, value: Value) -> bytes:
    made = number(1, names.of(name))
    if isinstance(value, float):
        return made + encoded(2 << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return made + number(4, value)
    if isinstance(value, bytes):
        return made + sized(6, value)
    # As the profiler writes texts that come again and again.
    return made + (number(7, names.of(value)) if name.startswith("hlo_") else sized(5, value))


def _stats(names: _Names, field_number: int, stats: Stats) -> bytes:
    return b"".join(sized(field_number, _stat(names, name, value)) for name, value in stats.items())


def _kind(numbered: int, kind: Kind, names: _Names) -> bytes:
    message = number(1, numbered) + sized(2, kind.name) + sized(4, kind.display_name) + _stats(names, 5, kind.stats)
    return sized(4, number(1, numbered) + sized(2, message))


def plane(made: Plane) -> bytes:
    """A plane."""
    names, kinds = _Names(), {}
    for each in made.kinds:
        kinds.setdefault(each.name, (len(kinds) + 1, each))
    lines = b""
    for place, line in enumerate(made.lines):
        begin = min((int(event.start) for event in line.events), default=0)
        events: list[bytes] = []
        for event in line.events:
            numbered, _ = kinds.setdefault(event.kind.name, (len(kinds) + 1, event.kind))
            timed = number(2, round((event.start - begin) * 1000)) + number(3, round((event.end - event.start) * 1000))
            events.append(sized(4, number(1, numbered) + timed + _stats(names, 4, event.stats)))
        lines += sized(3, number(1, place + 1) + sized(2, line.name) + number(3, begin) + b"".join(events))
    stats = _stats(names, 6, made.stats)
    declared = b"".join(_kind(numbered, kind, names) for numbered, kind in kinds.values())
    named = b"".join(
        sized(5, number(1, n) + sized(2, number(1, n) + sized(2, name))) for name, n in names.known.items()
    )
    return sized(2, made.name) + lines + declared + named + stats


def space(made: Space) -> bytes:
    """A whole trace."""
    return b"".join(sized(1, plane(each)) for each in made.planes)


def event(name: str, start: float, end: float, display_name: str = "", /, **stats: Value) -> Event:
    """An event in nanoseconds."""
    return Event(Kind(name, display_name), start, end, stats)


def operation(name: str, start: float, end: float, device: int = 0, run: int = 1, module: str = "jit_f") -> Event:
    """An operation as the CPU's threads record it."""
    return event(
        name, start, end, hlo_op=name, hlo_module=module, program_id=7, run_id=run, device_ordinal=device
    )  # fmt: skip


def host(**lines: Iterable[Event]) -> Plane:
    """The host's plane, with a thread for each argument."""
    return Plane("/host:CPU", tuple(Line(name, tuple(events)) for name, events in lines.items()))


def device(name: str, lines: Mapping[str, Iterable[Event]], **stats: Value) -> Plane:
    """An accelerator's plane."""
    return Plane(f"/device:{name}", tuple(Line(line, tuple(events)) for line, events in lines.items()), stats)


def write(folder: Path, *planes: Plane, host: str = "here") -> Path:
    """Writes a trace as JAX's profiler does, and returns the folder."""
    place = folder / "plugins" / "profile" / "2026_01_01_00_00_00"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{host}.xplane.pb").write_bytes(space(Space(planes)))
    return folder
