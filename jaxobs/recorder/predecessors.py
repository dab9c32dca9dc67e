"""How the process before this one ended: a small file that each process leaves for the next one.

The file, `jaxobs-end-<program>.json`, is beside the event log; on processes after the first of a job their index is
part of its name. It says `running` until the process ends in a way that it notices. If the next process finds
`running` and nobody there, the process was killed: with SIGKILL, by the kernel for lack of memory, or with its machine.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
import urllib.parse
from dataclasses import asdict, dataclass
from pathlib import Path

from jaxobs.base import json_lines, private_files
from jaxobs.facts.process import LAST_EXITS
from jaxobs.state.process_age import process_age

VERSION = 1
RUNNING = "running"
MOST_NAME = 80
MOST_BYTES = 2**16
MOST_FIGURE = 1e15
_SAME_START = 2.0
"""Seconds within which two readings of a process's start are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One process, as its file has it."""

    pid: int
    hostname: str
    started: float
    end: str = RUNNING
    """`running`, or one of `LAST_EXITS`."""
    group: str = ""
    """The control group whose kills are counted."""
    kills: int = 0
    """Processes of that group that the kernel had killed for lack of memory, up to now."""

    def is_alive(self) -> bool:
        """Whether it runs on this machine."""
        if self.hostname != socket.gethostname():
            return False
        age = process_age(self.pid)
        return age is not None and abs(time.time() - age - self.started) < _SAME_START

    def ended(self, now: Life) -> str:
        """How it ended, as the next process knows."""
        if self.end != RUNNING:
            return self.end
        same = (self.hostname, self.group) == (now.hostname, now.group) and self.group != ""
        return "out_of_memory" if same and now.kills > self.kills else "killed"


class Ends:
    """What is known of the process before this one."""

    def __init__(self) -> None:
        self.last_exit = ""


def file_name(program: str | None, process_index: int) -> str:
    """The file of a program's processes."""
    shown = urllib.parse.quote(os.path.basename(program or "python"), safe=" ")[:MOST_NAME]
    return f"jaxobs-end-{shown}{f'-{process_index}' if process_index else ''}.json"


def this_life(started: float, end: str = RUNNING) -> Life:
    """This process."""
    group, kills = memory_kills()
    return Life(pid=os.getpid(), hostname=socket.gethostname(), started=started, end=end, group=group, kills=kills)


def memory_kills(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> tuple[str, int]:
    """This process's control group, and how many in it the kernel has killed for lack of memory; of version 2 alone."""
    try:
        path = next(line[3:] for line in Path(own).read_text().splitlines() if line.startswith("0::")).lstrip("/")
        events = dict(line.split() for line in Path(root, path, "memory.events").read_text().splitlines())
        return f"/{path}", int(events["oom_kill"])
    except (OSError, StopIteration, ValueError, KeyError):
        return "", 0


def read(path: str) -> Life | None:
    """The last process that a file names; None where there is none.

    Raises:
      ValueError: it holds something else.
      OSError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            body = json_lines.loads(file.read(MOST_BYTES))
    except FileNotFoundError:
        return None
    try:
        if body["version"] != VERSION:
            raise ValueError(f"its version is {body['version']!r}, not {VERSION}")
        return _checked(Life(**body["process"]))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _checked(life: Life) -> Life:
    """The process, if its figures are some: a file may be damaged, or made to do harm."""
    texts: tuple[object, ...] = (life.hostname, life.group)
    if (
        not all(isinstance(each, str) for each in texts)
        or life.end not in (RUNNING, *LAST_EXITS)
        or not all(type(each) is int and 0 <= each < MOST_FIGURE for each in (life.pid, life.kills))
        or type(life.started) not in (int, float)
        or not 0 <= life.started < MOST_FIGURE
    ):
        raise ValueError("a figure is not valid")
    return life


def write(path: str, life: Life) -> None:
    """Replaces the file, atomically.

    Raises:
      OSError: it cannot be written.
    """
    draft = f"{path}.{os.getpid()}-{secrets.token_hex(4)}"
    try:
        with open(draft, "x", encoding="utf-8") as file:
            private_files.replace_mode(file.fileno(), path)
            json.dump({"version": VERSION, "process": asdict(life)}, file, indent=1)
            file.write("\n")
        os.replace(draft, path)
    finally:
        if os.path.exists(draft):
            os.remove(draft)
