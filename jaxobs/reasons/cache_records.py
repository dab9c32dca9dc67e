"""The sidecar of the persistent cache: of what each key was made, and what became of the compile.

JAX's key is one hash, so that a miss never says what differs. jaxobs appends a line for each lookup to a file next to
the event log, `jaxobs-cache-keys.jsonl`, which all processes and runs that log there share. It holds digests of the
key's parts and a few readable texts, no values of arrays, and of the environment only the flags that JAX hashes
itself. It is a memory, not a ledger: bounded, and a line that cannot be read is skipped.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from jaxobs.base import json_lines, private_files
from jaxobs.facts.compilations import KEY_PARTS

FILE = "jaxobs-cache-keys.jsonl"
MOST_BYTES = 4 * 2**20
"""Size at which the file is compacted to half of it."""
MOST_LINE = 4096
MOST_VALUE = 16_384
MOST_OF_ONE = 8
"""Records of one program of a function, and of one key, that are looked at: the latest."""
MOST_NEIGHBOURS = 32
"""Records of a function's other programs that are looked at, if none is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """A lookup of a program in the persistent cache, by one process."""

    function: str
    key: str
    """JAX's cache key; the entry's file is called so, with `-cache` behind it."""
    time: float
    """Time at which the lookup was over, in seconds since the epoch."""
    process: str
    """A random name of the process: its number may come again, on this machine or on another."""
    pid: int = 0
    process_index: int = 0
    result: str = "miss"
    """`hit` or `miss`."""
    module: str = ""
    """JAX's name of the program: `jit_train_step`."""
    jax: str = ""
    """Version of JAX, which is not part of the key, but makes the program."""
    arguments: str = ""
    """The types that the program takes and returns, shortened."""
    fingerprint: str | None = None
    """Hash of the program without addresses, where JAX's own (`parts["program"]`) is another."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Short digests by name of the part (`KEY_PARTS`), the beginnings of those that JAX logs; absent if not known."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The parts as a person reads them: versions, flags, options; absent for those that are mere hashes."""
    directory: str | None = None
    """Directory in which the entry was looked for."""
    compile_seconds: float | None = None
    """Seconds that the compiler took; None on a hit."""
    load_seconds: float | None = None
    """Seconds that reading and loading the entry took; None on a miss."""
    stored: bool | None = None
    """Whether the entry was in the cache afterwards; None where that is out of sight."""
    uncached_because: str | None = None
    uncached_detail: str | None = None


def read(directory: str | os.PathLike[str]) -> list[KeyRecord]:
    """Returns a sidecar's records, oldest first; none if there is no file. Raises `OSError` if it can't be read."""
    try:
        with open(os.path.join(directory, FILE), "rb") as file:
            bodies = [_object(line) for line in _lines(_end(file))]
    except FileNotFoundError:
        return []
    values = {(str(body.get("part")), str(body["digest"])): body.get("value") for body in bodies if "digest" in body}
    return [record for body in bodies if (record := _decode(body, values)) is not None]


# ------------------------------------------------------------------------------------------------ as lines

_HEAD = re.compile(rb'\{"function":"((?:[^"\\]|\\.)*)","key":"([^"\\]*)","program":"([^"\\]*)"')
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode(record: KeyRecord) -> bytes:
    """Returns a record as a line: what it is found by comes first, so that a reader need not parse the others."""
    head = {"function": record.function, "key": record.key, "program": record.parts.get("program", "")}
    body = {name: getattr(record, name) for name in _FIELDS}
    body["parts"] = {part: digest for part, digest in record.parts.items() if part != "program"}
    return _encode({**head, **{name: value for name, value in body.items() if value not in (None, "", {})}}).encode()


_FIELDS = [each.name for each in dataclasses.fields(KeyRecord) if each.name not in ("function", "key", "values")]

_NUMBERS = ("time", "compile_seconds", "load_seconds")
_WHOLE = ("pid", "process_index")
_TYPES: Mapping[str, Any] = {
    name: int | float if name in _NUMBERS else int if name in _WHOLE else bool if name == "stored"
    else Mapping if name == "parts" else str
    for name in _FIELDS
}  # fmt: skip


def encode_value(part: str, digest: str, value: Any) -> bytes:
    """Returns the value behind a part's digest as a line: it is written once, not with each record."""
    return _encode({"part": part, "digest": digest, "value": value}).encode()


def _end(file: BinaryIO, first: int = 0) -> bytes:
    """Returns what a file has from a byte on; if that is more than a sidecar ever has, the end of it."""
    file.seek(max(first, file.seek(0, os.SEEK_END) - 2 * MOST_BYTES))
    return file.read(2 * MOST_BYTES)


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.splitlines() if line[:1] == b"{"]


