"""The programs of a trace: XLA's modules (`HloProto`), as far as categories, scopes, lines and costs follow from them.

The messages are `xla/service/hlo.proto` and `xla/xla_data.proto`: fields are never renumbered there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from jaxobs.base import pacing
from jaxobs.internals.xplane import wire
from jaxobs.internals.xplane.space import Plane, Space

_T = TypeVar("_T")

METADATA_PLANE = "/host:metadata"
_BITS: Mapping[int, int] = {
    1: 8, 2: 8, 3: 16, 4: 32, 5: 64, 6: 8, 7: 16, 8: 32, 9: 64, 10: 16, 11: 32, 12: 64, 15: 64, 16: 16, 18: 128,
    19: 8, 20: 8, 21: 4, 22: 4, 23: 8, 24: 8, 25: 8, 26: 2, 27: 2, 28: 8, 29: 8, 30: 1, 31: 1, 32: 4, 33: 8,
}  # fmt: skip
"""Bits of an element, by XLA's number of its type."""
_NAMES: Mapping[int, str] = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 15: "c64", 16: "bf16", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz",
    25: "f8e4m3fnuz", 28: "f8e4m3", 29: "f8e3m4",
}  # fmt: skip
_NUMBERED = re.compile(r"\((-?\d+)\)$")


@dataclass(frozen=True, slots=True)
class Array:
    """The type and the sizes of one array."""

    dtype: str
    sizes: tuple[int, ...]
    bits: int

    @property
    def elements(self) -> int:
        """How many elements it has."""
        product = 1
        for size in self.sizes:
            product *= size
        return product

    @property
    def bytes(self) -> float:
        """Bytes in memory, without padding."""
        return self.elements * self.bits / 8


@dataclass(frozen=True, slots=True)
class Window:
    """A dimension of a convolution's or a reduction's window."""

    size: int = 1
    stride: int = 1
    padding_low: int = 0
    dilation: int = 1
    base_dilation: int = 1


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of a computation."""

    name: str
    opcode: str
    arrays: tuple[Array, ...] = ()
    """Results of the instruction: several of a tuple."""
    operands: tuple[int, ...] = ()
    """Numbers of the instructions it reads, in the same computation."""
    called: tuple[int, ...] = ()
    """Numbers of the computations that it runs or applies."""
    number: int = 0
    scope: str = ""
    """JAX's path to it, `jit(train_step)/layer1/dot_general`."""
    source: str = ""
    """`file:line` of the program."""
    target: str = ""
    """Target of a custom call."""
    contracted: tuple[int, ...] = ()
    """Dimensions of the first operand that a product sums over."""
    windows: tuple[Window, ...] = ()
    kernel_output: int = 0
    """The dimension of a convolution's kernel that the output has, too."""
    input_spatial: tuple[int, ...] = ()
    """The dimensions of a convolution's input that its window moves along; `output_spatial` likewise."""
    output_spatial: tuple[int, ...] = ()
    batch_groups: int = 1
    parameter: int = 0
    """Which parameter of its computation it is."""
    element: int = 0
    """Which element of a tuple it takes."""
    whole: bool = False
    """Whether all devices of the program take part in one exchange."""


@dataclass(frozen=True, slots=True)
class Computation:
    """The instructions of one computation."""

    name: str
    instructions: Mapping[int, Instruction] = field(default_factory=dict)
    root: int = 0


@dataclass(frozen=True, slots=True)
class Module:
    """A compiled program."""

    name: str
    computations: Mapping[int, Computation] = field(default_factory=dict)
    entry: int = 0
    partitions: int = 1
    """Devices that XLA divides it among."""
    whole: tuple[bool, ...] = ()
    """Whether each device has all of a parameter, by parameter."""


def programs(space: Space) -> dict[int, Module]:
    """Returns the readable programs that ran in a trace, by the number that its events give (`program_id`)."""
    found: dict[int, Module] = {}
    for plane in space.planes:
        if plane.name == METADATA_PLANE:
            found.update(_read(plane))
    return found


