"""Time of this process by category, and of the run that the process is an attempt of."""

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxobs.base.process import started
from jaxobs.facts.wall import TIME_CATEGORIES, RunState, TimeState
from jaxobs.state.checkpoints import Checkpoints, Mark
from jaxobs.state.host_work import HostMeter
from jaxobs.state.wall import Wall


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


class Runs:
    """The processes before this one, as far as their files are known: see `jaxobs.recorder.predecessors`."""

    def __init__(self) -> None:
        self.id: str | None = None
        """The run that this process is an attempt of, if any."""
        self.earlier = Earlier()
        self.path: str | None = None
        self.last_exit = ""
        """How the process before this one ended: one of `LAST_EXITS`, or empty where that is unknown."""


def unsaved_work(wall: Wall, checkpoints: Checkpoints) -> Mark:
    """Returns the work that no complete checkpoint holds."""
    latest = checkpoints.latest
    return Mark(max(0, wall.steps - latest.steps), max(0.0, wall.seconds()["step"] - latest.step_seconds))


def time_state(wall: Wall, checkpoints: Checkpoints, runs: Runs, meter: HostMeter | None = None) -> TimeState:
    """Returns the account of the time up to now."""
    seconds = wall.seconds()
    total = sum(seconds.values())
    run = None if runs.id is None else _run_state(runs.id, runs.earlier, wall, checkpoints, seconds)
    lost = {name: value for name, value in (seconds if run is None else run.seconds).items() if name != "step"}
    if run is not None:
        lost |= {"down": run.down_seconds, "redone": run.redone_seconds or 0.0}
    host = (meter or HostMeter()).frozen(wall.began + seconds["init"] if seconds["step"] > 0.0 else None)
    held = {"callbacks": sum(each.seconds for each in host.callbacks), "pauses": host.step_pause_seconds}
    recent = wall.lately.added(total, seconds | held | {"evaluations": wall.evaluations})[1]
    host = dataclasses.replace(host, recent={name: recent.pop(name) for name in held})
    operations = checkpoints.frozen()
    return TimeState(
        seconds=seconds, counted=wall.counted(seconds), category=wall.category,
        evaluations=int(recent.pop("evaluations")), recent=recent, wall_seconds=total, started=started(),
        steps=wall.steps, goodput=seconds["step"] / total if seconds["step"] > 0.0 and total > 0.0 else None,
        lost={name: value for name, value in sorted(lost.items(), key=lambda each: -each[1]) if value > 0.0},
        checkpoints=operations,
        checkpoint_bytes=dict(checkpoints.bytes),
        checkpoint_failures=dict.fromkeys(operations, 0) | checkpoints.failures,
        checkpoint_line=max(checkpoints.lines.copy(), key=checkpoints.lines.__getitem__, default=None),
        serves=wall.serves, answering=wall.answering, run=run, host=host,
    )  # fmt: skip


def _run_state(
    run_id: str, earlier: Earlier, wall: Wall, checkpoints: Checkpoints, now: Mapping[str, float]
) -> RunState:
    seconds = {name: earlier.seconds.get(name, 0.0) + now[name] for name in TIME_CATEGORIES}
    total = sum(seconds.values()) + earlier.down_seconds
    known = earlier.checkpoints + checkpoints.complete > 0
    redone = earlier.redone_seconds if known else 0.0
    unsaved = unsaved_work(wall, checkpoints)
    return RunState(
        id=run_id, attempt=earlier.attempts + 1, since=time.time() - total, wall_seconds=total, seconds=seconds,
        down_seconds=earlier.down_seconds, redone_seconds=redone if known else None,
        redone_steps=earlier.redone_steps if known else None, unsaved_seconds=unsaved.step_seconds,
        unsaved_steps=unsaved.steps,
        goodput=max(0.0, seconds["step"] - redone) / total if seconds["step"] > 0.0 and total > 0.0 else None,
    )  # fmt: skip
