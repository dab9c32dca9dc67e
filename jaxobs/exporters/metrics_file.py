"""The metrics file: Prometheus text for node_exporter's textfile collector, or for reading after the fact.

Written next to its place and renamed, so that a reader never sees half of it.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile

from jaxobs.config import Settings
from jaxobs.errors import SettingError
from jaxobs.exposition import Renderer
from jaxobs.guard import internal_error
from jaxobs.store import Store


class MetricsFile:
    """Writes at the end, and every `metrics_interval` seconds where one is set."""

    def __init__(self, store: Store, settings: Settings, path: str) -> None:
        self.every = settings.metrics_interval or math.inf
        self._store = store
        self._renderer = Renderer(store)
        self._path = os.path.abspath(path)
        self._owner = os.getpid()
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._try()
        except OSError as error:
            raise SettingError(
                f"`metrics_file` is {path!r}, which cannot be written: {error.strerror or error}. "
                "Name a file in a directory that this process may write to."
            ) from None

    def _try(self) -> None:
        if os.path.isdir(self._path):
            raise IsADirectoryError(None, "it is a directory")
        if self._is_special():
            with open(self._path, "ab"):
                return
        number, temporary = _temporary(os.path.realpath(self._path))
        os.close(number)
        os.unlink(temporary)

    def _is_special(self) -> bool:
        """Whether it is a pipe or a device such as `/dev/stdout`, which is written to and not replaced."""
        return self._path.startswith(("/dev/", "/proc/")) or (
            os.path.exists(self._path) and not os.path.isfile(self._path)
        )

    def sample(self) -> None:
        """Called every `every` seconds."""
        if self.every < math.inf:
            self.write()

    def write(self) -> None:
        """Replaces the file; a failure is counted and leaves the old one in place."""
        if os.getpid() != self._owner:
            return
        text = self._renderer.render()
        try:
            if self._is_special():
                with open(self._path, "ab") as file:
                    file.write(text)
            else:
                _replace(os.path.realpath(self._path), text)
        except OSError as error:
            self._store.drop("metrics_file_write")
            internal_error("metrics_file", error)

    def after_fork(self) -> None:
        """The file stays the parent's."""

    def close(self) -> None:
        """Writes the last state."""
        self.write()


def _temporary(path: str) -> tuple[int, str]:
    """A file beside the one at `path`, hidden from those who collect `*.prom`."""
    folder, name = os.path.split(path)
    return tempfile.mkstemp(dir=folder, prefix=f".{name}.", suffix=".tmp")


def _replace(path: str, content: bytes) -> None:
    number, temporary = _temporary(path)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def exporter(store: Store, settings: Settings) -> MetricsFile | None:
    """What the folder's discovery asks every exporter for: None where the settings do not want it."""
    return MetricsFile(store, settings, settings.metrics_file) if settings.metrics_file else None
