"""The worst files of a size for each reader: given to the command as a user gives them, in a process that is measured.

Each shape makes one thing as bad as it can be: one line without end, millions of lines, brackets, numbers, streams of
gzip. A reader may read, leave out or refuse, within bounds of memory and time, and says so in a sentence.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.fuzzing.originals import Originals

SIZE = 100 * 2**20
MOST_MEMORY = 500 * 2**20
"""Bytes beyond what the command takes for a file of a few lines."""
MOST_SECONDS = 10.0
_LIMIT = 6 * 2**30
"""Bytes of address space: the machine's other programs go on."""
_GIVEN_UP = 20
"""Seconds of a processor."""

Shape = Callable[[int], Iterator[bytes]]
"""Pieces of a file of about so many bytes."""


@dataclass(frozen=True)
class Measured:
    """A command that was given one file, and what it took."""

    reader: str
    shape: str
    seconds: float
    memory: int
    """Bytes at its peak."""
    code: int
    said: str

    def problem(self, baseline: int) -> str:
        """Returns the bound that was broken, and by how much; empty if none was."""
        if "Traceback" in self.said or self.code not in (0, 1, 2):
            return f"exit code {self.code}: {self.said[-300:]}"
        if self.memory - baseline > MOST_MEMORY:
            return f"{(self.memory - baseline) / 2**20:,.0f} MiB"
        return f"{self.seconds:.1f} s" if self.seconds > MOST_SECONDS else ""


