"""The directory of captures: for the user alone, with a bound of bytes and of captures.

Each capture is written into a directory without its final name, and gets that when it is whole.
"""

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator

from jaxobs.actions.capturing.action_types import Refused
from jaxobs.base import private_files
from jaxobs.base.config import Settings
from jaxobs.base.files import absolute
from jaxobs.recorder.oom_texts import human

MOST_CAPTURES = 100
"""Captures in one directory, of all processes."""
STALE_SECONDS = 3600.0
"""Age at which half a capture belongs to a process that died: none takes so long."""

_NAME = re.compile(r"[a-z_]+-\d{8}T\d{6}Z-\d+-\d+-\d+")
_UNFINISHED = ".unfinished-"


def directory(settings: Settings) -> str:
    """Returns the directory in force: the setting, else the event log's, else a private one among temporary files."""
    if settings.capture_directory:
        return absolute(settings.capture_directory)
    if settings.event_log:
        return os.path.dirname(absolute(settings.event_log))
    return os.path.join(tempfile.gettempdir(), f"jaxobs-captures-{_user()}")


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def name(action: str, now: float, process_index: int, number: int) -> str:
    """Returns the name of a capture: action, time (UTC), process index, pid and the how-manieth it is."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    return f"{action}-{moment}-{process_index}-{os.getpid()}-{number}"


class CaptureTooLarge(Exception):  # noqa: N818 - an outcome, told as such
    """The capture does not fit; the message says by how much."""


class Folder:
    """A directory of captures."""

    def __init__(self, settings: Settings) -> None:
        self.path = directory(settings)
        self._private = not (settings.capture_directory or settings.event_log)
        self._most_bytes = settings.capture_max_bytes

    def room(self) -> int:
        """Returns the bytes that are left; makes the directory, and clears away what processes left that died.

        Raises:
          Refused: it is full, cannot be made, or could be read or changed by others.
        """
        try:
            private_files.make_folders(self.path)
            if self._private:
                self._check_ours()
            count, size = self._taken()
        except OSError as error:
            raise Refused(
                f"The directory {self.path!r} cannot be used: {error.strerror or error}. Set `capture_directory` "
                "to one that this process may write to."
            ) from None
        if count >= MOST_CAPTURES:
            raise Refused(f"{self.path!r} has {count} captures, the maximum. Remove those no longer needed.")
        if size >= self._most_bytes:
            raise Refused(
                f"The captures in {self.path!r} take {human(size)}, and `capture_max_bytes` is "
                f"{human(self._most_bytes)}. Remove those no longer needed, or raise it."
            )
        return self._most_bytes - size

    def _check_ours(self) -> None:
        """A directory of a name that anybody can guess may have been made by anybody."""
        found = os.lstat(self.path)
        if not stat.S_ISDIR(found.st_mode) or (
            os.name == "posix" and (found.st_uid != _user() or found.st_mode & 0o077)
        ):
            raise Refused(
                f"{self.path!r} is not a directory of this user alone. Remove it, or set `capture_directory`."
            )

    def _taken(self) -> tuple[int, int]:
        """Number and bytes of the captures that are there, those under way of other processes among them."""
        count = total = 0
        with os.scandir(self.path) as entries:
            for entry in entries:
                whole = _NAME.fullmatch(entry.name.removeprefix(_UNFINISHED))
                if not whole or not entry.is_dir(follow_symlinks=False):
                    continue
                if entry.name.startswith(_UNFINISHED) and time.time() - entry.stat().st_mtime > STALE_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)
                    continue
                count, total = count + 1, total + size(entry.path)
        return count, total

    @contextlib.contextmanager
    def writing(self, name: str, most_bytes: int) -> Iterator[str]:
        """A directory to write one capture into; `name` is its final name, once the block is over without an error.

        Raises:
          CaptureTooLarge: it took more than `most_bytes`; it is removed.
        """
        unfinished = os.path.join(self.path, _UNFINISHED + name)
        os.mkdir(unfinished, 0o700)
        os.chmod(unfinished, 0o700)  # whatever the umask is
        try:
            yield unfinished
            taken = size(unfinished)
            if taken > most_bytes:
                raise CaptureTooLarge(
                    f"It took {human(taken)}, but only {human(most_bytes)} were left of `capture_max_bytes`: removed. "
                    "Capture less, remove others that are no longer needed, or raise the setting."
                )
            for path in _files(unfinished):
                os.chmod(path, 0o600)
            os.rename(unfinished, os.path.join(self.path, name))
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


def size(path: str) -> int:
    """Returns the bytes of the files below a directory."""
    total = 0
    for file in _files(path):
        with contextlib.suppress(OSError):
            total += os.lstat(file).st_size
    return total


def _files(path: str) -> Iterator[str]:
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, each) for each in names)
