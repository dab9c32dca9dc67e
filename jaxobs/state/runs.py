"""A run over several processes: what its earlier attempts took, kept in a small file from one to the next.

The file, `jaxobs-run-<id>.json`, stands beside the event log; on processes after the first of a job their index is
part of its name. It is rewritten on the slow tick and at the end, so that of an attempt that was killed all but its
last seconds are known; these count as time in which none ran.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from jaxobs.base import json_lines, private_files
from jaxobs.facts.wall import TIME_CATEGORIES, RunState, TimeState
from jaxobs.state.checkpoints import Checkpoints, Mark
from jaxobs.state.process_age import process_age, started
from jaxobs.state.wall import Wall

VERSION = 1
MOST_NAME = 120
MOST_BYTES = 2**20
MOST_FIGURE = 1e15
_SAME_START = 2.0
"""Seconds within which two tellings of a process's start are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The attempts of a run before this one, all together."""

    attempts: int = 0
    since: float | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    down_seconds: float = 0.0
    redone_seconds: float = 0.0
    redone_steps: int = 0
    checkpoints: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One process of a run, as its file has it."""

    earlier: Earlier
    pid: int
    hostname: str
    started: float
    """When the process was started."""
    updated: float
    """When this was known."""
    seconds: Mapping[str, float]
    unsaved_seconds: float
    unsaved_steps: int
    checkpoints: int

    def then(self, started: float) -> Earlier:
        """What the next attempt, started then, has before it."""
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
        """Whether its process runs on this machine."""
        if self.hostname != socket.gethostname():
            return False
        age = process_age(self.pid)
        return age is not None and abs(time.time() - age - self.started) < _SAME_START


class Runs:
    """Which run this process is an attempt of, if of any."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.earlier = Earlier()
        self.path: str | None = None


def file_name(run_id: str, process_index: int) -> str:
    """The file of a run: `jaxobs-run-<id>.json`, the id such that it can be part of a name."""
    shown = urllib.parse.quote(run_id, safe=" ")[:MOST_NAME]
    return f"jaxobs-run-{shown}{f'-{process_index}' if process_index else ''}.json"


def read(path: str) -> Attempt | None:
    """The latest attempt that a file tells of; None where there is none.

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
        return _checked(Attempt(**{**body["attempt"], "earlier": Earlier(**body["attempt"]["earlier"])}))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _checked(attempt: Attempt) -> Attempt:
    """The attempt, if its figures are some: a file may be damaged, or made to do harm."""
    earlier = attempt.earlier
    seconds = [*attempt.seconds.values(), *earlier.seconds.values(), attempt.started, attempt.updated,
               attempt.unsaved_seconds, earlier.down_seconds, earlier.redone_seconds, earlier.since or 0.0]  # fmt: skip
    counts = (attempt.pid, attempt.unsaved_steps, attempt.checkpoints, earlier.attempts, earlier.redone_steps,
              earlier.checkpoints)  # fmt: skip
    texts: tuple[object, ...] = (attempt.hostname,)
    if (
        not all(isinstance(each, str) for each in texts)
        or not all(type(each) in (int, float) and 0 <= each < MOST_FIGURE for each in seconds)
        or not all(type(each) is int and 0 <= each < MOST_FIGURE for each in counts)
    ):
        raise ValueError("a figure is not valid")
    return attempt


def write(path: str, run_id: str, attempt: Attempt) -> None:
    """Puts an attempt in the place of what a file told before, atomically.

    Raises:
      OSError: it cannot be written.
    """
    draft = f"{path}.{os.getpid()}-{secrets.token_hex(4)}"
    body = {"version": VERSION, "run_id": run_id, "attempt": asdict(attempt)}
    try:
        with open(draft, "x", encoding="utf-8") as file:
            private_files.replace_mode(file.fileno(), path)
            json.dump(body, file, indent=1)
            file.write("\n")
        os.replace(draft, path)
    finally:
        if os.path.exists(draft):
            os.remove(draft)


def this_attempt(wall: Wall, checkpoints: Checkpoints, runs: Runs) -> Attempt:
    """This process as the file shall have it."""
    seconds, now, unsaved = wall.seconds(), time.time(), unsaved_work(wall, checkpoints)
    return Attempt(
        earlier=runs.earlier,
        pid=os.getpid(),
        hostname=socket.gethostname(),
        started=now - sum(seconds.values()),
        updated=now,
        seconds=seconds,
        unsaved_seconds=unsaved.step_seconds,
        unsaved_steps=unsaved.steps,
        checkpoints=checkpoints.complete,
    )


def unsaved_work(wall: Wall, checkpoints: Checkpoints) -> Mark:
    """What no complete checkpoint holds."""
    latest = checkpoints.latest
    return Mark(max(0, wall.steps - latest.steps), max(0.0, wall.seconds()["step"] - latest.step_seconds))


def time_state(wall: Wall, checkpoints: Checkpoints, runs: Runs) -> TimeState:
    """Where the time went, at this moment."""
    seconds = wall.seconds()
    total = sum(seconds.values())
    run = None if runs.id is None else _run_state(runs.id, runs.earlier, wall, checkpoints, seconds)
    lost = {name: value for name, value in (seconds if run is None else run.seconds).items() if name != "step"}
    if run is not None:
        lost |= {"down": run.down_seconds, "redone": run.redone_seconds or 0.0}
    return TimeState(
        seconds=seconds,
        counted=wall.counted(seconds),
        category=wall.category,
        wall_seconds=total,
        started=started(),
        steps=wall.steps,
        goodput=seconds["step"] / total if seconds["step"] > 0.0 and total > 0.0 else None,
        lost={name: value for name, value in sorted(lost.items(), key=lambda each: -each[1]) if value > 0.0},
        checkpoints=checkpoints.frozen(),
        run=run,
    )


def _run_state(
    run_id: str, earlier: Earlier, wall: Wall, checkpoints: Checkpoints, now: Mapping[str, float]
) -> RunState:
    seconds = {name: earlier.seconds.get(name, 0.0) + now[name] for name in TIME_CATEGORIES}
    total = sum(seconds.values()) + earlier.down_seconds
    known = earlier.checkpoints + checkpoints.complete > 0
    redone = earlier.redone_seconds if known else 0.0
    unsaved = unsaved_work(wall, checkpoints)
    return RunState(
        id=run_id,
        attempt=earlier.attempts + 1,
        since=time.time() - total,
        wall_seconds=total,
        seconds=seconds,
        down_seconds=earlier.down_seconds,
        redone_seconds=redone if known else None,
        redone_steps=earlier.redone_steps if known else None,
        unsaved_seconds=unsaved.step_seconds,
        unsaved_steps=unsaved.steps,
        goodput=max(0.0, seconds["step"] - redone) / total if seconds["step"] > 0.0 and total > 0.0 else None,
    )
