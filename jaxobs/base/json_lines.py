"""JSON from outside: event logs and answers, which may be damaged, foreign or made to do harm.

A line that cannot be read costs that line: it is skipped and counted. What is read has bounded depth and numbers that
arithmetic can take, so that what uses it need not ask again.
"""

import codecs
import json
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn

MOST_LINE = 16 * 2**20
"""Bytes of a line; a longer one is damaged."""
MOST_DEPTH, MOST_NUMBER = 64, 2**64
MOST_VALUES = 2_000_000
"""Commas and brackets of a text: two bytes of it can become a hundred in memory."""
MOST_LINES = 100_000
"""Lines of a file that are read, half of them from its end."""
MOST_READ = 6_000_000
"""Values of a file that are read, half of them from its end: each may take 60 bytes of memory."""
_BLOCK, _MOST_BLOCKS = 2**20, 48
_MOST_NAMED, _SHOWN = 5, 60

_ALIKE = bytes.maketrans(b"E123456789 ,[]}-\t\r\n", b"e000000000:::::::::")
_SUSPECT = (b":" + b"0" * 19, b"0e000:", b"0e+000:", b"0e0000", b"0e+0000")
"""Without these, where digits and what is around a number are alike, no number is out of range."""


def loads(text: bytes | str) -> Any:
    """Returns the value of JSON text; raises `ValueError` for other text, too deep a value, or too large a number."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if len(data) > MOST_VALUES and sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES:,} values")
    try:
        # By ourselves: `json` takes bytes with NULs for UTF-16.
        value = _DECODER.decode(data.removeprefix(codecs.BOM_UTF8).decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    alike = b":%b:" % data.translate(_ALIKE)
    if data.count(b"[") + data.count(b"{") > MOST_DEPTH or any(each in alike for each in _SUSPECT):
        _check(value)
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _check(value: Any) -> None:
    level: list[Any] = [[value]]
    for _ in range(MOST_DEPTH + 1):
        inner: list[Any] = []
        for outer in level:
            for item in outer.values() if type(outer) is dict else outer:
                kind = type(item)
                if kind is dict or kind is list:
                    inner.append(item)
                elif (kind is int and abs(item) >= MOST_NUMBER) or (kind is float and not math.isfinite(item)):
                    raise ValueError("a number is out of range")
        level = inner
        if not level:
            return
    raise ValueError("it is nested too deeply")


@dataclass(slots=True)
class Damage:
    """The lines of a file that were skipped."""

    count: int = 0
    lines: list[int] = field(default_factory=list)
    """Numbers of the first of them."""
    what: str = ""
    """Fault of the first skipped line."""
    shown: str = ""
    """First characters of the first skipped line."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Number of what was not read for a bound, by name."""

    def add(self, number: int, what: str, line: bytes = b"") -> None:
        """Counts a line."""
        if not self.count:
            self.what, self.shown = what, line[:_SHOWN].decode("utf-8", "backslashreplace").strip()
        self.count += 1
        if len(self.lines) < _MOST_NAMED:
            self.lines.append(number)

    def sentence(self) -> str:
        """Returns what was skipped and left out for a person; empty if every line was read."""
        numbers = ", ".join(map(str, self.lines)) + (", ..." if self.count > len(self.lines) else "")
        left = "".join(f" Left out {what}: {count:,}." for what, count in self.left_out.items())
        if self.count == 1:
            return f"Skipped 1 damaged line (line {numbers}): it {self.what}.{left}"
        skipped = (
            f"Skipped {self.count:,} damaged lines (lines {numbers}): the first {self.what}." if self.count else ""
        )
        return f"{skipped}{left}".strip()


def objects(
    file: BinaryIO, damage: Damage, progress: Callable[[int], None] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields a file's objects with line numbers, one at a time; `damage` counts other lines."""
    done = 0
    for number, line in _lines(file, damage):
        done += len(line)
        if progress is not None and number % 256 == 0:
            progress(done)
        if len(line) >= MOST_LINE:
            damage.add(number, f"has {MOST_LINE:,} bytes or more", line)
            continue
        if not line.strip():
            continue
        try:
            body = loads(line)
        except ValueError as error:
            kinds = {json.JSONDecodeError: "is not valid JSON", UnicodeDecodeError: "is not UTF-8 text"}
            damage.add(number, kinds.get(type(error), f"cannot be read: {error}"), line)
            continue
        if isinstance(body, dict):
            yield number, body
        else:
            damage.add(number, "is JSON, but not an object", line)


def _lines(file: BinaryIO, damage: Damage) -> Iterator[tuple[int, bytes]]:
    """Yields lines and their numbers, at both ends of a file of too many; of one that is too long the beginning."""
    number, room = 0, MOST_READ // 2
    while number < MOST_LINES // 2 and room > 0 and (line := file.readline(MOST_LINE)):
        number += 1
        room -= _values(line, 0, len(line))
        yield number, line
        while len(line) == MOST_LINE and not line.endswith(b"\n"):  # the rest of a line that is too long
            line = file.readline(MOST_LINE)
    end, place, left = _end(file)
    if left:
        damage.left_out[f"lines in the middle, from line {number + 1:,} on"] = left
    number += left
    while place < len(end):
        number, start, place = number + 1, place, end.find(b"\n", place) + 1 or len(end)
        yield number, end[start:place]


def _end(file: BinaryIO) -> tuple[bytes, int, int]:
    """Returns the end of what is left of a file, where its last lines begin, and how many come before these."""
    blocks, left, first = deque[bytes](), 0, 0
    while block := file.read(_BLOCK):
        blocks.append(block)
        if len(blocks) > _MOST_BLOCKS:
            left, first = left + blocks.popleft().count(b"\n"), 1
    end = b"".join(blocks)
    first = end.find(b"\n") + 1 if first else 0
    place, room = len(end), MOST_READ // 2
    for _ in range(MOST_LINES // 2):
        start = max(first, end.rfind(b"\n", 0, max(0, place - 1)) + 1)
        room -= _values(end, start, place)
        if room < 0 or place <= first:
            break
        place = start
    return end, place, left + end.count(b"\n", 0, place)


def _values(data: bytes, start: int, end: int) -> int:
    """Returns about how many values a part of a text has; an object takes twice as much as others."""
    return sum(data.count(each, start, end) for each in (b",", b"[", b"{", b"{"))
