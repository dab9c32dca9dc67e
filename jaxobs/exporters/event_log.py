"""The event log: every event as one JSON object a line, appended to a file.

A disk that is full or a directory that is gone costs events, which are counted, and never the program.
"""

from __future__ import annotations

import errno
import json
import math
import os
import threading
import time

from jaxobs.config import Settings
from jaxobs.errors import SettingError
from jaxobs.facts import Event, as_event
from jaxobs.guard import internal_error
from jaxobs.store import Store

_encode = json.JSONEncoder(allow_nan=False).encode

SETTLING_SECONDS = 0.005


class EventLog:
    """Writes each event when it happens, in one `write` of one line, so that processes may share a file."""

    every = math.inf

    def __init__(self, store: Store, settings: Settings, path: str) -> None:
        self._store = store
        self._path = os.path.abspath(path)
        self._most_bytes = settings.event_log_max_bytes
        # Reentrant: a signal handler of the program may record an event while this thread writes one.
        self._lock = threading.RLock()
        self._file: int | None = None
        self._closed = False
        self._torn = False
        """Whether the file ends inside a line."""
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._open()
        except OSError as error:
            raise SettingError(
                f"`event_log` is {path!r}, which cannot be written: {error.strerror or error}. "
                "Name a file in a directory that this process may write to."
            ) from None
        self._unsubscribe = store.subscribe(self._write)

    def _open(self) -> int:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._file, self._torn = file, _ends_inside_a_line(self._path)
        return file

    def _write(self, event: Event) -> None:
        line = (_encode(as_event(event)) + "\n").encode()
        with self._lock:
            try:
                self._append(line)
            except OSError as error:
                self._store.drop("event_log_write")
                internal_error("event_log", error)
                self._close()
            if self._closed:
                self._close()

    def _append(self, line: bytes) -> None:
        if self._file is not None and self._was_replaced(self._file):
            self._close()
        file = self._open() if self._file is None else self._file
        size = os.fstat(file).st_size
        if size + len(line) > self._most_bytes:
            self._store.drop("event_log_max_bytes")
            return
        if self._torn and _ends_inside_a_line(self._path):
            line = b"\n" + line
        written = os.write(file, line)
        self._torn = written != len(line)
        if self._torn:
            if os.fstat(file).st_size == size + written:
                os.ftruncate(file, size)
            raise OSError(errno.ENOSPC, "there was room for a part of the line only")

    def _was_replaced(self, file: int) -> bool:
        """Whether somebody moved or removed the file, as those do who rotate logs."""
        try:
            return not os.path.samestat(os.stat(self._path), os.fstat(file))
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # not ours to look at any more, but still ours to write
            return False

    def _close(self) -> None:
        """Closes the file; the next event opens it anew, in case it can be written again."""
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)

    def sample(self) -> None:
        """Nothing to do between events."""

    def after_fork(self) -> None:
        """The child appends to the same file, line by line, under its own pid."""
        self._lock = threading.RLock()

    def close(self) -> None:
        """Stops writing. What another thread recorded before is still written."""
        self._unsubscribe()
        with self._lock:
            self._closed = True
            self._close()


def _ends_inside_a_line(path: str) -> bool:
    """Whether a file was left with half a line at its end: by a process that was killed, on a disk that was full.

    A line that another process is writing at this moment may be seen half as well: that one is whole a moment later.
    """
    if not _lacks_an_end(path):
        return False
    time.sleep(SETTLING_SECONDS)
    return _lacks_an_end(path)


def _lacks_an_end(path: str) -> bool:
    try:
        if not os.path.isfile(path) or not os.path.getsize(path):
            return False
        with open(path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:
        return False


def exporter(store: Store, settings: Settings) -> EventLog | None:
    """What the folder's discovery asks every exporter for: None where the settings do not want it."""
    return EventLog(store, settings, settings.event_log) if settings.event_log else None
