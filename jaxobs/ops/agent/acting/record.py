"""The record of everything that was done or refused: JSON lines that are only appended to, and the desk's only memory.

Limits, cool-downs, approvals and the breaker are worked out from these lines, so that a restart forgets nothing and
there are no two accounts that could differ.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxobs.base import json_lines, private_files
from jaxobs.facts.events import timestamp

NAME = "actions.jsonl"
MOST_BYTES = 64 * 2**20
"""A longer record means that something is wrong: nothing is done any more until a person has moved it away."""
MOST_TEXT = 500
READ_BYTES = 4 * 2**20
"""What is read back: days of ordinary work, and more than any limit looks back."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SECRET = re.compile(r"(?i)\b(bearer|token|password|secret|api[-_]?key)(\s*[=:]\s*|\s+)\S+")


class Audit:
    """The file in a directory of the agent's."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME

    def add(self, now: float, line: Mapping[str, Any]) -> dict[str, Any]:
        """Appends a line and returns it as it was written; it is on the disk when this returns.

        Raises:
          OSError: it could not be written, or the record is too long; nothing may be done then.
        """
        told = {"time": timestamp(now), "at": now, **{name: plain(each) for name, each in line.items()}}
        data = (json.dumps(told, ensure_ascii=False) + "\n").encode(errors="replace")
        private_files.make_folders(self.path.parent)
        file = private_files.open_file(self.path, os.O_RDWR | os.O_APPEND)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                data = b"\n" + data  # A line broke off when its writer was killed: it costs no other one.
            if size + len(data) > MOST_BYTES:
                raise OSError(f"{self.path} is larger than {MOST_BYTES:,} bytes")
            if os.write(file, data) != len(data):
                raise OSError(f"{self.path} could not be written whole")
            os.fsync(file)
        finally:
            os.close(file)
        return told

    def lines(self) -> list[dict[str, Any]]:
        """The latest lines, the oldest first; what is damaged is left out.

        Raises:
          OSError: the file is there and cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - READ_BYTES))
                data = file.read(READ_BYTES)
        except FileNotFoundError:
            return []
        found = []
        for text in data.splitlines():
            try:
                line = json_lines.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict) and isinstance(line.get("at"), int | float) and line.get("decision"):
                found.append(line)
        return found


def plain(value: Any) -> Any:
    """A value for the record: bounded texts without control characters and without what looks like a secret."""
    if isinstance(value, str):
        return _SECRET.sub(r"\1\2***", _CONTROL.sub(" ", value))[:MOST_TEXT]
    if isinstance(value, Mapping):
        return {plain(str(name)): plain(each) for name, each in list(value.items())[:50]}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value[:50]]
    return value if value is None or isinstance(value, bool | int | float) else plain(str(value))
