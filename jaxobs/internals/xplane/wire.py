"""Protocol buffers as bytes: the numbers and contents of a message's fields, without its schema."""

import struct
from collections.abc import Iterable, Iterator

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are not a message, or end in the middle of one."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns an unsigned integer, and where the next thing begins; raises `WireError` if it has no end."""
    value = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
            if shift > 63:
                raise WireError(f"a number at byte {at} does not end")
    except IndexError:
        raise WireError("the data end in the middle of a number") from None


def fields(data: bytes, at: int = 0, end: int | None = None) -> Iterator[tuple[int, int | bytes]]:
    """Yields each field's number and integer or bytes; raises `WireError` if the bytes hold something else."""
    for number, value in spans(data, at, end):
        yield number, value if isinstance(value, int) else data[value[0] : value[1]]


def spans(data: bytes, at: int = 0, end: int | None = None) -> Iterator[tuple[int, int | tuple[int, int]]]:
    """As `fields`, with where the bytes begin and end instead of a copy of them."""
    end = len(data) if end is None else end
    while at < end:
        key, at = varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = varint(data, at)
            yield key >> 3, value
            continue
        if kind == _LENGTH:
            length, at = varint(data, at)
        elif kind == _EIGHT_BYTES:
            length = 8
        elif kind == _FOUR_BYTES:
            length = 4
        else:
            raise WireError(f"byte {at} begins a field of an unknown kind")
        if at + length > end:
            raise WireError("the data end in the middle of a field")
        yield key >> 3, (at, at + length)
        at += length


def signed(value: int) -> int:
    """An integer that was written as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def integers(value: int | bytes) -> list[int]:
    """The integers of a repeated field, packed or one by one."""
    if isinstance(value, int):
        return [signed(value)]
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(signed(number))
    return found


def double(value: int | bytes) -> float:
    """Returns a floating-point number of eight bytes; raises `WireError` if the field holds something else."""
    if isinstance(value, int) or len(value) != 8:
        raise WireError("a number has the wrong size")
    found: float = struct.unpack("<d", value)[0]
    return found


def text(value: int | bytes) -> str:
    """Text; what is not UTF-8 in it is replaced."""
    return "" if isinstance(value, int) else value.decode("utf-8", "replace")


# ------------------------------------------------------------------------------------------------------- writing


def encoded(value: int) -> bytes:
    """An integer as it is written; a negative one as int64."""
    value &= (1 << 64) - 1
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def number(field: int, value: int) -> bytes:
    """A field with an integer."""
    return encoded(field << 3) + encoded(value)


def sized(field: int, value: bytes | str) -> bytes:
    """A field with a message or a text."""
    data = value.encode(errors="backslashreplace") if isinstance(value, str) else value
    return encoded(field << 3 | _LENGTH) + encoded(len(data)) + data


def packed(field: int, values: Iterable[int]) -> bytes:
    """A field with several integers."""
    return sized(field, b"".join(map(encoded, values)))
