"""The end of the process before this one: reads the file that it left, and keeps one for the next process."""

import os
import time

from jaxobs import internals
from jaxobs.base import private_files
from jaxobs.base.files.patience import Patience
from jaxobs.base.process import started
from jaxobs.facts.errors import OutOfMemory
from jaxobs.facts.events import Event
from jaxobs.facts.process import Exit
from jaxobs.recorder import predecessors
from jaxobs.recorder.predecessors import Life
from jaxobs.recorder.report_files import folder_of
from jaxobs.sources.support.source import Subscriber
from jaxobs.state.runs import Runs
from jaxobs.state.store import Store

DISK_SECONDS = 2.0
"""Seconds that the slow tick and the end wait for the file."""
SAME_CAUSE = 60.0
"""Seconds from running out of memory to the exception that ends the process."""


class LastEnd(Subscriber):
    """The source: nothing in, the file out. Silent if there is not a directory for files."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._given_up = False
        self._disk = Patience(DISK_SECONDS)
        self._path: str | None = None
        self._kept: Life | None = None
        self._out_of_memory = 0.0

    def after_fork(self) -> None:
        """A forked child has no file: the parent has, and goes on."""
        self._given_up, self._path = True, None

    def sample(self) -> None:
        """Reads the file, once it is known which process of the job this is; keeps this process's own."""
        if self._given_up or not internals.backends_awake():
            return
        try:
            self._disk.do(self._keep)
        except (OSError, ValueError):
            self._given_up = True  # what another program wrote is left alone, and nothing is known

    def _keep(self) -> None:
        if self._path is None:
            folder = folder_of(self._store.settings)
            if folder is None:
                self._given_up = True
                return
            private_files.make_folders(folder)
            index, _ = internals.process_index_and_count()
            path = os.path.join(folder, predecessors.end_file_name(self._store.program, index))
            last = predecessors.read_life(path)
            if last is not None and last.pid != os.getpid():
                if last.is_alive():
                    self._given_up = True  # two at once: neither is the one before the other
                    return
                self._store.part(Runs).last_exit = last.ended(predecessors.this_life(started()))
            self._path = path
        life = predecessors.this_life(started())
        if life != self._kept:
            predecessors.write_life(self._path, life)
            self._kept = life

    def _on_event(self, event: Event) -> None:
        if isinstance(event, OutOfMemory):
            self._out_of_memory = time.monotonic()
        if not isinstance(event, Exit) or self._path is None:
            return
        path, life = self._path, predecessors.this_life(started(), self._end(event))
        try:
            self._disk.do(lambda: predecessors.write_life(path, life))
        except OSError:
            self._given_up = True

    def _end(self, event: Exit) -> str:
        if event.reason == "exception" or event.code:
            recent = self._out_of_memory and time.monotonic() - self._out_of_memory < SAME_CAUSE
            return "out_of_memory" if recent else "error"
        return "signal" if event.reason == "signal" else "normal"


source = LastEnd
