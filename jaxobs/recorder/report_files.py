"""The text files that the flight recorder leaves: where they go, what they are called, and how many there may be."""

import os
import time

from jaxobs.base import private_files, threads
from jaxobs.base.config import Settings
from jaxobs.base.files import absolute
from jaxobs.base.files.patience import Patience
from jaxobs.state.store import Store

MOST_FILES = 10
"""Reports of one kind, in one process."""
MOST_FILES_IN_DIRECTORY = 100
"""Reports of one kind."""
DISK_SECONDS = 1.5
"""How long the program waits for one to be written."""


class ReportFiles:
    """Files of one kind, `<kind>-<time>-<process index>-<pid>-<number>.txt`. Safe for threads."""

    def __init__(self, store: Store, kind: str) -> None:
        self._store = store
        self._kind = kind
        # Reentrant: a signal handler of the program may come in here while this thread is.
        self._lock = threads.RLock()
        self._written = 0
        self._disk = Patience(DISK_SECONDS)

    def write(self, when: float, process_index: int, text: str) -> str | None:
        """Writes one and returns its path; None if none is wanted or there are enough.

        Raises:
          OSError: the directory or the file cannot be written, or the disk does not answer.
        """
        if (folder := folder_of(self._store.settings)) is None:
            return None
        with self._lock:
            number = self._written = self._written + 1
        if number > MOST_FILES:
            self._enough()
            return None
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(when))
        name = f"{self._kind}-{moment}-{process_index}-{os.getpid()}-{number}.txt"
        return self._disk.do(lambda: self._put(folder, name, text))

    def _put(self, folder: str, name: str, text: str) -> str | None:
        if _count(folder, f"{self._kind}-") >= MOST_FILES_IN_DIRECTORY:
            self._enough()
            return None
        private_files.make_folders(folder)
        path = os.path.join(folder, name)
        with open(path, "x", encoding="utf-8", errors="replace", opener=private_files.opener) as file:
            file.write(text)
        return path

    def _enough(self) -> None:
        self._store.drop(f"{self._kind.replace('-', '_')}_files")


def _count(folder: str, prefix: str) -> int:
    try:
        return sum(name.startswith(prefix) for name in os.listdir(folder))
    except FileNotFoundError:
        return 0


def folder_of(settings: Settings) -> str | None:
    """The directory that the setting `flight_recorder` names, else the event log's; None for no files."""
    if settings.flight_recorder is not None:
        return None if settings.flight_recorder.lower() == "off" else absolute(settings.flight_recorder)
    return os.path.dirname(absolute(settings.event_log)) if settings.event_log else None
