"""The worst files, answers and bodies of a size for each reader: each in a process of its own, which is measured.

A reader may read, leave out or refuse, within bounds of memory and time, and says so in a sentence.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from tools.fuzzing import attacked, opening
from tools.fuzzing.answers import Server
from tools.fuzzing.attacked import Reader
from tools.fuzzing.originals import Originals
from tools.ports import free_port
from tools.trust import page

ROOT = Path(__file__).resolve().parents[2]
SIZE = 100 * 2**20
MOST_MEMORY = 500 * 2**20
"""Bytes beyond what the command takes for a valid file of a few lines."""
MOST_SECONDS = 10.0
"""Seconds of a processor: what else the machine does is not in them."""
_LIMIT = 6 * 2**30
"""Bytes of address space: the machine's other programs go on."""
_GIVEN_UP = 20
"""Seconds of a processor."""
_WAITED = 120.0
"""Seconds by the clock, after which it counts as hanging."""
PART = "readers"
"""Part of docs/trust.md with a row for each reader."""
HEAD = ["| reader | attacked | read by | shapes | memory | processor time | |", "|---|---|---|---:|---:|---:|---|"]


@dataclass(frozen=True)
class Measured:
    """A command that was given one file, and what it took."""

    seconds: float
    memory: int
    """Bytes at its peak."""
    code: int
    said: str

    def problem(self, baseline: int, codes: Sequence[int] = (0, 1, 2)) -> str:
        """Returns the bound that was broken, and by how much; empty if none was."""
        if "Traceback" in self.said or self.code not in codes:
            return f"exit code {self.code}: {self.said[-300:]}"
        if self.memory - baseline > MOST_MEMORY:
            return f"{(self.memory - baseline) / 2**20:,.0f} MiB"
        return f"{self.seconds:.1f} s" if self.seconds > MOST_SECONDS else ""


