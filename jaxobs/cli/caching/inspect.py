"""`jaxobs cache inspect`: what a cache directory holds, and what is wrong with it."""

import argparse
import dataclasses
import json
import os
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jaxobs.base.json_lines import Damage
from jaxobs.compile_cache import checkup, directory
from jaxobs.compile_cache.complaints import Complaint, Setting
from jaxobs.compile_cache.directory import Contents, Entry, Leftover
from jaxobs.facts.events import timestamp
from jaxobs.views.terminal.text import ago, duration, middle, safe, size

HELP = "show what a cache directory contains, and what is wrong with it"

MOST_FUNCTIONS = 20
MOST_REMOVED = 10
NAME_WIDTH = 44

_EPILOG = """\
The command reads entries in full and never loads them. It deletes nothing, but prints the commands that do.
Exit codes: 0 fine, 1 problems, 2 usage."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("directory", metavar="DIR", help="the directory that jax_compilation_cache_dir is set to")
    parser.add_argument(
        "--event-log", type=Path, metavar="PATH",
        help="event log of a job that used the cache, or its directory: shows the versions of the writers",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="list all functions and all broken files")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with each entry")


def run(args: argparse.Namespace) -> int:
    """Runs the command; 1 when there are problems.

    Raises:
      JaxobsError: the directory is not there or is a bucket, or the event log cannot be read.
    """
    path = directory.local(args.directory)
    damage = Damage()
    known = directory.writers(args.event_log, damage) if args.event_log else {}
    if note := damage.sentence():
        print(f"jaxobs: {args.event_log}: {note}", file=sys.stderr)
    fault = checkup.unusable(path)
    if fault is not None:
        contents, complaints = Contents(path=path), [fault]
    else:
        contents = directory.scan(path, _Progress())
        setting = Setting(given=args.directory, writers=known, now=time.time(), environment=os.environ)
        complaints = checkup.examine(contents, setting)
    print(_as_json(contents, complaints, known) if args.json else _as_text(contents, complaints, known, args.all))
    return 1 if any(complaint.severity == "warning" for complaint in complaints) else 0


class _Progress:
    """Tells on the terminal how far the reading is, once it takes long."""

    def __init__(self) -> None:
        self._next = time.monotonic() + 1.0

    def __call__(self, done: int, of: int) -> None:
        if not sys.stderr.isatty():
            return
        now = time.monotonic()
        shown = now >= self._next
        if shown and done < of:
            self._next = now + 0.2
            print(f"\rreading: {done:,} of {of:,} entries", end="", file=sys.stderr, flush=True)
        elif done == of:
            print("\r" + " " * 50 + "\r", end="", file=sys.stderr, flush=True)


# --------------------------------------------------------------------------------------------------- as text


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    """All entries of one function."""

    function: str
    entries: int
    bytes: int
    compile_seconds: int
    last: float
    writers: tuple[str, ...]


def _rows(entries: Iterable[Entry], known: dict[str, str]) -> list[_Row]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.function, []).append(entry)
    rows = [
        _Row(
            function=function, entries=len(group), bytes=sum(entry.bytes for entry in group),
            compile_seconds=sum(entry.reading.compile_seconds or 0 for entry in group),
            last=max(entry.accessed or entry.written for entry in group),
            writers=tuple(sorted({known.get(entry.key, "unknown") for entry in group})),
        )
        for function, group in groups.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row.bytes, row.function))


def _as_text(contents: Contents, complaints: Sequence[Complaint], known: dict[str, str], everything: bool) -> str:
    now = time.time()
    lines = [*_totals(contents, known, now)]
    rows = _rows(contents.entries, known)
    if rows:
        lines += ["", *_table(rows if everything else rows[:MOST_FUNCTIONS], now)]
        hidden = [] if everything else rows[MOST_FUNCTIONS:]
        if hidden:
            left = size(sum(row.bytes for row in hidden))
            lines.append(f"and {len(hidden)} more functions of {left} in total; --all lists them")
    for complaint in complaints:
        mark = "WARNING" if complaint.severity == "warning" else "info"
        lines += ["", f"{mark} ({complaint.kind}): {_shown(complaint.summary)}", f"  {_shown(complaint.advice)}"]
        lines += [f"  {each}" for each in _removal(complaint, contents, everything)]
    warnings = sum(complaint.severity == "warning" for complaint in complaints)
    lines += ["", f"{warnings} warning{'s' * (warnings != 1)}" if warnings else "No warnings."]
    return "\n".join(lines)


def _totals(contents: Contents, known: dict[str, str], now: float) -> Iterable[str]:
    entries = contents.entries
    yield f"{_shown(str(contents.path))}: {len(entries):,} entries, {size(contents.bytes)}"
    if entries:
        oldest, newest = min(entry.written for entry in entries), max(entry.written for entry in entries)
        yield f"  written:     {ago(now - oldest)} (oldest) to {ago(now - newest)} (newest)"
        accessed = [entry.accessed for entry in entries if entry.accessed is not None]
        if accessed:
            yield f"  last access: {ago(now - max(accessed))} (of {len(accessed)} entries with `-atime` files)"
        whole = sum(entry.reading.compile_seconds or 0 for entry in entries)
        yield f"  compile time stored: {duration(whole)} (JAX cuts each entry's to whole seconds)"
        yield f"  writers:     {_writers(entries, known)}"
    for each in contents.xla:
        yield f"  XLA's own:   {_shown(each.path.name)}, {size(each.bytes)}"
    if contents.lock is not None:
        yield f"  lock file:   {contents.lock.path.name}, created {ago(now - contents.lock.written)}; it stays for good"


def _writers(entries: Sequence[Entry], known: dict[str, str]) -> str:
    named: dict[str, int] = {}
    for entry in entries:
        name = f"jaxlib {known[entry.key]}" if entry.key in known else "unknown version"
        reading = entry.reading
        name += f" ({reading.layout}, {reading.codec})" if reading.layout else ""
        named[name] = named.get(name, 0) + 1
    return ", ".join(f"{name}: {number}" for name, number in sorted(named.items(), key=lambda each: -each[1]))


def _table(rows: Sequence[_Row], now: float) -> list[str]:
    width = min(NAME_WIDTH, max(len("function"), *(len(row.function) for row in rows)))
    lines = [f"{'function':<{width}}  entries       size   compile  last used or written  jaxlib"]
    for row in rows:
        name = middle(_shown(row.function), width)
        lines.append(
            f"{name:<{width}}  {row.entries:>7}  {size(row.bytes):>9}  {row.compile_seconds:>6} s  "
            f"{ago(now - row.last):>20}  {', '.join(row.writers)}"
        )
    return lines


def _removal(complaint: Complaint, contents: Contents, everything: bool) -> Iterable[str]:
    """Yields the command that deletes what is broken, with the access times of the entries."""
    if not complaint.removable:
        return
    entries = {entry.path: entry for entry in contents.entries}
    files = []
    for path in complaint.files:
        files.append(path)
        if path in entries and entries[path].accessed is not None:
            files.append(path.with_name(entries[path].key + directory.ATIME))
    shown = files if everything else files[:MOST_REMOVED]
    yield f"rm -- {' '.join(shlex.quote(str(path)) for path in shown)}"
    if len(files) > len(shown):
        yield f"and {len(files) - len(shown)} more; --all lists them"


def _shown(text: str) -> str:
    return safe(text, sys.stdout.encoding or "utf-8")


# --------------------------------------------------------------------------------------------------- as JSON


def _as_json(contents: Contents, complaints: Sequence[Complaint], known: dict[str, str]) -> str:
    entries = [
        {
            "file": entry.path.name,
            "key": entry.key,
            "function": entry.function,
            "bytes": entry.bytes,
            "written": timestamp(entry.written),
            "accessed": timestamp(entry.accessed) if entry.accessed is not None else None,
            "jaxlib": known.get(entry.key, "unknown"),
            **dataclasses.asdict(entry.reading),
        }
        for entry in sorted(contents.entries, key=lambda entry: (-entry.bytes, entry.key))
    ]
    body: dict[str, Any] = {
        "directory": str(contents.path),
        "bytes": contents.bytes,
        "entries": entries,
        "functions": [
            {**dataclasses.asdict(row), "last": timestamp(row.last)} for row in _rows(contents.entries, known)
        ],
        "xla": [_leftover(each) for each in contents.xla],
        "lock": _leftover(contents.lock) if contents.lock is not None else None,
        "findings": [
            {**dataclasses.asdict(complaint), "files": [str(path) for path in complaint.files]}
            for complaint in complaints
        ],
    }
    return json.dumps(body, indent=2)


def _leftover(each: Leftover) -> dict[str, Any]:
    return {"file": each.path.name, "bytes": each.bytes, "written": timestamp(each.written)}