def _read(plane: Plane) -> Iterator[tuple[int, Module]]:
    for kind in plane.kinds:
        numbered = _NUMBERED.search(kind.name)
        for value in kind.stats.values():
            if isinstance(value, bytes) and numbered is not None:
                try:
                    yield int(numbered[1]), module(value)
                except (wire.WireError, IndexError, RecursionError):
                    continue


def module(data: bytes) -> Module:
    """Returns the module in a serialized `HloProto`; raises `WireError` if it is not one."""
    inner = next((value for number, value in wire.fields(data) if number == 1), b"")
    if isinstance(inner, int):
        raise wire.WireError("the program is not a message")
    name, entry, raw, frames, devices, whole = "", 0, [], _Frames(b""), 1, []
    for number, value in wire.fields(inner):
        if number == 1:
            name = wire.text(value)
        elif number == 6 and isinstance(value, int):
            entry = value
        elif number == 3 and isinstance(value, bytes):
            raw.append(value)
        elif number == 14 and isinstance(value, bytes):
            whole.append(_is_whole(value))
        elif number == 17 and isinstance(value, bytes):
            frames = _Frames(value)
        elif number == 15 and isinstance(value, bytes):
            devices = _integers_of(value).get(2, 1)
    return Module(name, dict(_computation(each, frames) for each in raw), entry, devices, tuple(whole))


def _is_whole(sharding: bytes) -> bool:
    """Returns whether an `OpSharding` divides nothing: it says nothing, or names no axis for any dimension."""
    named = dict(wire.fields(sharding)).get(14, b"")
    dimensions = [] if isinstance(named, int) else [each for number, each in wire.fields(named) if number == 3]
    divided = any(isinstance(each, bytes) and 1 in dict(wire.fields(each)) for each in dimensions)
    return not divided and (not sharding or named != b"")


def _computation(data: bytes, frames: _Frames) -> tuple[int, Computation]:
    name, number_of_it, root = "", 0, 0
    instructions: dict[int, Instruction] = {}
    for number, value in wire.fields(data):
        if number == 1:
            name = wire.text(value)
        elif number == 2 and isinstance(value, bytes):
            pacing.offer()
            made = _instruction(value, frames)
            instructions[made.number] = made
        elif number == 5 and isinstance(value, int):
            number_of_it = value
        elif number == 6 and isinstance(value, int):
            root = value
    return number_of_it, Computation(name, instructions, root)


def _instruction(data: bytes, frames: _Frames) -> Instruction:
    texts: dict[int, str] = {}
    numbers: dict[int, int] = {}
    lists: dict[int, list[int]] = {36: [], 38: []}
    messages: dict[int, bytes] = {}
    groups = 0
    for number, value in wire.fields(data):
        if number in (1, 2, 28):
            texts[number] = wire.text(value)
        elif number in lists:
            lists[number] += wire.integers(value)
        elif isinstance(value, int):
            numbers[number] = value
        elif number in (3, 7, 15, 16, 30, *_GROUPS):
            messages[number] = value
            groups += number in _GROUPS
    scope, source = _metadata(messages.get(7, b""), frames)
    convolution = messages.get(16, b"")
    return Instruction(
        name=texts.get(1, ""), opcode=texts.get(2, ""), arrays=tuple(_arrays(messages.get(3, b""))),
        operands=tuple(lists[36]), called=tuple(lists[38]), number=numbers.get(35, 0), scope=scope, source=source,
        target=texts.get(28, ""), contracted=tuple(_repeated(messages.get(30, b""), 1)),
        windows=tuple(_windows(messages.get(15, b""))), kernel_output=next(iter(_repeated(convolution, 4)), 0),
        input_spatial=tuple(_repeated(convolution, 11)), output_spatial=tuple(_repeated(convolution, 12)),
        batch_groups=max(1, numbers.get(58, 1)), parameter=numbers.get(9, 0), element=numbers.get(13, 0),
        whole=groups < 2 and _one_group(messages),
    )  # fmt: skip


_GROUPS = (49, 87, 93)
"""Which devices take part in an exchange: groups one by one, in rows of equal length, or along axes of a mesh."""


