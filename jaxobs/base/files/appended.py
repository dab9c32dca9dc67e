"""A file that whole lines are appended to, by several processes perhaps, without waiting for a pipe's reader."""

import contextlib
import errno
import os
import select
import stat
import time
from collections import deque
from dataclasses import dataclass

from jaxobs.base import private_files
from jaxobs.base.descriptors import Kept
from jaxobs.base.files import rotated

SETTLING_SECONDS = 0.005
MOST_AT_ONCE = 2**18
"""Bytes of one write."""

_FLAGS = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
)


@dataclass(frozen=True, slots=True)
class Written:
    """Outcome of writing lines."""

    beyond: int = 0
    """Lines left out, for the file is as large as it may be."""
    lost: int = 0
    """Lines that could not be written."""
    removed: int = 0
    """Older files that were removed to make room."""
    error: OSError | None = None
    """Reason why lines could not be written."""
    stalled: bool = False
    """Whether the other lines have to wait for a reader."""


class AppendedFile:
    """File, pipe or device that lines are appended to. Not safe for threads."""

    def __init__(self, path: str, most_bytes: int, keep: int = 0, sync_each: bool = False) -> None:
        """Keeps `keep` older files when one is full, 0 for none; `sync_each` brings each write to the disk."""
        self.path = path
        self._most_bytes = most_bytes
        self._keep = keep
        self._sync_each = sync_each
        self._file: Kept | None = None
        self._is_regular = True
        self._torn = False
        """Whether the file ends inside a line."""
        self._offset = 0
        """Bytes of the first line that are in the pipe already."""
        self.left: int | None = None
        """Bytes that the disk had left when it was last written to."""

    def open(self) -> None:
        """Opens the file, and makes its folder.

        Raises:
          OSError: it cannot be written. A pipe that nobody reads yet raises nothing.
        """
        private_files.make_folders(os.path.dirname(self.path))
        with contextlib.suppress(_NoReader):
            self._open()

    def append(self, lines: deque[bytes]) -> Written:
        """Writes as many lines as it can, and takes out those that are done with."""
        try:
            if self._file is not None and self._was_replaced(self._file):
                self.close()
                if lost := self._give_up_begun(lines):
                    return Written(lost=lost)
            file = self._open() if self._file is None else self._file.number
            if not self._is_regular:
                return self._append_parts(file, lines)
            if self._keep and lines and self._is_full(file, len(lines[0])):
                removed = rotated.rotate(self.path, file, self._keep)
                self.close()
                return Written(removed=removed)  # the next time, to the file that is there then
            return self._append_whole(file, lines)
        except _NoReader:
            return Written(stalled=True)
        except OSError as error:
            self.close()
            lost = len(lines)
            lines.clear()
            return Written(lost=lost, error=error)

    def wait(self, seconds: float) -> None:
        """Waits until a pipe takes more, or so long."""
        if self._file is None or not hasattr(select, "poll"):
            time.sleep(seconds)
            return
        poll = select.poll()
        poll.register(self._file.number, select.POLLOUT)
        ready = poll.poll(seconds * 1000)
        if ready and not ready[0][1] & select.POLLOUT:  # the reader is gone
            time.sleep(seconds)

    def close(self) -> None:
        """Closes the file; the next line opens it again, in case it can be written again."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def after_fork(self) -> None:
        """Closes a pipe in a forked child, so that its reader sees the end when the parent ends."""
        self._offset = 0
        if not self._is_regular:
            with contextlib.suppress(OSError):
                self.close()

    def _open(self) -> int:
        try:
            file = private_files.open_file(self.path, _FLAGS)
        except OSError as error:
            if error.errno == errno.ENXIO and stat.S_ISFIFO(os.stat(self.path).st_mode):
                raise _NoReader from None
            raise
        self._file, self._is_regular = Kept(file), stat.S_ISREG(os.fstat(file).st_mode)
        self._torn = self._is_regular and _ends_inside_a_line(self.path)
        return file

    def _was_replaced(self, file: Kept) -> bool:
        """Returns whether somebody moved or removed the file, as those do who rotate logs, or the program closed it."""
        try:
            return not file.is_ours() or not os.path.samestat(os.stat(self.path), os.fstat(file.number))
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # not ours to look at any more, but still ours to write
            return False

    def _is_full(self, file: int, more: int) -> bool:
        size = os.fstat(file).st_size
        return size > 0 and size + more > self._most_bytes

    def sync(self) -> None:
        """Has what was written flushed to disk, as far as it is one."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._file.number)

    def _append_whole(self, file: int, lines: deque[bytes]) -> Written:
        """Writes lines at once, so that those of several processes do not mix."""
        size = end = os.fstat(file).st_size
        if hasattr(os, "fstatvfs"):
            disk = os.fstatvfs(file)
            self.left = disk.f_bavail * disk.f_frsize
        fitting: list[bytes] = []
        beyond, room = 0, MOST_AT_ONCE
        while lines and (not fitting or len(lines[0]) <= room):
            if self._keep and len(lines[0]) <= self._most_bytes < end + len(lines[0]):
                break  # the next time, to the next file
            line = lines.popleft()
            room -= len(line)
            if end + len(line) > self._most_bytes:
                beyond += 1
            else:
                fitting.append(line)
                end += len(line)
        if not fitting:
            return Written(beyond)
        if self._torn and _ends_inside_a_line(self.path):
            fitting[0] = b"\n" + fitting[0]
        try:
            written = os.write(file, b"".join(fitting))
        except OSError as error:
            self.close()
            return Written(beyond, len(fitting), error=error)
        whole, kept = 0, 0
        while whole < len(fitting) and kept + len(fitting[whole]) <= written:
            kept += len(fitting[whole])
            whole += 1
        self._torn = kept != written
        if self._sync_each:
            self.sync()
        if whole == len(fitting):
            return Written(beyond)
        with contextlib.suppress(OSError):
            if os.fstat(file).st_size == size + written:
                os.ftruncate(file, size + kept)
            self.close()
        full = OSError(errno.ENOSPC, "there was room for only part of the lines", self.path)
        return Written(beyond, len(fitting) - whole, error=full)

    def _append_parts(self, file: int, lines: deque[bytes]) -> Written:
        """Writes as much as a pipe or device takes at this moment."""
        beyond = 0
        while lines:
            if len(lines[0]) > self._most_bytes:
                lines.popleft()
                beyond += 1
                continue
            try:
                self._offset += os.write(file, memoryview(lines[0])[self._offset :])
            except BlockingIOError:
                return Written(beyond, stalled=True)
            except BrokenPipeError:
                self.close()
                return Written(beyond, self._give_up_begun(lines), stalled=True)
            if self._offset >= len(lines[0]):
                lines.popleft()
                self._offset = 0
        return Written(beyond)

    def _give_up_begun(self, lines: deque[bytes]) -> int:
        """Lets the next reader begin with a whole line."""
        begun, self._offset = self._offset, 0
        if begun:
            lines.popleft()
        return int(begun > 0)


class _NoReader(Exception):  # noqa: N818 - nothing failed
    """Nobody has opened the pipe to read it."""


def _ends_inside_a_line(path: str) -> bool:
    """Returns whether a file ends with half a line: its writer was killed, or the disk was full.

    A line that another process is writing at this moment may be seen half as well: that one is whole a moment later.
    """
    if not _lacks_an_end(path):
        return False
    time.sleep(SETTLING_SECONDS)
    return _lacks_an_end(path)


def _lacks_an_end(path: str) -> bool:
    try:
        if not os.path.isfile(path) or not os.path.getsize(path):
            return False
        with open(path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:
        return False
