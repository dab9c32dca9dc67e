"""A claim on a file that one process at a time may write: another one learns whose it is.

The claim is a lock of the system on a hidden file next to it, and ends with the process, however that ends.
"""

import contextlib
import os
import platform


class Claim:
    """This process's claim on a path, or the word of who has it."""

    def __init__(self, path: str) -> None:
        folder, name = os.path.split(path)
        self._path = os.path.join(folder, f".{name}.lock")
        self._file: int | None = None
        self._owner = os.getpid()

    def take(self) -> str | None:
        """Claims the path; where another process has done so, who that is: `process PID on HOST`.

        A file system without locks, or one that cannot be written, has no claims.
        """
        if os.name != "posix":
            return None
        import fcntl

        with contextlib.suppress(OSError):
            for _ in range(3):
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except (BlockingIOError, PermissionError):
                    holder = os.read(file, 200).decode(errors="replace").strip()
                    os.close(file)
                    return holder or "another process"
                except OSError:
                    os.close(file)
                    return None
                if self._is_there(file):
                    os.truncate(file, 0)
                    os.write(file, f"process {os.getpid()} on {platform.node()}\n".encode())
                    self._file = file
                    return None
                os.close(file)  # its owner has ended meanwhile, and removed it
        return None

    def _is_there(self, file: int) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(file))
        except FileNotFoundError:
            return False

    def end(self) -> None:
        """Gives the path free; nothing in a forked child, which has no claim."""
        file, self._file = self._file, None
        if file is not None and os.getpid() == self._owner:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            with contextlib.suppress(OSError):
                os.close(file)
