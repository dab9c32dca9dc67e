"""A file of lines that is kept in several: `events.jsonl` is written, `events.jsonl.1` was before it, and so on.

Each step is a rename, so that a reader sees whole files, and a process that writes to the file that was renamed loses
nothing: it notices before its next line. Processes that share a file rotate it under a lock of the system.
"""

import contextlib
import errno
import io
import os
import re
import time
from collections.abc import Iterable, Iterator
from typing import IO, BinaryIO

_LOCK_SECONDS = 1.0
"""How long a writer waits while another process rotates."""


def paths(path: str | os.PathLike[str]) -> list[str]:
    """Returns the files of a set, the oldest first; the one that is written comes last."""
    current = os.fspath(path)
    return [each for _, each in sorted(_rotated(current), reverse=True)] + [current]


def total_size(path: str | os.PathLike[str]) -> int:
    """Returns bytes of a set; files that are gone count nothing."""
    size = 0
    for file in paths(path):
        with contextlib.suppress(OSError):
            size += os.stat(file).st_size
    return size


def without_parts(given: Iterable[str]) -> list[str]:
    """Returns the paths, each once, without those that are read with another one of them."""
    unique = list(dict.fromkeys(given))
    parts = {part for each in unique for part in paths(each)[:-1]}
    return [each for each in unique if each not in parts]


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens all lines of a set as one file, the oldest first; raises `OSError` if none can be read."""
    current = os.fspath(path)
    with contextlib.ExitStack() as stack:
        files: list[IO[bytes]] = []
        seen: set[tuple[int, int]] = set()
        newest = 0
        # Upwards, as files are renamed: one that is renamed meanwhile is met again, and left out then.
        number, highest = 0, _highest(current)
        while number <= highest:
            with contextlib.suppress(FileNotFoundError):
                file = stack.enter_context(open(_name(current, number), "rb"))
                info = os.fstat(file.fileno())
                if files and (info.st_dev, info.st_ino) not in seen:
                    newest = _place(current, files[0].fileno(), newest, highest)
                # Below the newest are files that were begun meanwhile, or one that is renamed just now and met again.
                if (info.st_dev, info.st_ino) not in seen and number >= newest:
                    newest = newest if files else number
                    seen.add((info.st_dev, info.st_ino))
                    files.append(file)
            number += 1
            highest = max(highest, _highest(current)) if number > highest else highest
        if not files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), current)
        if len(files) == 1:
            yield files[0]  # type: ignore[misc]
        else:
            yield io.BufferedReader(_Chain(files[::-1]), 2**16)


class _Chain(io.RawIOBase):
    """Files one after the other, each of whole lines."""

    def __init__(self, files: list[IO[bytes]]) -> None:
        self._files = files
        self._last = b"\n"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while self._files:
            piece = self._files[0].read(len(buffer))
            if not piece:
                self._files.pop(0)
                if self._last == b"\n":
                    continue
                piece = b"\n"  # a process was killed inside its last line
            self._last = piece[-1:]
            buffer[: len(piece)] = piece
            return len(piece)
        return 0


def _rotated(path: str) -> list[tuple[int, str]]:
    """Returns the older files, with their numbers."""
    folder, name = os.path.split(path)
    pattern = re.compile(re.escape(name) + r"\.([1-9]\d{0,2}|1000)")
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    return [(int(found[1]), os.path.join(folder, each)) for each in names if (found := pattern.fullmatch(each))]


def _name(path: str, number: int) -> str:
    return f"{path}.{number}" if number else path


def _place(path: str, file: int, least: int, highest: int) -> int:
    """Returns the number of an open file, which was `least` and can only have grown; beyond all if it was removed."""
    number = least
    while not _is_at(_name(path, number), file):
        number += 1
        if number > highest:
            highest = max(highest, _highest(path))
            if number > highest:
                break
    return number


def _highest(path: str) -> int:
    return max((number for number, _ in _rotated(path)), default=0)


def rotate(path: str, file: int, keep: int) -> int:
    """Renames the file that is written, and those before it.

    Args:
      file: its descriptor in this process; if it is not at `path` any more, another process was faster.
      keep: older files that stay.

    Returns:
      How many files were removed.

    Raises:
      OSError: it cannot be renamed.
    """
    with _locked(path) as has_lock:
        if not has_lock or not _is_at(path, file):
            return 0
        older = dict(_rotated(path))
        removed = [each for number, each in older.items() if number >= keep]
        for number in range(keep - 1, 0, -1):
            if number in older:
                os.replace(older[number], f"{path}.{number + 1}")
        for name in removed:
            if name != f"{path}.{keep}":  # there were more before
                os.unlink(name)
        os.replace(path, f"{path}.1")
        return len(removed)


def _is_at(path: str, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _locked(path: str) -> Iterator[bool]:
    """Returns whether this process alone may rename now. The lock ends with the process, however that ends."""
    if os.name != "posix":
        yield True
        return
    import fcntl

    folder, name = os.path.split(path)
    lock = os.open(os.path.join(folder, f".{name}.rotate"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    yield False
                    return
                time.sleep(0.01)
            except OSError:  # no locks here: at worst, a file is renamed early
                yield True
                return
            else:
                yield True
                return
    finally:
        os.close(lock)
