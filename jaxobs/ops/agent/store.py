"""The folder of reports: `<id>.json`, `<id>.md`, and what is open in `state/`. Files appear whole."""

import collections
import contextlib
import logging
import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pydantic

from jaxobs.base import private_files
from jaxobs.base.errors import SettingError
from jaxobs.ops.agent import rendering
from jaxobs.ops.agent.incidents import Incident
from jaxobs.ops.agent.report import Report
from jaxobs.ops.agent.subjects import Subject

_LOGGER = logging.getLogger("jaxobs.agent")
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[a-z0-9-]{1,60}")
Model = TypeVar("Model", bound=pydantic.BaseModel)
MOST_BYTES = 16 * 2**20
"""Bytes of a file that is read."""


class Store:
    """Safe for threads: each file is replaced in one step."""

    def __init__(
        self, folder: str, *, writes: bool = True, keep_days: float = math.inf, keep_bytes: float = math.inf
    ) -> None:
        """Makes the folder if it must be written.

        Args:
          keep_days: reports that are older are removed when an incident is closed.
          keep_bytes: of reports and states; beyond, the reports of the incidents that were closed first are removed.

        Raises:
          SettingError: it cannot be made or written.
        """
        self.folder = Path(folder)
        self._state = self.folder / "state"
        self._keep_days, self._keep_bytes = keep_days, keep_bytes
        self._written = keep_bytes
        """Bytes that were written since the last look at the folder, or nearly so: threads write at once."""
        self.is_over = False
        """Whether the files exceed the bound, and no report of a closed incident is left to remove."""
        self.wrote: Callable[[int], None] = lambda count: None
        """Called with the bytes of each file that is written."""
        self.removed: Callable[[], object] = lambda: None
        """Called for each report that is removed."""
        if not writes:
            return
        try:
            private_files.make_folders(self._state)
            with tempfile.TemporaryFile(dir=self._state):
                pass
        except OSError as error:
            raise SettingError(f"--reports {folder!r} cannot be written: {error.strerror or error}.") from None

    def write_report(self, report: Report) -> None:
        """Writes both forms of a report; whoever sees the JSON finds the page too.

        Raises:
          OSError: there is no room, or the folder is gone; what was there before is still there.
        """
        is_new = not self._path(report.id, ".json").exists()
        self._write(self._path(report.id, ".md"), rendering.markdown(report))
        self._write(self._path(report.id, ".json"), report.model_dump_json(indent=2) + "\n")
        if is_new:
            self._remove_beyond(report.id)

    def report(self, name: str) -> Report | None:
        """Returns a report; None if there is none, or it is damaged."""
        return None if not _ID.fullmatch(name) else _read(self._path(name, ".json"), Report)

    def reports(self) -> Iterator[Report]:
        """Yields all reports, the oldest first."""
        for path in sorted(self.folder.glob("*.json")):
            if _ID.fullmatch(path.stem) and (found := _read(path, Report)) is not None:
                yield found

    def names(self) -> list[str]:
        """Returns the ids of all reports."""
        return [path.stem for path in self.folder.glob("*.json") if _ID.fullmatch(path.stem)]

    def last_on(self, subject: Subject) -> Report | None:
        """Returns the report of the latest incident of a subject."""
        return self.report(max((each for each in self.names() if each[16:].startswith(subject.tag)), default=""))

    def version(self, name: str) -> object:
        """Returns something that changes when a report does."""
        try:
            info = self._path(name, ".json").stat()
        except OSError:
            return None
        return info.st_ino, info.st_mtime_ns

    def keep(self, incident: Incident) -> None:
        """Writes how far an incident has got.

        Raises:
          OSError: it cannot be written.
        """
        # Not awaited to be on the disk: an agent that is killed loses nothing, and Alertmanager waits for an answer.
        self._write(self._state / f"{incident.id}.json", incident.model_dump_json(), awaits_disk=False)

    def forget(self, incident: Incident) -> None:
        """Removes the state of a closed incident, and the reports that are older or larger than the store keeps."""
        with contextlib.suppress(OSError):
            (self._state / f"{incident.id}.json").unlink()
        if self._keep_days < math.inf:
            first = time.strftime("%Y%m%d-%H%M%S", time.gmtime(time.time() - 86_400 * self._keep_days))
            for name in [each for each in self._closed() if each < first]:
                self._remove(name)
        self._remove_beyond(incident.id)

    def _closed(self) -> list[str]:
        """Returns the ids of closed incidents that have a report, the oldest first."""
        return sorted(each for each in self.names() if not (self._state / f"{each}.json").exists())

    def _remove(self, name: str) -> None:
        self.removed()
        for file in (self._path(name, ".json"), self._path(name, ".md")):
            with contextlib.suppress(OSError):
                file.unlink()

    def _remove_beyond(self, last: str) -> None:
        """Removes the oldest reports of closed incidents, but for the last one, until the rest is small enough."""
        if self._written < self._keep_bytes / 100 and not self.is_over:
            return
        self._written = 0
        sizes: collections.Counter[str] = collections.Counter()
        for path in (*self.folder.glob("*.json"), *self.folder.glob("*.md"), *self._state.glob("*.json")):
            if _ID.fullmatch(path.stem):
                with contextlib.suppress(OSError):
                    sizes[path.stem] += path.stat().st_size
        beyond = sum(sizes.values()) - self._keep_bytes
        for name in self._closed() if beyond > 0 else ():
            if name != last and beyond > 0:
                self._remove(name)
                beyond -= sizes[name]
        self.is_over = beyond > 0

    def open_incidents(self) -> list[Incident]:
        """Returns the incidents that were not closed when the agent ended. A damaged file costs that incident."""
        found = [_read(each, Incident) for each in sorted(self._state.glob("*.json")) if _ID.fullmatch(each.stem)]
        return [each for each in found if each is not None]

    def has(self, name: str) -> bool:
        """Returns whether there is a report or an incident of that name."""
        return self._path(name, ".json").exists() or (self._state / f"{name}.json").exists()

    def _write(self, path: Path, text: str, *, awaits_disk: bool = True) -> None:
        """Replaces a file in one step: a reader sees the old one or the new one."""
        file, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(file, "wb") as output:
                count = output.write(text.encode(errors="backslashreplace"))
                self._written += count
                self.wrote(count)
                output.flush()
                if awaits_disk:
                    os.fsync(output.fileno())
            os.replace(draft, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft)
            raise

    def _path(self, name: str, ending: str) -> Path:
        if not _ID.fullmatch(name):
            raise ValueError(f"{name!r:.100} is not the id of an incident")
        return self.folder / f"{name}{ending}"


def _read(path: Path, kind: type[Model]) -> Model | None:
    try:
        with path.open("rb") as file:
            body = file.read(MOST_BYTES + 1)
        return kind.model_validate_json(body) if len(body) <= MOST_BYTES else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _LOGGER.warning("%s is left out: %s", path, str(error)[:300])
        return None
