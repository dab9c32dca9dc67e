"""The event log: every event as one JSON object a line, appended to a file.

A disk that is full or does not answer, a pipe that nobody reads or a directory that is gone costs events, which are
counted, and never the program. A file that is full is followed by another one, where the settings keep some. It is for
its owner alone: errors have texts in it, and reasons the values of static arguments.
"""

import dataclasses
import json
import math
import time

from jaxobs.base.config import Settings
from jaxobs.base.errors import SettingError
from jaxobs.base.files import absolute
from jaxobs.base.files.appended import AppendedFile, Written
from jaxobs.base.files.line_queue import LineQueue
from jaxobs.base.files.patience import Patience
from jaxobs.base.guard import internal_error
from jaxobs.facts.events import Event, as_event
from jaxobs.facts.process import Manifest
from jaxobs.state.store import Store

_encode = json.JSONEncoder(allow_nan=False).encode

MANIFEST_BYTES = 2**20
"""Files of this size have room for a manifest each."""
SYNC_SECONDS = 1.0
"""Seconds between writes to the disk, by the setting `interval`."""
OPEN_SECONDS = 2.0
"""Seconds that `install` waits to learn whether the file can be written."""


class EventLog:
    """Has each event written when it happens, whole lines at a time, so that processes may share a file."""

    def __init__(self, store: Store, settings: Settings, path: str) -> None:
        self._store = store
        self._path = absolute(path)
        self._most_bytes = settings.event_log_max_bytes
        self._syncs = settings.event_log_fsync != "never"
        self.every = SYNC_SECONDS if settings.event_log_fsync == "interval" else math.inf
        file = self._opened(path, settings)
        self._lines = LineQueue(file, self)
        store.log_left = lambda: file.left
        self._unsubscribe = store.subscribe(self._write)

    def _opened(self, path: str, settings: Settings) -> AppendedFile:
        def new() -> AppendedFile:
            always = settings.event_log_fsync == "always"
            return AppendedFile(self._path, settings.event_log_max_bytes, settings.event_log_files, always)

        file = new()
        try:
            Patience(OPEN_SECONDS).do(file.open)
        except TimeoutError as error:
            self._store.warn(f"The event log {self._path} is not open yet: {error.strerror}. The program continues.")
            return new()  # the other one belongs to the thread that hangs
        except OSError as error:
            raise SettingError(
                f"`event_log` is {path!r}, which cannot be written: {error.strerror or error}. "
                "Name a file in a directory that this process may write to."
            ) from None
        return file

    def _write(self, event: Event) -> None:
        self._lines.put((_encode(as_event(event)) + "\n").encode())

    def full(self, lines: int) -> None:
        """Lines found no room in the queue, or nobody took them up to the end."""
        if lines:
            self._store.drop("event_log_lines", lines)
            self._store.warn(
                f"The event log {self._path} cannot keep up with the events: a disk does not respond, or "
                "nobody reads the pipe. Lines are dropped and counted in "
                'jaxobs_dropped_events_total{reason="event_log_lines"}.'
            )

    def written(self, written: Written) -> None:
        """A write left lines out, or failed."""
        if written.removed:
            self._store.drop("event_log_files", written.removed)
            if self._most_bytes >= MANIFEST_BYTES:
                self._record_manifest()
        if written.beyond:
            self._store.drop("event_log_max_bytes", written.beyond)
        if written.error is not None:
            self._store.drop("event_log_write", written.lost)
            internal_error("event_log", written.error, self._path)
        elif written.lost:
            self.full(written.lost)

    def _record_manifest(self) -> None:
        """Again: the file with the first one may be among those that were removed."""
        events, _, _ = self._store.events(kind=Manifest.kind)
        if events:
            self._store.record(dataclasses.replace(events[-1], time=time.time()))

    def sample(self) -> None:
        """Has the lines of the last seconds flushed to disk, where the settings want it; waits for nothing."""
        if self._syncs:
            self._lines.sync()

    def flush(self) -> bool:
        """Waits a little until what was recorded is in the file; whether it is."""
        return self._lines.flush()

    def after_fork(self) -> None:
        """The child appends to the same file, line by line, under its own pid."""
        self._lines.after_fork()

    def close(self) -> None:
        """Stops writing, once what was recorded is in the file or does not get there in time."""
        self._unsubscribe()
        self.sample()
        self._lines.close()


def exporter(store: Store, settings: Settings) -> EventLog | None:
    """Returns the event log; None if the settings do not want it."""
    return EventLog(store, settings, settings.event_log) if settings.event_log else None
