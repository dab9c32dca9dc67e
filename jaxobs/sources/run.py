"""The run: reads what its earlier attempts left, and keeps what the next one has to know."""

from __future__ import annotations

import os
import time

from jaxobs import internals, runs
from jaxobs.checkpoints import Checkpoints
from jaxobs.guard import logger
from jaxobs.report_files import folder_of
from jaxobs.runs import Earlier, Runs
from jaxobs.store import Store
from jaxobs.wall import Wall

NOWHERE = (
    "The setting `run_id` is given, but neither `event_log` nor a directory as `flight_recorder`: there is no place "
    "for what the next attempt has to know, so the attempts of the run are not added up."
)


class Run:
    """The source: nothing in, the file of the run out. Silent where no `run_id` is set."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._given_up = False

    def start(self) -> None:
        """The account of the time begins, if it has not."""
        self._store.part(Wall)

    def stop(self) -> None:
        """Nothing to undo."""

    def after_fork(self) -> None:
        """A forked child is no attempt of its own: the parent is, and goes on."""
        self._given_up = True

    def sample(self) -> None:
        """Looks for earlier attempts, once it is known which process of the job this is; keeps this one."""
        run_id = self._store.settings.run_id
        if run_id is None or self._given_up or not internals.backends_awake():
            return
        found = self._store.part(Runs)
        try:
            if found.id != run_id:
                self._begin(run_id, found)
            if found.path is not None:
                wall, checkpoints = self._store.part(Wall), self._store.part(Checkpoints)
                runs.write(found.path, run_id, runs.this_attempt(wall, checkpoints, found))
        except OSError as error:
            self._give_up(f"The file of the run {run_id!r} cannot be read or written ({error}): set `event_log` to a "
                          "directory that can be. Its attempts are not added up.")  # fmt: skip

    def _begin(self, run_id: str, found: Runs) -> None:
        found.earlier, found.path = Earlier(), None
        folder = folder_of(self._store.settings)
        if folder is None:
            self._say(NOWHERE)
        else:
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, runs.file_name(run_id, internals.process_index_and_count()[0]))
            found.path = self._continued(run_id, found, path)
        found.id = run_id

    def _continued(self, run_id: str, found: Runs, path: str) -> str | None:
        try:
            last = runs.read(path)
        except ValueError as error:
            self._say(f"The file {path} is none of a run ({error}): it is left alone, and the attempts of the run "
                      f"{run_id!r} are not added up. Delete it or choose another `run_id`.")  # fmt: skip
            return None
        if last is None:
            return path
        alive = last.is_alive()
        if alive and last.pid == os.getpid():
            found.earlier = last.earlier
            return path
        if alive:
            self._say(f"Process {last.pid} is an attempt of the run {run_id!r} too, and is alive: this process does "
                      "not count as one. Give it a `run_id` of its own.")  # fmt: skip
            return None
        found.earlier = last.then(time.time() - self._store.part(Wall).age())
        return path

    def _give_up(self, sentence: str) -> None:
        self._given_up = True
        self._say(sentence)

    def _say(self, sentence: str) -> None:
        if self._store.note(sentence):
            logger.warning("%s", sentence)


def source(store: Store) -> Run:
    """What the folder's discovery asks every source for."""
    return Run(store)
