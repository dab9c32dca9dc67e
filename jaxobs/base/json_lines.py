"""JSON from outside: event logs and answers, which may be damaged, foreign or made to do harm.

A line that cannot be read costs that line: it is skipped and counted. What is read has bounded depth and numbers that
arithmetic can take, so that what uses it need not ask again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn

MOST_LINE = 16 * 2**20
"""Bytes of a line; a longer one is damaged."""
MOST_DEPTH = 64
MOST_VALUES = 2_000_000
"""Commas and brackets of a text: two bytes of it can become a hundred in memory."""
MOST_NUMBER = 2**64
MOST_DAMAGED = 500_000
"""Lines that are skipped; what follows is not read."""
_MOST_NAMED = 5
_EVERY = 256
_SHOWN = 60

_SUSPECT = re.compile(rb"\d{19}|[eE]\+?\d\d\d")
"""Without it, and with few brackets, no number is out of range and nothing is nested deeply."""


def loads(text: bytes | str) -> Any:
    """Returns the value of JSON text; raises `ValueError` for other text, too deep a value, or too large a number."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if len(data) > MOST_VALUES and sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES:,} values")
    try:
        # By ourselves: `json` takes bytes with NULs for UTF-16.
        value = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if data.count(b"[") + data.count(b"{") > MOST_DEPTH or _SUSPECT.search(data):
        _check(value)
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def _check(value: Any) -> None:
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
            elif (isinstance(item, int) and abs(item) >= MOST_NUMBER) or (
                isinstance(item, float) and not math.isfinite(item)
            ):
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
    end: int = 0
    """Number of the line at which reading stopped, if too many were skipped."""

    def add(self, number: int, what: str, line: bytes = b"") -> None:
        """Counts a line."""
        if not self.count:
            self.what, self.shown = what, line[:_SHOWN].decode("utf-8", "backslashreplace").strip()
        self.count += 1
        if len(self.lines) < _MOST_NAMED:
            self.lines.append(number)

    def sentence(self) -> str:
        """Returns a sentence for a person; empty if every line was read."""
        if not self.count:
            return ""
        numbers = ", ".join(map(str, self.lines)) + (", ..." if self.count > len(self.lines) else "")
        if self.count == 1:
            return f"Skipped 1 damaged line (line {numbers}): it {self.what}."
        rest = f" Nothing from line {self.end:,} on was read." if self.end else ""
        return f"Skipped {self.count:,} damaged lines (lines {numbers}): the first {self.what}.{rest}"


def objects(
    file: BinaryIO, damage: Damage, progress: Callable[[int], None] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields a file's objects with line numbers, one at a time; `damage` counts other lines."""
    done = blank = 0
    for number, line in _lines(file):
        if damage.count >= MOST_DAMAGED:
            damage.end = number
            return
        done += len(line)
        if progress is not None and number % _EVERY == 0:
            progress(done)
        if len(line) >= MOST_LINE:
            damage.add(number, f"has {MOST_LINE:,} bytes or more", line)
            continue
        if not line.strip():
            blank += 1
            if blank > MOST_DAMAGED:
                damage.add(number, "is one of too many blank lines")
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


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Lines and their numbers; of one that is too long the beginning."""
    number = 0
    while line := file.readline(MOST_LINE):
        number += 1
        yield number, line
        while len(line) == MOST_LINE and not line.endswith(b"\n"):  # the rest of a line that is too long
            line = file.readline(MOST_LINE)
