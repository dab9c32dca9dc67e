"""The metrics file: Prometheus text for node_exporter's textfile collector, or for reading after the fact.

Written next to its place and renamed, so that a reader never sees half of it.
"""

from __future__ import annotations

import os
import tempfile
import time

from jaxobs.config import Settings
from jaxobs.errors import SettingError
from jaxobs.exposition import Renderer
from jaxobs.guard import internal_error
from jaxobs.store import Store


class MetricsFile:
    """Writes at the end, and every `metrics_interval` seconds where one is set."""

    def __init__(self, store: Store, settings: Settings, path: str) -> None:
        self._store = store
        self._renderer = Renderer(store)
        self._path = os.path.abspath(path)
        self._interval = settings.metrics_interval
        self._written = time.monotonic()
        self._owner = os.getpid()
        folder = os.path.dirname(self._path)
        try:
            os.makedirs(folder, exist_ok=True)
            if os.path.isdir(self._path):
                raise IsADirectoryError(None, "it is a directory")
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise SettingError(
                f"`metrics_file` is {path!r}, which cannot be written: {error.strerror}. "
                "Name a file in a directory that this process may write to."
            ) from None

    def sample(self) -> None:
        """Writes when an interval is set and over."""
        if self._interval and time.monotonic() - self._written >= self._interval:
            self._written = time.monotonic()
            self.write()

    def write(self) -> None:
        """Replaces the file; a failure is counted and leaves the old one in place."""
        if os.getpid() != self._owner:
            return
        try:
            folder, name = os.path.split(self._path)
            number, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.", suffix=".tmp")
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(self._renderer.render())
                os.chmod(temporary, 0o644)
                os.replace(temporary, self._path)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            self._store.drop("metrics_file_write")
            internal_error("metrics_file", error)

    def after_fork(self) -> None:
        """The file stays the parent's."""

    def close(self) -> None:
        """Writes the last state."""
        self.write()


def exporter(store: Store, settings: Settings) -> MetricsFile | None:
    """What the folder's discovery asks every exporter for: None where the settings do not want it."""
    return MetricsFile(store, settings, settings.metrics_file) if settings.metrics_file else None
