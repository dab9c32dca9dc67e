"""The events of a trace: planes (a device, the host), their lines (a stream, a thread), and what happened on them.

The messages are `tsl/profiler/protobuf/xplane.proto`: fields are never renumbered there. What is damaged is refused
as a whole, since a trace that ends early has lost whole devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from jaxobs.base import pacing
from jaxobs.internals.xplane import wire

Value: TypeAlias = int | float | str | bytes
Stats: TypeAlias = Mapping[str, Value]
Wanted: TypeAlias = Callable[[str, str], bool]
"""Whether the events of a plane with this name are of interest: given the plane's and the event's name."""

MOST_EVENTS = 4_000_000
_MOST_PLANES = 10_000

_KIND, _OFFSET, _DURATION, _STATS = 1 << 3, 2 << 3, 3 << 3, 4 << 3 | 2
"""The fields of an event, as they are written: number and kind in one byte."""
_MOST_KEPT = 64
"""Bytes of a value that is kept."""
_MOST_VALUES = 50_000


class TooManyEventsError(ValueError):
    """The trace has more events than are read."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Facts of all events of one name."""

    name: str
    display_name: str = ""
    stats: Stats = field(default_factory=dict)


class Event(NamedTuple):
    """Something that took time. A tuple, since a trace has a million of them."""

    kind: Kind
    start: float
    """Nanoseconds, on the clock of its line; `end` likewise."""
    end: float
    stats: Stats = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Line:
    """A thread of the host, a stream or a core's unit: what happens there is in order or nested."""

    name: str
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Plane:
    """A device or the host."""

    name: str
    lines: tuple[Line, ...] = ()
    stats: Stats = field(default_factory=dict)
    kinds: tuple[Kind, ...] = ()
    """Every name that the plane declares, those without events too: the programs are such names."""


@dataclass(frozen=True, slots=True)
class Space:
    """A trace of one host."""

    planes: tuple[Plane, ...] = ()


def read(data: bytes, wanted: Wanted | None = None) -> Space:
    """Returns the trace in a `*.xplane.pb`, in 4 µs an event; raises `WireError`, `TooManyEventsError`."""
    left = [MOST_EVENTS]
    try:
        planes = []
        for count, (number, span) in enumerate(wire.spans(data)):
            if count >= _MOST_PLANES:
                raise TooManyEventsError(f"it has more than {_MOST_PLANES:,} planes")
            if number == 1 and isinstance(span, tuple):
                planes.append(span)
        return Space(tuple(_plane(data, *span, wanted, left) for span in planes))
    except IndexError:
        raise wire.WireError("the data end in the middle of an event") from None


def _plane(data: bytes, at: int, end: int, wanted: Wanted | None, left: list[int]) -> Plane:
    name, lines, kinds, names, given = "", [], {}, {}, []
    for number, value in wire.spans(data, at, end):
        if isinstance(value, int):
            continue
        if number == 2:
            name = wire.text(data[slice(*value)])
        elif number == 3:
            lines.append(value)
        elif number == 4:
            pacing.offer()
            entry = _entry(data, value)
            kinds[entry[0]] = entry[1]
        elif number == 5:
            key, message = _entry(data, value)
            names[key] = next((wire.text(text) for n, text in wire.fields(message) if n == 2), "")
        elif number == 6:
            given.append(value)
    known = _Known(names)
    made = {key: _kind(message, known) for key, message in kinds.items()}
    chosen = {key: each for key, each in made.items() if wanted is None or wanted(name, each.name)}
    stats = dict(found for span in given if (found := known.stat(data, *span)) is not None)
    read_lines = tuple(_line(data, *span, chosen, known, left) for span in lines)
    return Plane(name, read_lines, stats, tuple(made.values()))


def _entry(data: bytes, span: tuple[int, int]) -> tuple[int, bytes]:
    """An entry of a map: its key and its message."""
    key, message = 0, b""
    for number, value in wire.fields(data, *span):
        if number == 1 and isinstance(value, int):
            key = value
        elif number == 2 and isinstance(value, bytes):
            message = value
    return key, message


