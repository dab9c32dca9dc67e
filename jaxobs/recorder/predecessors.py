"""Small files that a process leaves for the next one: how it ended, and what its run has taken so far.

`jaxobs-end-<program>.json` and `jaxobs-run-<id>.json` are next to the event log; on processes after the first of a job
their index is part of the name. The first says `running` until the process ends in a way that it notices: if the next
process finds `running` and nobody there, the process was killed: with SIGKILL, by the kernel for lack of memory, or
with its machine. The second is rewritten on the slow tick and at the end, so that of a killed attempt all but its last
seconds are known; these count as time in which no attempt ran.
"""

from __future__ import annotations

import json
import os
import platform
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from jaxobs.base import json_lines, private_files
from jaxobs.base.process import process_age
from jaxobs.facts.process import LAST_EXITS
from jaxobs.facts.wall import TIME_CATEGORIES
from jaxobs.state.checkpoints import Checkpoints
from jaxobs.state.runs import Earlier, Runs, unsaved_work
from jaxobs.state.wall import Wall

VERSION = 1
RUNNING = "running"
MOST_NAME = 120
MOST_BYTES = 2**20
MOST_FIGURE = 1e15
_SAME_START = 2.0
"""Seconds within which two readings of a process's start are the same."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A process, as its file has it."""

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
        """Returns whether the process runs on this machine."""
        return _is_alive(self.pid, self.hostname, self.started)

    def ended(self, now: Life) -> str:
        """How it ended, as the next process knows."""
        if self.end != RUNNING:
            return self.end
        same = (self.hostname, self.group) == (now.hostname, now.group) and self.group != ""
        return "out_of_memory" if same and now.kills > self.kills else "killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A process of a run, as its file has it."""

    earlier: Earlier
    pid: int
    hostname: str
    started: float
    """Moment the process was started."""
    updated: float
    """Moment this was known."""
    seconds: Mapping[str, float]
    unsaved_seconds: float
    unsaved_steps: int
    checkpoints: int

    def then(self, started: float) -> Earlier:
        """Returns the earlier attempts of the next one, which is started then."""
        before = self.earlier
        return Earlier(
            attempts=before.attempts + 1,
            since=self.started if before.since is None else before.since,
            seconds={name: before.seconds.get(name, 0.0) + self.seconds.get(name, 0.0) for name in TIME_CATEGORIES},
            down_seconds=before.down_seconds + max(0.0, started - self.updated),
            redone_seconds=before.redone_seconds + self.unsaved_seconds,
            redone_steps=before.redone_steps + self.unsaved_steps,
            checkpoints=before.checkpoints + self.checkpoints,
        )

    def is_alive(self) -> bool:
        """Returns whether the process of the attempt runs on this machine."""
        return _is_alive(self.pid, self.hostname, self.started)


def _is_alive(pid: int, hostname: str, started: float) -> bool:
    if hostname != platform.node():
        return False
    age = process_age(pid)
    return age is not None and abs(time.time() - age - started) < _SAME_START


def end_file_name(program: str | None, process_index: int) -> str:
    """Returns the name of the file in which a program's processes leave how they ended."""
    return _file_name("end", os.path.basename(program or "python"), 80, process_index)


def run_file_name(run_id: str, process_index: int) -> str:
    """Returns the name of the file in which the attempts of a run leave what they took."""
    return _file_name("run", run_id, MOST_NAME, process_index)


def _file_name(kind: str, name: str, most: int, process_index: int) -> str:
    shown = urllib.parse.quote(name, safe=" ")[:most]
    return f"jaxobs-{kind}-{shown}{f'-{process_index}' if process_index else ''}.json"


def this_life(started: float, end: str = RUNNING) -> Life:
    """This process."""
    group, kills = memory_kills()
    return Life(pid=os.getpid(), hostname=platform.node(), started=started, end=end, group=group, kills=kills)


