"""The run: reads what its earlier attempts left, and keeps what the next one has to know."""

import os
import time

from jaxobs import internals
from jaxobs.base import private_files
from jaxobs.base.files.patience import Patience
from jaxobs.recorder import predecessors
from jaxobs.recorder.report_files import folder_of
from jaxobs.sources.support.source import Source
from jaxobs.state.checkpoints import Checkpoints
from jaxobs.state.runs import Earlier, Runs
from jaxobs.state.wall import Wall

NOWHERE = (
    "The setting `run_id` is given, but neither `event_log` nor a directory as `flight_recorder`: "
    "there is no place for the data that the next attempt needs, so the attempts of the run are not "
    "added up."
)

DISK_SECONDS = 2.0
"""Seconds that the slow tick waits for the file."""


class Run(Source):
    """The source: nothing in, the file of the run out. Silent if no `run_id` is set."""

    _given_up = False

    def _begin(self) -> None:
        self._disk = Patience(DISK_SECONDS)

    def start(self) -> None:
        """The account of the time begins, if it has not."""
        self._store.part(Wall)

    def after_fork(self) -> None:
        """A forked child is not an attempt of its own: the parent is, and goes on."""
        self._given_up = True

    def sample(self) -> None:
        """Looks for earlier attempts, once it is known which process of the job this is; keeps this one."""
        run_id = self._store.settings.run_id
        if run_id is None or self._given_up or not internals.backends_awake():
            return
        try:
            self._disk.do(lambda: self._keep(run_id, self._store.part(Runs)))
        except OSError as error:
            self._give_up(f"The file of the run {run_id!r} cannot be read or written ({error}): set `event_log` to a "
                          "directory where it can be. Its attempts are not added up.")  # fmt: skip

    def _keep(self, run_id: str, found: Runs) -> None:
        if found.id != run_id:
            self._begin_run(run_id, found)
        if found.path is not None:
            wall, checkpoints = self._store.part(Wall), self._store.part(Checkpoints)
            predecessors.write_attempt(found.path, run_id, predecessors.this_attempt(wall, checkpoints, found))

    def _begin_run(self, run_id: str, found: Runs) -> None:
        found.earlier, found.path = Earlier(), None
        folder = folder_of(self._store.settings)
        if folder is None:
            self._store.warn(NOWHERE)
        else:
            private_files.make_folders(folder)
            path = os.path.join(folder, predecessors.run_file_name(run_id, internals.process_index_and_count()[0]))
            found.path = self._continued(run_id, found, path)
        found.id = run_id

    def _continued(self, run_id: str, found: Runs, path: str) -> str | None:
        try:
            last = predecessors.read_attempt(path)
        except ValueError as error:
            self._store.warn(
                f"The file {path} does not belong to a run ({error}): it is left alone, and the attempts of the "
                f"run {run_id!r} are not added up. Delete it or choose another `run_id`."
            )
            return None
        if last is None:
            return path
        alive = last.is_alive()
        if alive and last.pid == os.getpid():
            found.earlier = last.earlier
            return path
        if alive:
            self._store.warn(
                f"Process {last.pid} is an attempt of the run {run_id!r} too, and is alive: this process does "
                "not count as one. Give it its own `run_id`."
            )
            return None
        found.earlier = last.then(time.time() - self._store.part(Wall).age())
        return path

    def _give_up(self, sentence: str) -> None:
        self._given_up = True
        self._store.warn(sentence)


source = Run