def _kind(message: bytes, known: _Known) -> Kind:
    name, display_name, stats = "", "", {}
    for number, value in wire.spans(message):
        if isinstance(value, int):
            continue
        if number == 2:
            name = wire.text(message[slice(*value)])
        elif number == 4:
            display_name = wire.text(message[slice(*value)])
        elif number == 5:
            found = known.stat(message, *value)
            if found is not None:
                stats[found[0]] = found[1]
    return Kind(name, display_name, stats)


class _Known:
    """The names of a plane's statistics; values that come again and again are read once."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names
        self._read: dict[bytes, tuple[str, Value] | None] = {}
        self._unwanted = {
            bytes((_KIND, key)) for key, name in names.items() if key < 0x80 and name.startswith("_") and name != "_r"
        }

    def stat(self, data: bytes, at: int, end: int) -> tuple[str, Value] | None:
        """The name and the value of one statistic; None for what only links events to others."""
        raw = data[at:end]
        try:
            return self._read[raw]
        except KeyError:
            pass
        if raw[:2] in self._unwanted:
            return None
        found = self._stat(raw)
        if len(raw) <= _MOST_KEPT:
            if len(self._read) > _MOST_VALUES:
                self._read.clear()
            self._read[raw] = found
        return found

    def _stat(self, raw: bytes) -> tuple[str, Value]:
        name = ""
        value: Value = b""
        for number, given in wire.fields(raw):
            if number == 1 and isinstance(given, int):
                name = self._names.get(given, "")
            elif number == 2:
                value = wire.double(given)
            elif number == 3 and isinstance(given, int):
                value = given
            elif number == 4 and isinstance(given, int):
                value = wire.signed(given)
            elif number == 5:
                value = wire.text(given)
            elif number == 6:
                value = given
            elif number == 7 and isinstance(given, int):
                value = self._names.get(given, "")
        return name, value


def _line(data: bytes, at: int, end: int, kinds: Mapping[int, Kind], known: _Known, left: list[int]) -> Line:
    name, display_name, begin, events = "", "", 0, []
    for number, value in wire.spans(data, at, end):
        if number == 3 and isinstance(value, int):
            begin = wire.signed(value)
        elif isinstance(value, int):
            continue
        elif number == 2:
            name = wire.text(data[slice(*value)])
        elif number == 11:
            display_name = wire.text(data[slice(*value)])
        elif number == 4:
            events.append(value)
    made: list[Event] = []
    for number, span in enumerate(events):
        if not number & 63:
            pacing.offer()
        event = _event(data, *span, begin, kinds, known)
        if event is not None:
            made.append(event)
    left[0] -= len(made)
    if left[0] < 0:
        raise TooManyEventsError(f"it has more than {MOST_EVENTS:,} events")
    return Line(display_name or name, tuple(made))


def _event(data: bytes, at: int, end: int, begin: int, kinds: Mapping[int, Kind], known: _Known) -> Event | None:
    """An event, None where its name is not wanted. Written out: most of the time of reading a trace goes here."""
    kind: Kind | None = None
    offset = duration = 0
    stats: dict[str, Value] = {}
    while at < end:
        tag = data[at]
        value = data[at + 1]
        at += 2
        if value >= 0x80:
            value &= 0x7F
            shift = 7
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
        if tag == _STATS:
            found = known.stat(data, at, at + value)
            at += value
            if found is not None:
                stats[found[0]] = found[1]
        elif tag == _KIND:
            kind = kinds.get(value)
            if kind is None:
                return None
        elif tag == _OFFSET:
            offset = value
        elif tag == _DURATION:
            duration = value
        elif tag & 7 != 0:
            raise wire.WireError(f"byte {at} begins a field of an unknown kind")
    if kind is None or at != end:
        return None
    start = begin + wire.signed(offset) / 1000
    return Event(kind, start, start + duration / 1000, stats)
