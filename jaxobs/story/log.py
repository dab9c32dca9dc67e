"""An event log read back: JSON lines of one process or of many, of this version of jaxobs or of another.

What a process that was killed left behind, half a line, is passed over and counted. Anything else that is no event is
an error that names file and line: then it is not the file that was meant.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from jaxobs import client
from jaxobs.errors import JaxobsError
from jaxobs.facts import CacheLookup, Compilation, Error, Event, Exit, Finding, Manifest, NonFinite, OutOfMemory

_READ = frozenset(
    each.kind for each in (Compilation, CacheLookup, Finding, Manifest, OutOfMemory, NonFinite, Error, Exit)
)


class EventLogError(JaxobsError, ValueError):
    """A file is no event log, or cannot be read."""


@dataclass(slots=True, eq=False)
class ProcessEvents:
    """The events of one process, in the order of their lines. Equal to nothing but itself."""

    process_index: int = 0
    pid: int = 0
    manifest: Manifest | None = None
    compilations: list[Compilation] = field(default_factory=list)
    lookups: list[CacheLookup] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    out_of_memory: list[OutOfMemory] = field(default_factory=list)
    nonfinite: list[NonFinite] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    exit: Exit | None = None
    """None where it still runs, or could not speak any more."""
    missing: int = 0
    """Events that the process no longer held when it was asked."""
    newest: int = 0
    """The largest sequence number."""


@dataclass(frozen=True, slots=True)
class Log:
    """All processes of a file, in the order of their first lines."""

    processes: tuple[ProcessEvents, ...]
    torn: tuple[int, ...]
    """Numbers of the lines that were not written to their end."""


def read_log(path: str) -> Log:
    """Reads what compiled and why.

    Raises:
      EventLogError: the file cannot be read, or holds what is no event; the message names the line.
    """
    processes: dict[ProcessEvents, None] = {}
    torn: list[int] = []
    for number, process, body in lines(path, torn):
        processes[process] = None
        if body["event"] in _READ:
            _add(process, event_of(path, number, body))
    return Log(tuple(processes), tuple(torn))


def lines(
    path: str, torn: list[int], progress: Callable[[int], None] | None = None
) -> Iterator[tuple[int, ProcessEvents, dict[str, Any]]]:
    """Each line that is an event: its number, whose it is, and its object. One line is in memory at a time.

    Args:
      torn: takes the numbers of the lines that were not written to their end.
      progress: called with the bytes read so far, now and then.

    Raises:
      EventLogError: as `read_log`.
    """
    latest: dict[tuple[int, int], ProcessEvents] = {}
    try:
        with open(path, "rb") as file:
            for number, body in _bodies(path, file, torn, progress):
                process = _process(body, latest)
                process.newest = max(process.newest, _whole(body.get("sequence")))
                yield number, process, body
    except OSError as error:
        what = "is a folder" if os.path.isdir(path) else f"cannot be read: {error.strerror or error}"
        raise EventLogError(f"`{path}` {what}. Give the file that `jaxobs run --event-log FILE` wrote.") from None
    if not latest:
        raise EventLogError(
            f"`{path}` holds no events. Write one with `jaxobs run --event-log {path} SCRIPT`, or with "
            f"jaxobs.install(event_log={path!r}) before the program compiles anything."
        )


def event_of(path: str, number: int, body: dict[str, Any]) -> Event | None:
    """The event of a line, without its recorded signature; None where this version does not know its kind.

    Raises:
      EventLogError: this version does not understand it.
    """
    try:
        # What one needs to compile it elsewhere is long, and of no use here.
        return client.decode_event({name: value for name, value in body.items() if name != "signature"})
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        what = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
        raise EventLogError(
            f"{path}:{number}: a `{body['event']}` that this version of jaxobs does not understand: {what}. "
            f"It was written by another version, or by hand; mend or remove the line."
        ) from None


def _bodies(
    path: str, file: BinaryIO, torn: list[int], progress: Callable[[int], None] | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines that are events, with their numbers; those of torn ones go into `torn`."""
    done = 0
    for number, line in enumerate(file, 1):
        done += len(line)
        if progress is not None and number % 256 == 0:
            progress(done)
        if not line.strip():
            continue
        try:
            body = json.loads(line)
        except (ValueError, RecursionError):
            # A process was killed inside a write; the next one began a new line.
            if line.startswith(b'{"time') or b'{"time'.startswith(line.strip()):
                torn.append(number)
                continue
            raise _no_event(path, number, line, "is no JSON") from None
        if not isinstance(body, dict) or not isinstance(body.get("event"), str):
            raise _no_event(path, number, line, "is JSON, but no event")
        yield number, body


def _no_event(path: str, number: int, line: bytes, what: str) -> EventLogError:
    shown = line[:60].decode("utf-8", "backslashreplace").strip()
    return EventLogError(
        f"{path}:{number}: the line {what}: {shown!r}. An event log has one JSON object a line, as "
        f"`jaxobs run --event-log FILE` writes it; look whether this is the right file."
    )


def _process(body: dict[str, Any], latest: dict[tuple[int, int], ProcessEvents]) -> ProcessEvents:
    """Whose event it is. Numbers of processes come back, in containers above all: a manifest may begin a new one."""
    key = _whole(body.get("process_index")), _whole(body.get("pid"))
    known = latest.get(key)
    if known is None and key[0]:
        known = _joined(key, _whole(body.get("sequence")), latest)
    again = body["event"] == Manifest.kind and known is not None and _whole(body.get("sequence")) <= known.newest
    if known is None or again:
        known = latest[key] = ProcessEvents(*key)
    return known


def _joined(key: tuple[int, int], sequence: int, latest: dict[tuple[int, int], ProcessEvents]) -> ProcessEvents | None:
    """The process that was told as number 0 until it joined its job, if this event is its next."""
    before = latest.get((0, key[1]))
    if before is None or before.newest != sequence - 1:
        return None
    del latest[0, key[1]]
    before.process_index = key[0]
    latest[key] = before
    return before


def _add(process: ProcessEvents, event: Event | None) -> None:
    if isinstance(event, Compilation):
        process.compilations.append(event)
    elif isinstance(event, CacheLookup):
        process.lookups.append(event)
    elif isinstance(event, Finding):
        process.findings.append(event)
    elif isinstance(event, Manifest):
        process.manifest = event
    elif isinstance(event, OutOfMemory):
        process.out_of_memory.append(event)
    elif isinstance(event, NonFinite):
        process.nonfinite.append(event)
    elif isinstance(event, Error):
        process.errors.append(event)
    elif isinstance(event, Exit):
        process.exit = event


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0