def measured(reader: Reader, folder: Path, notes: Path | None = None) -> Measured:
    """Runs a reader's command, and says what it took; its modules that read go into `notes`."""
    path, port = folder / reader.file, free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAXOBS_")}
    given = {"JAX_PLATFORMS": "cpu", "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(ROOT)}
    if notes is not None:
        given["PYTHONPATH"] = f"{ROOT / 'tools' / 'fuzzing' / 'opened'}:{ROOT}"
        given |= {"FUZZ_FOLDER": str(folder), "FUZZ_NOTES": str(notes), "FUZZ_CALLS": opening.as_json()}
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Server(reader.answers, reader.asked, path)) if reader.asked else None
        url = "" if server is None else f"http://127.0.0.1:{server.server_port}"
        values = {"{file}": str(path), "{folder}": str(folder), "{url}": url, "{port}": str(port)}
        command = [_filled(each, values) for each in reader.command]
        given |= {name: _filled(value, values) for name, value in reader.environment.items()}
        stdin = stack.enter_context(open(_filled(reader.stdin, values) or os.devnull, "rb"))
        output = stack.enter_context(tempfile.TemporaryFile())
        process = subprocess.Popen(
            [sys.executable, *command], env=kept | given, cwd=folder, stdin=stdin, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        _limit(process.pid)
        timer = threading.Timer(_WAITED, _kill, (process.pid,))
        timer.start()
        if reader.posted:
            _post(reader, process.pid, path, port, server)
            os.kill(process.pid, signal.SIGTERM)
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(max(0, output.seek(0, os.SEEK_END) - 2**16))
        said = output.read().decode(errors="replace")
        return Measured(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, process.returncode, said)


def _limit(process: int) -> None:
    """Limits a process that has just begun: code that runs between fork and exec may hang where there are threads."""
    resource.prlimit(process, resource.RLIMIT_AS, (_LIMIT, _LIMIT))
    resource.prlimit(process, resource.RLIMIT_CPU, (_GIVEN_UP, _GIVEN_UP))


def _kill(session: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def _post(reader: Reader, process: int, path: Path, port: int, server: Server | None) -> None:
    """Sends what is attacked to the command's server, and waits until it has answered or hung up."""
    until = time.monotonic() + _WAITED
    while time.monotonic() < until:
        if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            break
        time.sleep(0.05)
    with path.open("rb") as file:
        body = file if reader.body is None else reader.body or None
        size = {} if body is None else {"Content-Length": str(len(reader.body or b"") or path.stat().st_size)}
        kind = {"Content-Type": "application/json", "Authorization": f"Bearer {attacked.TOKEN}"}
        kind["Accept"] = "application/json, text/event-stream"
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/{reader.posted}", body, kind | size)
        with contextlib.suppress(OSError, HTTPException), urllib.request.urlopen(asked, timeout=_WAITED) as answer:
            answer.read()
    if server is not None:
        server.was_asked.wait(_WAITED / 4)
        time.sleep(0.5)


def problems(
    originals: Originals, size: int = SIZE, only: Sequence[str] = (), into: Path | None = None
) -> Iterator[str]:
    """Gives each reader each of its files, and yields a line for each that it does not read or refuse within bounds.

    A reader's row of the table goes into the page when it is known.
    """
    folder = originals.folder / "worst"
    folder.mkdir(exist_ok=True)
    for reader in attacked.every(folder, originals):
        if only and reader.name not in only:
            continue
        row = Row(reader)
        yield from row.measure(folder, size)
        if into is not None:
            page.put_row(into, PART, reader.name, row.text())


class Row:
    """A reader's row of the table."""

    def __init__(self, reader: Reader, only: Sequence[str] = ()) -> None:
        """Measures all shapes, or `only` those."""
        self.reader = reader
        self.shapes = {name: shape for name, shape in reader.shapes.items() if not only or name in only}
        self.modules: list[str] = []
        self.memory, self.seconds = 0, 0.0
        self.broken: list[str] = []

    def measure(self, folder: Path, size: int) -> Iterator[str]:
        """Gives the reader a valid file, then its shapes, and yields what broke a bound."""
        path, notes = folder / self.reader.file, folder / "notes"
        (folder / "tmp").mkdir(exist_ok=True)
        before = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.reader.valid)
        notes.unlink(missing_ok=True)
        valid = measured(self.reader, folder, notes)
        noted = [str(Path(each).relative_to(ROOT)) for each in notes.read_text().splitlines()] if notes.exists() else []
        self.modules = sorted({*noted, *filter(None, [self.reader.module])})
        if problem := valid.problem(valid.memory, self.reader.codes):
            yield self._break("valid", problem)
        for shape, pieces in self.shapes.items():
            path.unlink(missing_ok=True)
            with path.open("wb") as target:
                target.writelines(pieces(size))
            found = measured(self.reader, folder)
            self.memory = max(self.memory, found.memory - valid.memory)
            self.seconds = max(self.seconds, found.seconds)
            if problem := found.problem(valid.memory, self.reader.codes):
                yield self._break(shape, problem)
            for left in (folder / "tmp").iterdir():
                shutil.rmtree(left, ignore_errors=True)
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_bytes(before)

    def _break(self, shape: str, problem: str) -> str:
        self.broken.append(f"{shape}: {problem[:80]}")
        return f"{self.reader.name}, {shape}: {problem}"

    def text(self) -> str:
        """Returns it as Markdown."""
        reader, modules = self.reader, ", ".join(f"`{each.removeprefix('jaxobs/')}`" for each in self.modules)
        told = "; ".join(self.broken).replace("|", "/").replace("\n", " ")
        state = f"**not held**: {told}" if self.broken else "held"
        return (
            f"| {reader.name} | {reader.what} | {modules} | {len(self.shapes)} | {self.memory / 2**20:+,.0f} MiB "
            f"| {self.seconds:.1f} s | {state} |"
        )
