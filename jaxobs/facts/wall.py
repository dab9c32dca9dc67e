"""The wall time of a process and of a run, by category."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxobs.facts.functions import Histogram
from jaxobs.facts.requests import AnsweringLine

TIME_CATEGORIES = (
    "init", "trace", "compile", "cache_load", "input_wait", "step", "checkpoint", "eval", "transfer", "idle",
    "unattributed",
)  # fmt: skip
"""Categories of a process' seconds: each second is in exactly one. `unattributed` is what is not known: what is in no
other category as long as the program has made no step. With the first one it becomes `init`."""

CHECKPOINT_OPERATIONS = ("save", "save_async", "restore", "wait", "phase")
"""Operations that take a checkpoint's time: what held its caller up; all of an asynchronous save, the part in the
background included; reading one; waiting for an earlier asynchronous save; a block of `jaxobs.phase("checkpoint")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A run over all its attempts: processes that were started with the same `run_id`, one after the other."""

    id: str
    attempt: int
    """Number of this process in the run, from 1."""
    since: float
    """Time at which the first attempt began."""
    wall_seconds: float
    """From then to now, the time in which none of them ran included."""
    seconds: Mapping[str, float]
    """By category, over all attempts; with `down_seconds` they add up to `wall_seconds`."""
    down_seconds: float
    """Time in which no attempt ran: from the last that is known of one to the start of the next."""
    redone_seconds: float | None
    """Time in steps that an attempt made after its last checkpoint, and so were lost when it ended; None if no
    checkpoint of the run was seen, for then it is not known what was saved."""
    redone_steps: int | None
    unsaved_seconds: float
    """Time in steps since the last checkpoint: what would be lost if it ended now."""
    unsaved_steps: int
    goodput: float | None
    """Share of `wall_seconds` that steps took which were not lost; None before the first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCallback:
    """Calls of a Python function by compiled programs, as by `jax.pure_callback` and `jax.debug.print`."""

    function: str
    line: str
    """`file:line` at which the function begins; of a function of JAX's, the line that asked for it, or empty."""
    calls: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWork:
    """Python that holds a program up besides the program itself, on all threads, while jaxobs was installed."""

    callbacks: tuple[HostCallback, ...] = ()
    """The most seconds first; empty on Python 3.11, which does not say."""
    pauses: Mapping[str, int] = field(default_factory=dict)
    """Pauses of the garbage collector by generation, and their seconds; then those since the first step."""
    pause_seconds: Mapping[str, float] = field(default_factory=dict)
    step_pauses: int = 0
    step_pause_seconds: float = 0.0
    pause_line: str | None = None
    """`file:line` that the program was at for most of the seconds, of pauses of 1 ms and more; None if unknown."""
    recent: Mapping[str, float] = field(default_factory=dict)
    """Seconds of `callbacks` and of `pauses` in the last ten minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeState:
    """The time of this process since it was started: every second in exactly one category."""

    seconds: Mapping[str, float]
    """By category, all of `TIME_CATEGORIES`; as known now, so that one can become less: what passed for a step turned
    out to be a compilation."""
    counted: Mapping[str, float]
    """Seconds by category as counters show them: none ever goes down, so that a correction takes some time to come
    through."""
    category: str
    """The current category."""
    wall_seconds: float
    """The sum of `seconds`."""
    started: float
    """Time at which the process was started, in seconds since 1970."""
    steps: int
    """Steps of the thread that is charged."""
    goodput: float | None
    """Share of the time of this process that went into steps; None before the first. See `RunState` for lost work."""
    recent: Mapping[str, float] = field(default_factory=dict)
    """Seconds by category of the last ten minutes, or of the whole time where that is shorter."""
    evaluations: int = 0
    """Evaluations that were seen in it, those without a step between them counted once."""
    lost: Mapping[str, float]
    """Seconds that went into anything but steps, by cause, the most first: the categories, and of a run with an id,
    over all attempts, `down` and `redone` as well."""
    checkpoints: Mapping[str, Histogram] = field(default_factory=dict)
    """Seconds of checkpoint operations by `CHECKPOINT_OPERATIONS`."""
    checkpoint_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the arrays that Orbax saved and restored, all processes' together; on the primary process alone."""
    checkpoint_failures: Mapping[str, int] = field(default_factory=dict)
    """Checkpoint operations that raised an exception, by operation, with 0 for the others that were seen."""
    checkpoint_line: str | None = None
    """`file:line` of the program that waited longest for checkpoint operations, in all; None if unknown."""
    serves: bool = False
    """Whether a server calls functions, or tasks of a thread pool do: between two calls the process rests."""
    answering: tuple[AnsweringLine, ...] = ()
    """Lines of a service with the most seconds while it answered requests, the most first."""
    host: HostWork | None = None
    run: RunState | None = None
    """None if no `run_id` is set, and until the backend is initialized."""