def _repeated(piece: bytes, start: bytes = b"", end: bytes = b"") -> Shape:
    def shape(size: int) -> Iterator[bytes]:
        many = piece * (2**20 // len(piece) or 1)
        yield start
        for _ in range(max(1, size // len(many))):
            yield many
        yield end

    return shape


def _lines(line: bytes, most: int) -> Shape:
    """Lines of nearly `most` bytes, each with as many of the piece as fit between `[`."""

    def shape(size: int) -> Iterator[bytes]:
        start = b'{"time": "2026-01-31T09:00:00Z", "event": "step", "x": ['
        whole = start + line * ((most - 100) // len(line)) + b"1]}\n"
        yield from itertools.repeat(whole, max(1, size // len(whole)))

    return shape


def _numbered(line: bytes) -> Shape:
    """A line again and again, each with numbers of its own in the place of `@`."""

    def shape(size: int) -> Iterator[bytes]:
        for number in range(size // (len(line) + 6)):
            yield line.replace(b"@", b"%d" % number)

    return shape


def _packed(shape: Shape, unpacked: int) -> Shape:
    def packed(_size: int) -> Iterator[bytes]:
        yield gzip.compress(b"".join(shape(2**20)), 6) * (unpacked // 2**20)

    return packed


ANY: dict[str, Shape] = {
    "one line": _repeated(b"a"),
    "blank lines": _repeated(b"\n"),
    "short lines": _repeated(b"a\n"),
    "NULs": _repeated(b"\0"),
    "no UTF-8": _repeated(b"\xff\xfe\xfd"),
    "letters of four bytes": _repeated("\U0001f600".encode()),
    "brackets": _repeated(b"["),
    "empty lists": _repeated(b"[],", b"[", b"[]]"),
    "empty objects": _repeated(b'{"a":{}},', b'{"event": [', b"{}]}"),
    "numbers": _repeated(b"1e9,", b"[", b"1]"),
    "a long number": _repeated(b"9", b'{"a": ', b"}"),
    "escapes": _repeated(rb"\ud800", b'{"a": "', b'"}'),
    "objects": _repeated(b"{}\n"),
    "bars": _repeated(b" 50%|##| 50/100 [00:10<00:10]\r"),
    "streams of gzip": _repeated(gzip.compress(b"")),
    "gzip of one line": _packed(_repeated(b"a"), 2**33),
    "gzip of short lines": _packed(_repeated(b"step 1 loss 2\n"), 2**31),
    "half a stream of gzip": lambda size: iter([gzip.compress(b"step 1 loss 2\n" * (size // 14), 1)[:-100]]),
}  # fmt: skip
"""Shapes for every reader of files."""

EVENTS: dict[str, Shape] = {
    "long lines of lists": _lines(b"[],", 16 * 2**20),
    "long lines of texts": _lines(b'"ab",', 16 * 2**20),
    "long lines of objects": _lines(b'{"a":1},', 16 * 2**20),
    "processes": _numbered(b'{"time": "2026-01-31T09:00:00Z", "event": "step", "process_index": @, "pid": @}\n'),
    "manifests": _numbered(b'{"time": "2026-01-31T09:00:00Z", "event": "manifest", "process_index": @, "pid": @}\n'),
}
LOGS: dict[str, Shape] = {
    "errors": _numbered(b"2026-01-31 09:00:00 ERROR OSError: [Errno 28] No space left on device: '/ckpt/@'\n"),
    "ranks": _numbered(b"[rank@]: 2026-01-31T09:00:01.5Z WARNING train: step @ | loss nan\n"),
    "tracebacks": _numbered(b'Traceback (most recent call last):\n  File "/app/@.py", line 1, in f\nValueError: @\n'),
    "times": _numbered(b"9999-12-31 23:59:59 ERROR @\n0001-01-01 00:00:00 ERROR @\n"),
    "objects of collectors": _numbered(b'{"timestamp": "2026-01-31T09:00:04Z", "message": "step @", "rank": @}\n'),
    "words": _repeated(b"error failed killed Traceback RESOURCE_EXHAUSTED: "),
    "words of 60 KB": lambda size: itertools.repeat(b"RESOURCE_EXHAUSTED: " * 3000 + b"\n", size // 60_000),
}
METRICS: dict[str, Shape] = {
    "samples": _numbered(b'jax_steps_total{loop="@"} @\n'),
    "labels": _repeated(b'a="b",', b"jax_steps_total{", b"} 1\n"),
    "lines of labels": lambda size: itertools.repeat(b"jax_steps_total{" + b'a="b",' * 9000 + b"} 1\n", size // 54_000),
    "other samples": _numbered(b"other_total @\n"),
    "escapes in labels": lambda size: itertools.repeat(b'jax_a{a="' + b"\\" * 60_001 + b"\n", size // 60_000),
}
TRACES: dict[str, Shape] = {
    "planes": _repeated(b"\x0a\x00"),
    "lines of a plane": _repeated(b"\x1a\x00" * 60, b"", b""),
    "groups": _repeated(b"\x0b"),
    "events of JSON": _repeated(b'{"ph":"X","ts":1,"name":"a"},', b'{"traceEvents":[', b"{}]}"),
}


def events_of(originals: Originals) -> dict[str, Shape]:
    """Each kind of event of a real run, as if a run had nothing else."""
    found: dict[str, Shape] = {}
    for line in originals.files["events.jsonl"].splitlines():
        body = json.loads(line)
        for name in ("sequence", "function", "process_index", "name", "fingerprint", "key"):
            if isinstance(body.get(name), str):
                body[name] += "@"
        body["sequence"] = "\x01"
        text = json.dumps(body).replace('"\\u0001"', "@").encode() + b"\n"
        found.setdefault(f"events: {body['event']}", _numbered(text))
    return found


def readers(folder: Path, originals: Originals) -> Iterator[tuple[str, str, list[str], dict[str, Shape]]]:
    """The name of each reader, that of its file, the command, and the shapes of its files."""
    events = ANY | EVENTS | events_of(originals)
    plain = str(folder / "plain.jsonl")
    Path(plain).write_bytes(originals.files["events.jsonl"])
    for words in (["explain"], ["report", "--out", str(folder / "report.html")], ["compare", plain],
                  ["cache", "warm", "--dry-run"], ["profile"], ["diagnose", "--event-log"]):  # fmt: skip
        yield " ".join(word for word in words if "/" not in word), "events.jsonl", words, events
    yield "cache inspect", "log.jsonl", ["cache", "inspect", str(originals.entries[0].parent), "--event-log"], events
    yield "diagnose --log", "worker.log", ["diagnose", "--log"], ANY | LOGS
    yield "diagnose --metrics-file", "m.prom", ["diagnose", "--metrics-file"], ANY | METRICS
    yield "diagnose --bundle", "b.tar.gz", ["diagnose", "--bundle"], ANY
    yield "profile trace", "t.xplane.pb", ["profile"], ANY | TRACES
    yield "doctor --baseline", "doctor.json", ["doctor", "--baseline"], ANY
    yield "generate --site", "site.toml", ["generate", "alerts", "--out", str(folder / "out"), "--site"], ANY
    yield "generate --site yaml", "site.yaml", ["generate", "alerts", "--out", str(folder / "out"), "--site"], ANY
    yield "generate --slos", "slos.yaml", ["generate", "alerts", "--out", str(folder / "out"), "--slos"], ANY
    yield "mcp --actions", "policy.toml", ["mcp", "--reports", str(folder), "--actions"], ANY


def measured(reader: str, shape: str, words: Sequence[str]) -> Measured:
    """Runs the command line of jaxobs, and says what it took."""
    started = time.perf_counter()
    limits = f'ulimit -v {_LIMIT // 1024} -t {_GIVEN_UP}; exec "$@"'
    process = subprocess.Popen(
        ["bash", "-c", limits, "bash", sys.executable, "-m", "jaxobs", *words],
        env={**os.environ, "JAX_PLATFORMS": "cpu"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout as output:
        said = output.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Measured(
        reader, shape, time.perf_counter() - started, used.ru_maxrss * 1024, process.returncode,
        said.decode(errors="replace"),
    )  # fmt: skip


def problems(originals: Originals, size: int = SIZE, only: Sequence[str] = ()) -> Iterator[str]:
    """Gives each reader each of its files, and yields a line for each that it does not read or refuse within bounds."""
    folder = originals.folder / "worst"
    folder.mkdir(exist_ok=True)
    for name, file, words, shapes in readers(folder, originals):
        if only and name not in only:
            continue
        path = folder / file
        path.write_bytes(originals.files["events.jsonl"] if path.suffix == ".jsonl" else b"{}\n")
        baseline = measured(name, "", [*words, str(path)]).memory
        for shape, pieces in shapes.items():
            with path.open("wb") as target:
                target.writelines(pieces(size))
            if problem := measured(name, shape, [*words, str(path)]).problem(baseline):
                yield f"{name}, {shape}: {problem}"
        path.unlink()
