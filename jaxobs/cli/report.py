"""`jaxobs report`: an event log as one HTML file to look at, to send, or to keep with the run."""

import argparse
import json
import os
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from jaxobs.base import private_files
from jaxobs.base.errors import JaxobsError
from jaxobs.base.files import rotated
from jaxobs.facts.events import plain
from jaxobs.views import report

HELP = "make one self-contained HTML file of an event log: compilations, findings, memory over time"

FINE = 0
STDOUT = "-"

_QUIET_SECONDS = 1.0
_TOLD_SECONDS = 5.0


class ReportError(JaxobsError, OSError):
    """The report cannot be written."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "log", metavar="EVENTLOG", help="a file that --event-log wrote; the run may still be in progress"
    )
    parser.add_argument(
        "--out", metavar="FILE",
        help="file to write, or `-` for standard output (default: next to the log, with the ending .html)",
    )  # fmt: skip
    parser.add_argument(
        "--process", type=int, metavar="N", help="only the process with this JAX process index, or with this pid"
    )
    parser.add_argument(
        "--json", action="store_true",
        help="print one JSON object: the path of the report, and each process with its verdict",
    )  # fmt: skip
    parser.add_argument("--open", action="store_true", help="open the report in the web browser")


def run(args: argparse.Namespace) -> int:
    """Writes the report.

    Raises:
      JaxobsError: the log cannot be read, has no such process, or the report cannot be written.
    """
    if args.json and args.out == STDOUT:
        raise ReportError(
            "`--json` and `--out -` would both write to the standard output. Name a file with --out FILE."
        )
    progress = Progress(args.log)
    made = report.read(args.log, args.process, progress)
    progress.end()
    if args.out == STDOUT:
        report.write(made, sys.stdout.buffer)
        for note in made.notes:
            print(f"jaxobs: {note}", file=sys.stderr)
        return FINE
    out = Path(args.out) if args.out else default_path(args.log)
    size = _write(out, args.log, lambda file: report.write(made, file))
    if args.json:
        print(json.dumps(as_json(made, out, size), indent=2, allow_nan=False))
    else:
        print(out)
        print(_summary(made, size))
        for note in made.notes:
            print(note)
    if args.open:
        webbrowser.open(out.absolute().as_uri())
    return FINE


def default_path(log: str) -> Path:
    """Returns a path next to the log: `events.html` for `events.jsonl`."""
    path = Path(log)
    return path.with_suffix(".html") if path.suffix != ".html" else Path(f"{log}.html")


def _write(out: Path, log: str, write: Callable[[BinaryIO], int]) -> int:
    """Writes the file whole or not at all, and returns its bytes."""
    if out.exists() and os.path.exists(log) and os.path.samefile(out, log):
        raise ReportError(f"`--out {out}` is the event log itself. Name another file.")
    if out.exists() and not out.is_file():
        if out.is_dir():
            raise ReportError(f"`--out {out}` is a directory. Name a file in it: --out {out / 'report.html'}")
        with out.open("wb") as stream:
            return write(stream)
    try:
        handle, made = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
        try:
            with open(handle, "wb") as file:
                size = write(file)
                private_files.replace_mode(file.fileno(), out)
            os.replace(made, out)
        except BaseException:
            os.unlink(made)
            raise
    except OSError as error:
        raise ReportError(
            f"The report cannot be written to `{out}`: {error.strerror or error}. Give another place with --out FILE, "
            f"or `--out -` for the standard output."
        ) from None
    return size


def as_json(made: report.Report, out: Path, size: int) -> dict[str, Any]:
    """Returns the place of the report, and what the event log says of each process."""
    processes = []
    for recording in made.recordings:
        verdict = recording.snapshot().verdict
        processes.append({
            "process_index": recording.process_index,
            "pid": recording.pid,
            "compilations": recording.compiled,
            "seconds": recording.seconds,
            "findings": recording.findings,
            "verdict": None if verdict is None else verdict.verdict,
            "headline": None if verdict is None else verdict.headline,
        })  # fmt: skip
    body: dict[str, Any] = plain({"report": str(out), "bytes": size, "processes": processes, "notes": made.notes})
    return body


def _summary(made: report.Report, size: int) -> str:
    recordings = made.recordings
    compiled = sum(each.compiled for each in recordings)
    seconds = sum(each.seconds for each in recordings)
    findings = sum(each.findings for each in recordings)
    parts = [
        _plural(len(recordings), "process", "processes"),
        f"{_plural(compiled, 'compilation')} in {seconds:.1f} s",
        _plural(findings, "finding"),
        f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB",
    ]
    return ", ".join(parts)


def _plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


class Progress:
    """Shows on the standard error how far a long reading is: on a terminal on one line, else a line now and then."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._begun = time.monotonic()
        self._told = 0.0
        self._same_line = sys.stderr.isatty()

    def __call__(self, done: int) -> None:
        """Takes the bytes read so far."""
        now = time.monotonic()
        every = 0.2 if self._same_line else _TOLD_SECONDS
        if now - self._begun < _QUIET_SECONDS or now - self._told < every:
            return
        self._told = now
        try:
            whole = rotated.total_size(self._log)
        except OSError:
            whole = 0
        part = f"{min(1.0, done / whole):.0%} of {whole / 2**20:.0f} MiB" if whole else f"{done / 2**20:.0f} MiB"
        print(
            f"jaxobs: reading {self._log}: {part}", end="\r" if self._same_line else "\n", file=sys.stderr, flush=True
        )

    def end(self) -> None:
        """Wipes the line."""
        if self._told and self._same_line:
            print("\x1b[2K", end="\r", file=sys.stderr, flush=True)
