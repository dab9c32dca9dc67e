"""Parts of a process's time: work, what is ordinary besides, and what lies beyond that, with its place."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jaxobs.facts.inputs import InputState
from jaxobs.facts.loops import HostLine, LoopState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.verdicts import Account
from jaxobs.facts.wall import HostWork, TimeState

ACCOUNTED = 0.8
"""Share of the time since the first step from which on it suffices that steps and evaluation took it."""
COMPILING = 15.0
"""Seconds that compiling takes in many a program, however short it runs."""
SHORT = 5.0
"""Seconds of anything else but steps, together, that are ordinary: in a young process, or a short one."""
EACH_STEP, FEWEST_STEPS = 1.0, 10
"""Seconds of a line that are not ordinary although they are few, and the steps in which looks saw the line at least:
each step takes them, and a longer run takes more. A `sleep` in the loop itself keeps a pace, and stays ordinary."""
STARTING = 10.0
"""Seconds of which nothing has to be known in a program without steps: it imports, reads data, computes once."""

LABELS = {
    "compile": "tracing and compiling", "input_wait": "waiting for input", "idle": "idle", "checkpoint": "checkpoints",
    "transfer": "moving arrays between the host and the devices", "unattributed": "unknown",
}  # fmt: skip
"""Categories other than steps and evaluation in words; tracing and loading programs are a part of compiling."""

_INTERACTIVE = frozenset((None, "ipython", "ipython3", "IPython", "ipykernel_launcher", "colab_kernel_launcher"))
"""Programs that rest until somebody types; a prompt of Python and `python -c` have no name."""
_UNSAID = {"steps": 0.0, "evaluation": 0.005}
"""Shares up to which work is not named."""
_UNMARKED = ": jaxobs knows no steps and no requests here. Mark them with `jaxobs.step` or `jaxobs.request`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The time since the first step, or the latest minutes of it, in seconds."""

    of: str
    """The span in words."""
    first: str
    """`step` or `evaluation`: the work that it begins with."""
    total: float
    worked: Mapping[str, float]
    """Seconds of steps and of evaluation."""
    rest: Mapping[str, float]
    """Seconds of all else, by the categories in `LABELS`."""
    beyond: Mapping[str, float]
    """The part of `rest` that is not ordinary."""

    @property
    def share(self) -> float:
        """Share of work."""
        return sum(self.worked.values()) / max(self.total, 1e-9)

    @property
    def is_accounted_for(self) -> bool:
        """Whether what is not ordinary is little."""
        return sum(self.beyond.values()) <= (1.0 - ACCOUNTED) * self.total

    @property
    def told(self) -> str:
        """The share of work, in words."""
        return f"{percent(self.share)} of {self.of} went into {' and '.join(self.worked)}"


def spans(snapshot: Snapshot) -> list[Span]:
    """Returns the whole time, and the latest minutes where the process is older than these; none without an account."""
    wall = snapshot.wall
    if wall is None:
        return []
    lately = sum(wall.recent.values())
    found = [_span(wall.seconds, "step" if wall.seconds.get("step") else "evaluation", snapshot)]
    if 0.0 < lately < 0.95 * wall.wall_seconds:
        found.append(_span(wall.recent, found[0].first, snapshot, f"the last {lately / 60:.0f} minutes"))
    return found


def total(snapshot: Snapshot) -> float:
    """Returns the seconds since the first step, or since the process began if there is no account."""
    found = spans(snapshot)
    return found[0].total if found else snapshot.time - snapshot.process.started


def _span(seconds: Mapping[str, float], first: str, snapshot: Snapshot, of: str = "") -> Span:
    total = sum(seconds.values()) - seconds.get("init", 0.0)
    worked = {"steps": seconds.get("step", 0.0), "evaluation": seconds.get("eval", 0.0)}
    worked = {name: spent for name, spent in worked.items() if spent > _UNSAID[name] * total}
    rest = {name: seconds.get(name, 0.0) for name in LABELS}
    rest["compile"] += seconds.get("trace", 0.0) + seconds.get("cache_load", 0.0)
    ordinary = {name: _ordinary(name, bool(worked), snapshot) for name in rest}
    kept = pace(snapshot)
    rest_beside = {name: spent * (1.0 - kept.get(name, 0.0)) for name, spent in rest.items()}
    short = sum(spent for name, spent in rest_beside.items() if ordinary[name] == SHORT)
    each_step = {
        line.category
        for loop in snapshot.loops
        for line in loop.lines
        if line.seconds > EACH_STEP and line.steps >= FEWEST_STEPS and not line.paces
    }
    beyond = {
        each: rest_beside[each]
        for each, most in ordinary.items()
        if (short if most == SHORT else rest_beside[each]) > most or (most == SHORT and each in each_step)
    }
    whole = f"the time since the first {first}" if worked else "the time"
    return Span(of=of or whole, first=first, total=total, worked=worked, rest=rest, beyond=beyond)


