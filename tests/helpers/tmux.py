"""A terminal that a test can type into and look at."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers.requirements import program


class Tmux:
    """A terminal that a test can type into and look at."""

    def __init__(self, folder: Path, width: int, height: int) -> None:
        # Relative: the path of a socket must be shorter than many a temporary folder's.
        self._base, self._folder = ["tmux", "-S", "tmux", "-f", os.devnull], folder
        self._run("new-session", "-d", "-x", str(width), "-y", str(height), "bash --norc --noprofile")

    def _run(self, *arguments: str) -> str:
        # Without the COLUMNS and LINES that readline, which pytest imports, puts into the environment.
        env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        command = [*self._base, *arguments]
        return subprocess.run(command, cwd=self._folder, check=True, capture_output=True, text=True, env=env).stdout

    def type(self, *keys: str) -> None:
        """Presses keys."""
        self._run("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        """Changes the window."""
        self._run("resize-window", "-x", str(width), "-y", str(height))

    def screen(self) -> str:
        return self._run("capture-pane", "-p")

    def await_text(self, wanted: str, seconds: float = 120.0) -> str:
        """The screen as soon as it holds the pattern."""
        end = time.monotonic() + seconds
        while not re.search(wanted, screen := self.screen()):
            assert time.monotonic() < end, f"{wanted!r} did not appear in:\n{screen}"
            time.sleep(0.1)
        return screen

    def close(self) -> None:
        """Ends the terminal and what runs in it."""
        self._run("kill-server")


@contextmanager
def terminal(folder: Path, width: int = 80, height: int = 24) -> Iterator[Tmux]:
    """A terminal with a shell in it that says `ready> `."""
    program("tmux")
    opened = Tmux(folder, width, height)
    try:
        opened.type("PS1='ready> '; stty -a | grep -o ' icanon'", "Enter")
        opened.await_text("ready> ")
        yield opened
    finally:
        opened.close()
