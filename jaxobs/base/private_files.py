"""Files for their owner alone: what jaxobs writes may hold texts of exceptions, host names and the program's own names.

A new file gets mode 0600 and a new folder 0700, whatever the umask is. What is there already keeps its mode: its owner
has chosen it.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterable

FILE_MODE, FOLDER_MODE = 0o600, 0o700


def make_folders(path: str | os.PathLike[str]) -> None:
    """Makes a folder and those above it that are missing; raises `OSError` if something has its name."""
    path = os.fspath(path)
    if not path or os.path.isdir(path):
        return
    parent = os.path.dirname(path.rstrip(os.sep))
    if parent != path:
        make_folders(parent)
    try:
        os.mkdir(path, FOLDER_MODE)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    else:
        os.chmod(path, FOLDER_MODE)  # a umask may have taken the owner's own rights


def open_file(path: str | os.PathLike[str], flags: int, mode: int = FILE_MODE) -> int:
    """Opens a file by `os.open`, makes it where it is missing, and returns its descriptor.

    Args:
      flags: those of `os.open`, without those that create.

    Raises:
      OSError: as `os.open` does.
    """
    flags |= getattr(os, "O_CLOEXEC", 0)
    try:
        file = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return os.open(path, flags | os.O_CREAT, mode)
    _set_mode(file, mode)
    return file


def opener(path: str, flags: int) -> int:
    """Opens a new private file, for `open(path, "x", opener=opener)`."""
    file = os.open(path, flags, FILE_MODE)
    _set_mode(file, FILE_MODE)
    return file


def replace_mode(file: int, path: str | os.PathLike[str], mode: int = FILE_MODE) -> None:
    """Gives a draft the mode of the file that it is to replace, or `mode` where there is none."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        mode = os.stat(path).st_mode & 0o777
    _set_mode(file, mode)


def write_whole(path: str | os.PathLike[str], pieces: Iterable[bytes], mode: int = FILE_MODE) -> None:
    """Writes a file whole or not at all, with `mode` if it is new; to a pipe piece by piece. Raises `OSError`."""
    path = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as stream:
            stream.writelines(pieces)
        return
    folder, name = os.path.split(path)
    handle, draft = tempfile.mkstemp(dir=folder or ".", prefix=f".{name}.")
    try:
        with open(handle, "wb") as file:
            file.writelines(pieces)
            replace_mode(file.fileno(), path, mode)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


def _set_mode(file: int, mode: int) -> None:
    # Some file systems have no modes; the file is still of use there.
    if hasattr(os, "fchmod"):
        with contextlib.suppress(OSError):
            os.fchmod(file, mode)