def _object(line: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        body = json_lines.loads(line)
        if isinstance(body, dict):
            return body
    return {}


def _decode(body: Mapping[str, Any], values: Mapping[tuple[str, str], Any]) -> KeyRecord | None:
    """Returns the record that an object holds, with what its digests stand for; None where it holds none."""
    try:
        parts = {part: str(digest) for part, digest in body.get("parts", {}).items() if part in KEY_PARTS}
        if body.get("program"):
            parts["program"] = str(body["program"])
        readable = {part: values[part, digest] for part, digest in parts.items() if (part, digest) in values}
        known = {name: body[name] for name in _FIELDS if name in body}
        if not all(isinstance(value, _TYPES[name]) for name, value in known.items()):
            return None
        known |= {"parts": parts, "values": readable, "time": float(body["time"])}
        return KeyRecord(**known, function=str(body["function"]), key=str(body["key"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


# ---------------------------------------------------------------------------------------------- the sidecar


class Sidecar:
    """The file of one directory: read as it grows, appended to, and kept within its bound. Not safe for threads."""

    def __init__(self, directory: str, *, most_bytes: int = MOST_BYTES) -> None:
        self.path = os.path.join(directory, FILE)
        self.process = secrets.token_hex(4)
        """The name of this process in its records."""
        self._most_bytes = most_bytes
        self._forget()

    def _forget(self) -> None:
        self._file: tuple[int, int] | None = None
        self._position = 0
        self._values: dict[tuple[str, str], Any] = {}
        self._programs: dict[bytes, dict[bytes, list[bytes]]] = {}
        """Lines of other processes by function and program."""
        self._keys: dict[bytes, list[bytes]] = {}

    def after_fork(self) -> None:
        """The child is another process."""
        self.process = secrets.token_hex(4)
        self._forget()

    # ------------------------------------------------------------------------------------------ reading

    def refresh(self) -> None:
        """Reads what this or another process appended since the last time; raises `OSError` if it cannot be read."""
        try:
            file = open(self.path, "rb")  # noqa: SIM115 - closed below
        except FileNotFoundError:
            self._forget()
            return
        with file:
            status = os.fstat(file.fileno())
            if self._file != (status.st_dev, status.st_ino) or status.st_size < self._position:
                self._forget()
                self._file = (status.st_dev, status.st_ino)
            if status.st_size > self._position:
                data = _end(file, self._position)
                self._position = file.tell() - len(data)
                self._take(data)

    def _take(self, data: bytes) -> None:
        whole = data.rfind(b"\n") + 1  # what follows is a line that somebody is writing
        self._position += whole
        mine = f'"process":"{self.process}"'.encode()
        for line in _lines(data[:whole]):
            head = _HEAD.match(line)
            if head is None:
                body = _object(line)
                if "digest" in body:
                    self._values[str(body.get("part")), str(body["digest"])] = body.get("value")
                continue
            function, key, program = head.groups()
            _keep(self._keys.setdefault(key, []), line)
            if mine not in line:
                programs = self._programs.setdefault(function, {})
                programs[program] = _keep(programs.pop(program, []), line)

    def of_key(self, key: str) -> Iterator[KeyRecord]:
        """Returns the latest records of a key by any process, this one too, the newest first."""
        return self._decoded(reversed(self._keys.get(key.encode(), ())))

    def neighbours(self, function: str, program: str | None) -> Iterator[KeyRecord]:
        """Records of a function by other processes: those of the same program; if there are none, of the latest."""
        programs = self._programs.get(_encode(function)[1:-1].encode(), {})
        same = programs.get(program.encode()) if program else None
        return self._decoded(same or _spread(list(programs.values())[::-1], MOST_NEIGHBOURS))

    def _decoded(self, lines: Iterable[bytes]) -> Iterator[KeyRecord]:
        for line in lines:
            record = _decode(_object(line), self._values)
            if record is not None:
                yield record

    # ------------------------------------------------------------------------------------------ writing

    def add(self, record: KeyRecord) -> None:
        """Appends a record, with its digests' meanings, in one write; raises `OSError` if not all is written."""
        lines = []
        for part, value in record.values.items():
            digest = record.parts.get(part)
            if digest is not None and (part, digest) not in self._values:
                self._values[part, digest] = value
                line = encode_value(part, digest, value)
                if len(line) <= MOST_VALUE:
                    lines.append(line)
        line = encode(record)
        if len(line) <= MOST_LINE:
            lines.append(line)
        if lines:
            self._append(b"\n".join(lines) + b"\n")

    def _append(self, data: bytes) -> None:
        file = private_files.open_file(self.path, os.O_RDWR | os.O_APPEND)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                data = b"\n" + data
            written = os.write(file, data)
        finally:
            os.close(file)
        if written != len(data):
            raise OSError(f"Only {written} of {len(data)} bytes could be written to {self.path}.")
        if size + written > self._most_bytes:
            self._compact()

    def _compact(self) -> None:
        """Keeps the latest records, one for each program of a process, up to half of the bound; replaces the file."""
        with open(self.path, "rb") as file:
            lines = _lines(_end(file))
        private_files.write_whole(self.path, (line + b"\n" for line in _latest(lines, self._most_bytes // 2)))


def _spread(groups: list[list[bytes]], most: int) -> list[bytes]:
    """Returns the latest line of each group, then the one before of each, and so on."""
    rows = itertools.zip_longest(*(reversed(group) for group in groups))
    return list(itertools.islice((line for row in rows for line in row if line is not None), most))


def _keep(lines: list[bytes], line: bytes) -> list[bytes]:
    lines.append(line)
    del lines[:-MOST_OF_ONE]
    return lines


def _latest(lines: list[bytes], most_bytes: int) -> list[bytes]:
    """Returns the newest line of each program, directory and process index, with the values that they refer to."""
    kept: list[bytes] = []
    values: dict[tuple[str, str], bytes] = {}
    bodies = [(_object(line), line) for line in lines]
    for body, line in bodies:
        if "digest" in body:
            values[str(body.get("part")), str(body["digest"])] = line
    seen: set[tuple[Any, ...]] = set()
    needed: dict[tuple[str, str], bytes] = {}
    size = 0
    for body, line in reversed(bodies):
        record = _decode(body, {})
        if record is None:
            continue
        identity = (record.function, record.key, record.directory, record.process_index)
        own = {name: values[name] for name in record.parts.items() if name in values and name not in needed}
        more = len(line) + 1 + sum(len(each) + 1 for each in own.values())
        if identity in seen or size + more > most_bytes:
            continue
        seen.add(identity)
        needed.update(own)
        kept.append(line)
        size += more
    return [*needed.values(), *reversed(kept)]