def pace(snapshot: Snapshot) -> dict[str, float]:
    """Returns the share of each category in which loops slept to keep their pace, which is ordinary."""
    seconds = {} if snapshot.wall is None else snapshot.wall.seconds
    slept: defaultdict[str, float] = defaultdict(float)
    for line in (each for loop in snapshot.loops for each in loop.lines if each.keeps_pace):
        slept[line.category] += line.seconds
    return {name: min(1.0, spent / seconds[name]) for name, spent in slept.items() if seconds.get(name)}


def account(wall: TimeState, loops: Sequence[LoopState] = ()) -> Account:
    """Returns the account that the verdict rests on."""
    made, host = max((each.steps for each in loops if each.steps_counted), default=0), wall.host or HostWork()
    each_step = {
        "callbacks": sum(each.calls for each in host.callbacks),
        "callback_seconds": sum(each.seconds for each in host.callbacks),
        "pauses": host.step_pauses, "pause_seconds": host.step_pause_seconds,
    }  # fmt: skip
    steps, before = wall.seconds.get("step", 0.0), wall.seconds.get("init", 0.0)
    return Account(
        since=wall.started,
        until=wall.started + wall.wall_seconds,
        seconds={name: seconds for name, seconds in wall.seconds.items() if seconds > 0.0},
        share_in_steps=steps / max(wall.wall_seconds - before, 1e-9) if steps else None,
        each_step={name: value / made for name, value in each_step.items() if value and made},
    )


def _ordinary(category: str, works: bool, snapshot: Snapshot) -> float:
    """Returns the seconds up to which a category is ordinary, `SHORT` those of all that have no others.

    A server and a notebook may rest for any time, and an input may take any time in which the devices have work.
    """
    if category == "input_wait" and any(each.verdict == "compute" for each in _most_waited(snapshot)):
        return math.inf
    if category not in ("idle", "unattributed"):
        return COMPILING if category == "compile" else SHORT
    serves = snapshot.wall is not None and snapshot.wall.serves and not works
    if answered(snapshot) or serves or snapshot.process.program in _INTERACTIVE:
        return math.inf
    return SHORT if works or category == "idle" else STARTING


def where(category: str, seconds: float, snapshot: Snapshot) -> str:
    """Returns the place of a large part of the time, if it is known: the function, the input, or the line."""
    if category == "compile":
        of = {each.name: sum(each.phase_seconds.values()) for each in snapshot.functions}
        of |= {each.function: snapshot.time - each.started for each in snapshot.in_progress}
        most = max(of, key=lambda name: of[name], default=None)
        return f", most of it of `{most}`" if most is not None and of[most] > seconds / 2 else ""
    if category == "input_wait" and snapshot.inputs:
        return f", most of it for `{_most_waited(snapshot)[0].name}`"
    if (found := line_of(category, snapshot)) is not None:
        return f", above all at {found[1].line}"
    return _UNMARKED if category == "unattributed" and not snapshot.loops else ""


def _most_waited(snapshot: Snapshot) -> list[InputState]:
    return sorted(snapshot.inputs, key=lambda each: -each.wait_seconds)[:1]


def answered(snapshot: Snapshot) -> int:
    """Returns how many requests were served."""
    return sum(each.total for each in snapshot.routes)


def percent(share: float | None) -> str:
    """`42 %`."""
    return f"{(share or 0.0) * 100:.0f} %"


class LargePart(NamedTuple):
    """A category of time that holds up a loop that was found, now: in the latest minutes."""

    loop: LoopState
    line: HostLine
    """The line with most of the seconds."""
    seconds: float
    """Seconds since the first step."""
    share: str
    """The share of the latest minutes, in words."""
    is_half: bool
    """Whether the loop is held up for more than half of the time in which nothing compiles."""


def large(snapshot: Snapshot, category: str) -> LargePart | None:
    """Returns a category of time that is neither work nor ordinary, if it is large and its place is known."""
    wall, line = snapshot.wall, line_of(category, snapshot)
    if line is None or wall is None:
        return None
    span = spans(snapshot)[-1]
    held_up = span.beyond.keys() - {"compile"}  # compilations have findings of their own
    same = [name for name in held_up if (other := line_of(name, snapshot)) and other[1].line == line[1].line]
    largest = max(same, key=span.beyond.__getitem__, default=None)  # a line is held up once, for whatever it does
    beyond = sum(span.beyond[name] for name in same)
    if category != largest or beyond <= (1.0 - ACCOUNTED) * span.total:
        return None
    share = f"{percent(beyond / span.total)} of {span.of}"
    seconds = sum(wall.seconds.get(each, 0.0) for each in same)
    is_half = beyond > (span.total - span.rest["compile"]) / 2  # a longer run compiles for a smaller share
    return LargePart(*line, seconds, share, is_half)


def line_of(category: str, snapshot: Snapshot) -> tuple[LoopState, HostLine] | None:
    """Returns the line with most of the seconds of a category, after its loop."""
    lines = [(loop, each) for loop in snapshot.loops for each in loop.lines if each.category == category]
    saves = snapshot.wall.checkpoint_line if snapshot.wall is not None and category == "checkpoint" else None
    if saves is not None and snapshot.loops:
        lines = [(snapshot.loops[0], HostLine(line=saves, category=category, seconds=0.0, share=0.0))]
    return next(iter(lines), None)
