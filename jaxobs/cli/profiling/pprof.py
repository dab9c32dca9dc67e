"""A profile in pprof's format, which pprof, Pyroscope and Speedscope open: `profile.proto`, compressed."""

import gzip

from jaxobs.facts.profiles import OperationTime, Profile
from jaxobs.internals.xplane import wire
from jaxobs.profiles import stacks

_NANO = 1_000_000_000


def pprof(profile: Profile, ended: float | None = None) -> bytes:
    """The operations' own time and runs by function, scope and operation; `ended` in seconds since the epoch."""
    made = _Profile()
    samples = [made.sample(row) for row in profile.operations]
    message = [made.value_type(1, "device", "nanoseconds"), made.value_type(1, "runs", "count"), *samples]
    message += [*made.locations, *made.functions]
    if ended is not None:
        message.append(wire.number(9, round((ended - profile.window_seconds) * _NANO)))
    message += [wire.number(10, round(profile.window_seconds * _NANO)), made.value_type(11, "device", "nanoseconds")]
    message.append(wire.number(14, made.text("device")))
    message += [wire.sized(6, each) for each in made.texts]  # last: all of the above are in it
    return gzip.compress(b"".join(message), mtime=0)


class _Profile:
    """The tables that samples point into."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {"": 0}
        self.locations: list[bytes] = []
        self.functions: list[bytes] = []
        self._known: dict[tuple[str, str | None], int] = {}

    def text(self, text: str) -> int:
        """The number of a text."""
        return self.texts.setdefault(text, len(self.texts))

    def value_type(self, field: int, kind: str, unit: str) -> bytes:
        """A kind of value, with its unit."""
        return wire.sized(field, wire.number(1, self.text(kind)) + wire.number(2, self.text(unit)))

    def sample(self, row: OperationTime) -> bytes:
        """The time and the runs of an operation, the innermost frame first."""
        *outer, last = stacks.frames(row)
        places = [self._location(last, row.source), *(self._location(each, None) for each in reversed(outer))]
        values = round(row.device_seconds * _NANO), row.count
        label = wire.number(1, self.text("category")) + wire.number(2, self.text(row.category))
        return wire.sized(2, wire.packed(1, places) + wire.packed(2, values) + wire.sized(3, label))

    def _location(self, name: str, source: str | None) -> int:
        known = self._known.get((name, source))
        if known is not None:
            return known
        number = self._known[name, source] = len(self._known) + 1
        file, _, line = (source or "").rpartition(":")
        place = wire.number(1, number) + wire.number(2, int(line) if line.isdigit() else 0)
        self.locations.append(wire.sized(4, wire.number(1, number) + wire.sized(4, place)))
        self.functions.append(
            wire.sized(
                5,
                wire.number(1, number) + wire.number(2, self.text(name)) + wire.number(3, self.text(name))
                + wire.number(4, self.text(file)),
            )
        )  # fmt: skip
        return number
