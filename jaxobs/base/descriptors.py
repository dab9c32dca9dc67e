"""Descriptors that jaxobs keeps open: a program may close them all, and then has its own under their numbers."""

import os
from contextlib import suppress


class Kept:
    """Descriptor of a file that jaxobs has opened."""

    __slots__ = ("_status", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self._status = os.fstat(number)

    def is_ours(self) -> bool:
        """Returns whether the number still stands for that file."""
        with suppress(OSError):
            return os.path.samestat(os.fstat(self.number), self._status)
        return False

    def close(self) -> None:
        """Closes the file, unless the program has done so."""
        if self.is_ours():
            os.close(self.number)