def _one_group(messages: Mapping[int, bytes]) -> bool:
    """Returns whether all devices take part in one exchange: so they do if nothing is said of groups."""
    rows = messages.get(87, b"")
    if rows:
        listed = [each for number, each in wire.fields(rows) if number == 1]
        counts = [_integers_of(each).get(1, 0) for number, each in wire.fields(rows) if number == 2 and each]
        return len(listed) <= 1 and all(each == 1 for each in counts)
    axes = messages.get(93, b"")
    if axes:
        sizes = [_integers_of(each).get(2, 0) for mesh in _messages(axes, 1) for each in _messages(mesh, 1)]
        taken = 1
        for message in _messages(axes, 2):
            axis, part = _integers_of(message).get(1, 0), _messages(message, 2)
            taken *= _integers_of(part[0]).get(2, 0) if part else sizes[axis] if 0 <= axis < len(sizes) else 0
        return taken == math.prod(sizes)
    return True


def _messages(message: bytes, wanted: int) -> list[bytes]:
    return [value for number, value in wire.fields(message) if number == wanted and isinstance(value, bytes)]


def _integers_of(message: int | bytes) -> dict[int, int]:
    """The integers of a message by their fields."""
    inner = message if isinstance(message, bytes) else b""
    return {number: wire.signed(value) for number, value in wire.fields(inner) if isinstance(value, int)}


def _arrays(shape: bytes) -> Iterator[Array]:
    kind, sizes = 0, []
    for number, value in wire.fields(shape):
        if number == 2 and isinstance(value, int):
            kind = value
        elif number == 3:
            sizes += wire.integers(value)
        elif number == 4 and isinstance(value, bytes):
            yield from _arrays(value)
    if kind in _BITS:
        yield Array(_NAMES.get(kind, "other"), tuple(max(0, size) for size in sizes), _BITS[kind])


def _repeated(message: bytes, wanted: int) -> list[int]:
    return [each for number, value in wire.fields(message) if number == wanted for each in wire.integers(value)]


def _windows(message: bytes) -> Iterator[Window]:
    for number, value in wire.fields(message):
        if number == 1 and isinstance(value, bytes):
            given = {key: wire.signed(each) for key, each in wire.fields(value) if isinstance(each, int)}
            yield Window(given.get(1, 1), given.get(2, 1), given.get(3, 0), given.get(5, 1), given.get(6, 1))


def _metadata(message: bytes, frames: _Frames) -> tuple[str, str]:
    """The scope, and where in the program's source an instruction comes from."""
    scope, file, line, frame = "", "", 0, 0
    for number, value in wire.fields(message):
        if number == 2:
            scope = wire.text(value)
        elif number == 3:
            file = wire.text(value)
        elif number == 4 and isinstance(value, int):
            line = value
        elif number == 15 and isinstance(value, int):
            frame = value
    if not file and frame:
        file, line = frames.place(frame)
    return scope, f"{file}:{line}" if file and line else file


class _Frames:
    """The stack frames that a module's instructions point to: from JAX 0.8 they have no file of their own."""

    def __init__(self, message: bytes) -> None:
        self._files: list[str] = []
        self._places: list[tuple[int, int]] = []
        self._frames: list[int] = []
        for number, value in wire.fields(message):
            if not isinstance(value, bytes):
                continue
            if number == 1:
                self._files.append(wire.text(value))
            elif number == 3:
                given = {key: each for key, each in wire.fields(value) if isinstance(each, int)}
                self._places.append((given.get(1, 0), given.get(3, 0)))
            elif number == 4:
                given = {key: each for key, each in wire.fields(value) if isinstance(each, int)}
                self._frames.append(given.get(1, 0))

    def place(self, frame: int) -> tuple[str, int]:
        """File and line of a frame; frames, places and files are numbered from one."""
        file, line = _numbered(self._places, _numbered(self._frames, frame, 0), (0, 0))
        return _numbered(self._files, file, ""), line


def _numbered(items: Sequence[_T], number: int, otherwise: _T) -> _T:
    return items[number - 1] if 0 < number <= len(items) else otherwise