def memory_kills(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> tuple[str, int]:
    """This process's control group, and how many in it the kernel has killed for lack of memory; of version 2 alone."""
    try:
        path = next(line[3:] for line in Path(own).read_text().splitlines() if line.startswith("0::")).lstrip("/")
        events = dict(line.split() for line in Path(root, path, "memory.events").read_text().splitlines())
        return f"/{path}", int(events["oom_kill"])
    except (OSError, StopIteration, ValueError, KeyError):
        return "", 0


def this_attempt(wall: Wall, checkpoints: Checkpoints, runs: Runs) -> Attempt:
    """This process as the file shall have it."""
    seconds, now, unsaved = wall.seconds(), time.time(), unsaved_work(wall, checkpoints)
    return Attempt(
        earlier=runs.earlier, pid=os.getpid(), hostname=platform.node(), started=now - sum(seconds.values()),
        updated=now, seconds=seconds, unsaved_seconds=unsaved.step_seconds, unsaved_steps=unsaved.steps,
        checkpoints=checkpoints.complete,
    )  # fmt: skip


def read_life(path: str) -> Life | None:
    """Returns the last process that a file names, None without a file; raises `ValueError` or `OSError`."""
    return _read(path, lambda body: _checked_life(Life(**body["process"])))


def read_attempt(path: str) -> Attempt | None:
    """Returns the latest attempt that a file names, None without a file; raises `ValueError` or `OSError`."""

    def parsed(body: Any) -> Attempt:
        fields = body["attempt"]
        return _checked_attempt(Attempt(**{**fields, "earlier": Earlier(**fields["earlier"])}))

    return _read(path, parsed)


def _read(path: str, parsed: Callable[[Any], T]) -> T | None:
    try:
        with open(path, "rb") as file:
            body = json_lines.loads(file.read(MOST_BYTES))
    except FileNotFoundError:
        return None
    try:
        if body["version"] != VERSION:
            raise ValueError(f"its version is {body['version']!r}, not {VERSION}")
        return parsed(body)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _checked_life(life: Life) -> Life:
    _check(texts=(life.hostname, life.group), counts=(life.pid, life.kills), figures=(life.started,))
    if life.end not in (RUNNING, *LAST_EXITS):
        raise ValueError("a figure is not valid")
    return life


def _checked_attempt(attempt: Attempt) -> Attempt:
    earlier = attempt.earlier
    _check(
        texts=(attempt.hostname,),
        counts=(attempt.pid, attempt.unsaved_steps, attempt.checkpoints, earlier.attempts, earlier.redone_steps,
                earlier.checkpoints),
        figures=(*attempt.seconds.values(), *earlier.seconds.values(), attempt.started, attempt.updated,
                 attempt.unsaved_seconds, earlier.down_seconds, earlier.redone_seconds, earlier.since or 0.0),
    )  # fmt: skip
    return attempt


def _check(*, texts: tuple[object, ...], counts: tuple[object, ...], figures: tuple[object, ...]) -> None:
    """Refuses values of other types and figures out of bounds: a file may be damaged, or made to do harm."""
    for kinds, values in (((int,), counts), ((int, float), figures)):
        for value in values:
            if type(value) not in kinds or not (isinstance(value, int | float) and 0 <= value < MOST_FIGURE):
                raise ValueError("a figure is not valid")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a figure is not valid")


def write_life(path: str, life: Life) -> None:
    """Replaces the file of a program's ends, atomically; raises `OSError` if it cannot be written."""
    _write(path, {"version": VERSION, "process": asdict(life)})


def write_attempt(path: str, run_id: str, attempt: Attempt) -> None:
    """Replaces the file of a run, atomically; raises `OSError` if it cannot be written."""
    _write(path, {"version": VERSION, "run_id": run_id, "attempt": asdict(attempt)})


def _write(path: str, body: Mapping[str, Any]) -> None:
    private_files.write_whole(path, [json.dumps(body, indent=1).encode(), b"\n"])
