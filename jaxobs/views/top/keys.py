"""Keys from a terminal: the bytes that it sends for them, and their names.

A key is its character, or one of: `up`, `down`, `left`, `right`, `pageup`, `pagedown`, `home`, `end`, `enter`, `esc`,
`tab`, `backtab`, `backspace`, `ctrl-c`, `ctrl-d`, `ctrl-u`.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
import time
from collections.abc import Iterator
from typing import Any

_ESCAPE_SECONDS = 0.05
"""How long the rest of a sequence may take: then an escape is the key Esc."""

_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~])")
_BEGUN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")

_BY_LETTER = {
    "A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end", "M": "enter", "Z": "backtab",
}  # fmt: skip
_BY_NUMBER = {"1": "home", "7": "home", "4": "end", "8": "end", "5": "pageup", "6": "pagedown"}
_BY_CHARACTER = {
    "\t": "tab", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\x03": "ctrl-c",
    "\x04": "ctrl-d", "\x15": "ctrl-u", "\x02": "pageup", "\x06": "pagedown", "\x10": "up", "\x0e": "down",
}  # fmt: skip


def decode(data: bytes, *, final: bool = False) -> tuple[list[str], bytes]:
    """The keys in what a terminal sent, and what may be the beginning of one more; not any of it if `final`."""
    keys: list[str] = []
    while data:
        if not data.startswith(b"\x1b"):
            count = _length(data[0])
            if len(data) < count and not final:
                break
            character, data = data[:count].decode("utf-8", "ignore"), data[count:]
            key = _BY_CHARACTER.get(character, character)
            keys += [key] if key.isprintable() and key else []
        elif found := _SEQUENCE.match(data):
            data = data[found.end() :]
            keys += _named(found[0].decode("ascii"))
        elif _BEGUN.match(data) and not final:
            break
        else:
            keys.append("esc")
            data = data[1:]
    return keys, data


def _length(first: int) -> int:
    """Bytes of a character in UTF-8, by its first one."""
    return 4 if first >= 0xF0 else 3 if first >= 0xE0 else 2 if first >= 0xC0 else 1


def _named(sequence: str) -> list[str]:
    """The key of a whole sequence; none for one that means nothing here."""
    number = sequence[2:-1].partition(";")[0]
    name = _BY_NUMBER.get(number) if sequence.endswith("~") else _BY_LETTER.get(sequence[-1])
    return [name] if name else []


class Keys:
    """Keys from the terminal, without an echo; where they cannot be read, only Ctrl-C ends the view."""

    def __enter__(self) -> Keys:
        self._rest = b""
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """The terminal as it was before, for as long as this lasts."""
        self._give_back()
        try:
            yield
        finally:
            self._take()

    def _take(self) -> None:
        self._saved: list[Any] | None = None
        with contextlib.suppress(ImportError, OSError, ValueError):
            import termios
            import tty

            with contextlib.suppress(termios.error):  # no terminal: `jaxobs top < /dev/null`
                self._input = sys.stdin.fileno()
                self._saved = termios.tcgetattr(self._input)
                tty.setcbreak(self._input)

    def _give_back(self) -> None:
        if self._saved is not None:
            import termios

            termios.tcsetattr(self._input, termios.TCSADRAIN, self._saved)

    def pressed(self, timeout: float) -> list[str]:
        """The keys pressed within `timeout` seconds, as soon as there are any."""
        if self._saved is None:
            time.sleep(timeout)
            return []
        if not self._readable(timeout):
            return []
        keys, self._rest = decode(self._rest + self._read())
        while self._rest and self._readable(_ESCAPE_SECONDS):
            more, self._rest = decode(self._rest + self._read())
            keys += more
        more, self._rest = decode(self._rest, final=True)
        return keys + more

    def _readable(self, timeout: float) -> bool:
        return bool(select.select([self._input], [], [], timeout)[0])

    def _read(self) -> bytes:
        # End of input (the terminal was closed) counts as Ctrl-D.
        return os.read(self._input, 1024) or b"\x04"
