"""Reading what may be huge, damaged, a pipe, or not there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_BYTES = 16 * 2**20
"""Of one file; of a longer one half from its beginning and half from its end."""
_PIECE = 2**20
_MOST_LINE = 2**16


class UnreadableError(Exception):
    """A file cannot be read; the message says why."""


@dataclass(slots=True)
class Lines:
    """The lines of a text file with their numbers, from its beginning and its end."""

    path: str
    notes: list[str] = field(default_factory=list)
    """What was left out."""

    def __iter__(self) -> Iterator[tuple[int, str]]:
        size = regular_size(self.path)
        try:
            with open(self.path, "rb", buffering=_PIECE) as file:
                if size <= MOST_BYTES:
                    yield from _numbered(file.read(MOST_BYTES), 1)
                    return
                head = file.read(MOST_BYTES // 2)
                head = head[: head.rfind(b"\n") + 1] or head
                yield from _numbered(head, 1)
                file.seek(size - MOST_BYTES // 2)
                tail = file.read(MOST_BYTES // 2)
        except OSError as error:
            raise UnreadableError(error.strerror or str(error)) from None
        left = size - len(head) - len(tail)
        self.notes.append(f"{left:,} bytes in the middle were left out: it has {size:,}")
        # Numbers behind the gap are only larger than those before it.
        yield from _numbered(tail[tail.find(b"\n") + 1 :], head.count(b"\n") + 1 + left // 100)


def regular_size(path: str) -> int:
    """Bytes of a regular file.

    Raises:
      UnreadableError: it is not there, or it is a pipe, a device or a directory: to read these may never end.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        raise UnreadableError(getattr(error, "strerror", None) or str(error)) from None
    if not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
        raise UnreadableError(f"it is {what}; give a regular file")
    return found.st_size


def _numbered(data: bytes, number: int) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        # A progress bar writes its states over each other; the last one stays.
        line = data[start : min(end, start + _MOST_LINE)].rstrip(b"\r")
        yield number, line.rpartition(b"\r")[2].decode("utf-8", "replace")
        start, number = end + 1, number + 1
