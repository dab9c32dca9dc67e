"""The metrics file: Prometheus text for node_exporter's textfile collector, or for reading after the fact.

Written next to its place and renamed, so that a reader never sees half of it. A disk that does not answer, or a pipe
that nobody reads, costs the file and never the program.
"""

import contextlib
import errno
import math
import os
import select
import stat
import tempfile
import time

from jaxobs import internals
from jaxobs.base import private_files
from jaxobs.base.config import PROCESS_INDEX, Settings
from jaxobs.base.errors import SettingError
from jaxobs.base.files import absolute
from jaxobs.base.files.claim import Claim
from jaxobs.base.files.patience import Patience
from jaxobs.base.guard import internal_error
from jaxobs.exporters.forms.exposition import Renderer
from jaxobs.state.store import Store

PROM_MODE = 0o644
"""Mode of a new file whose name ends in `.prom`: it holds what `/metrics` tells everybody on this machine."""
WRITE_SECONDS = 2.0
"""Seconds that a write is waited for, and so the program's end."""
READER_SECONDS = 1.0
"""Seconds that the reader of a pipe may take to read on."""


class MetricsFile:
    """Writes at the end, and every `metrics_interval` seconds where one is set."""

    def __init__(self, store: Store, settings: Settings, path: str) -> None:
        self.every = settings.metrics_interval or math.inf
        self._store = store
        self._renderer = Renderer(store)
        self._given = absolute(path)
        self._path: str | None = None
        """Path of this process's file; None until it is known."""
        self._claim: Claim | None = None
        self._owner = os.getpid()
        self._disk = Patience(WRITE_SECONDS)
        try:
            self._disk.do(self._try)
        except TimeoutError as error:
            self._store.warn(f"The metrics file {self._given} cannot be checked yet: {error.strerror}.")
        except OSError as error:
            raise SettingError(
                f"`metrics_file` is {path!r}, which cannot be written: {error.strerror or error}. "
                "Name a file in a directory that this process may write to."
            ) from None

    def _try(self) -> None:
        private_files.make_folders(os.path.dirname(self._given))
        if os.path.isdir(self._given):
            raise IsADirectoryError(None, "it is a directory")
        if _is_special(self._given):
            _try_special(self._given)
        else:
            folder, name = os.path.split(os.path.realpath(self._given))
            with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{name}."):  # as a draft is named
                pass
        if PROCESS_INDEX not in self._given:
            self._settle(self._given)

    def _settle(self, path: str) -> str:
        """The path, or one next to it where another process writes to that: neither overwrites the other."""
        if not _is_special(path):
            path = os.path.realpath(path)
            claim = Claim(path)
            holder = claim.take()
            if holder is not None:
                own = f"{path}.{os.getpid()}"
                self._store.warn(
                    f"The metrics file {path} belongs to {holder}. This process writes to {own}. Give each process its "
                    "own name, such as metrics-{process_index}.prom or metrics-{pid}.prom."
                )
                path = own
            else:
                self._claim = claim
        self._path = path
        return path

    def sample(self) -> None:
        """Called every `every` seconds."""
        if self.every < math.inf and (PROCESS_INDEX not in self._given or internals.backends_awake()):
            self.write()

    def write(self) -> None:
        """Replaces the file; a failure is counted and leaves the old one in place."""
        if os.getpid() != self._owner:
            return
        text = self._renderer.render()
        index = internals.process_index_and_count()[0]
        try:
            self._disk.do(lambda: self._put(text, index))
        except OSError as error:
            self._store.drop("metrics_file_write")
            internal_error("metrics_file", error, self._path or self._given)

    def _put(self, text: bytes, process_index: int) -> None:
        path = self._path or self._settle(self._given.replace(PROCESS_INDEX, str(process_index)))
        if _is_special(path):
            _write_special(path, text)
        else:
            # node_exporter runs as another user, and reads `*.prom` only.
            mode = PROM_MODE if path.endswith(".prom") else private_files.FILE_MODE
            private_files.write_whole(path, [text], mode)

    def after_fork(self) -> None:
        """The file stays the parent's."""

    def close(self) -> None:
        """Writes the last state."""
        self.write()
        claim, self._claim = self._claim, None
        if claim is not None:
            with contextlib.suppress(OSError):
                self._disk.do(claim.end)


def _is_special(path: str) -> bool:
    """Returns whether a path is a pipe or a device such as `/dev/stdout`, which is written to and not replaced."""
    return path.startswith(("/dev/", "/proc/")) or (os.path.exists(path) and not os.path.isfile(path))


_SPECIAL = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def _try_special(path: str) -> None:
    if stat.S_ISFIFO(os.stat(path).st_mode):
        # Not opened: a reader that waits for it would take the close for the end.
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    else:
        os.close(os.open(path, _SPECIAL))


def _write_special(path: str, text: bytes) -> None:
    """Writes to a pipe or device, which may be read slowly, but not longer than a while without a byte being taken."""
    try:
        file = os.open(path, _SPECIAL)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "nobody reads it", path) from None
        raise
    try:
        rest, until = memoryview(text), time.monotonic() + READER_SECONDS
        while rest:
            try:
                rest = rest[os.write(file, rest) :]
                until = time.monotonic() + READER_SECONDS
            except BlockingIOError:
                if time.monotonic() > until:
                    raise OSError(errno.ETIMEDOUT, "its reader has stopped reading", path) from None
                _wait(file, 0.1)
    finally:
        os.close(file)


def _wait(file: int, seconds: float) -> None:
    if not hasattr(select, "poll"):
        time.sleep(seconds)
        return
    poll = select.poll()
    poll.register(file, select.POLLOUT)
    poll.poll(seconds * 1000)


def exporter(store: Store, settings: Settings) -> MetricsFile | None:
    """Returns the metrics file; None if the settings do not want it."""
    return MetricsFile(store, settings, settings.metrics_file) if settings.metrics_file else None
