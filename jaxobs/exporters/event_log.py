"""The event log: every event as one JSON object a line, appended to a file.

A disk that is full or a directory that is gone costs events, which are counted, and never the program.
"""

from __future__ import annotations

import json
import os
import threading

from jaxobs.config import Settings
from jaxobs.errors import SettingError
from jaxobs.facts import Event, as_event
from jaxobs.guard import internal_error
from jaxobs.store import Store


class EventLog:
    """Writes each event when it happens, in one `write` of one line, so that processes may share a file."""

    def __init__(self, store: Store, settings: Settings, path: str) -> None:
        self._store = store
        self._path = os.path.abspath(path)
        self._most_bytes = settings.event_log_max_bytes
        self._lock = threading.Lock()
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._file: int | None = self._open()
        except OSError as error:
            raise SettingError(
                f"`event_log` is {path!r}, which cannot be written: {error.strerror}. "
                "Name a file in a directory that this process may write to."
            ) from None
        self._unsubscribe = store.subscribe(self._write)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def _write(self, event: Event) -> None:
        line = (json.dumps(as_event(event), allow_nan=False) + "\n").encode()
        with self._lock:
            try:
                if self._file is None:
                    self._file = self._open()
                if os.fstat(self._file).st_size + len(line) > self._most_bytes:
                    self._store.drop("event_log_max_bytes")
                    return
                if os.write(self._file, line) != len(line):
                    raise OSError("the line was written in part only")
            except OSError as error:
                self._store.drop("event_log_write")
                internal_error("event_log", error)
                self._close()

    def _close(self) -> None:
        """Closes the file; the next event opens it anew, in case it can be written again."""
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)

    def sample(self) -> None:
        """Nothing to do between events."""

    def after_fork(self) -> None:
        """The child appends to the same file, line by line, under its own pid."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Stops writing."""
        self._unsubscribe()
        with self._lock:
            self._close()


def exporter(store: Store, settings: Settings) -> EventLog | None:
    """What the folder's discovery asks every exporter for: None where the settings do not want it."""
    return EventLog(store, settings, settings.event_log) if settings.event_log else None
