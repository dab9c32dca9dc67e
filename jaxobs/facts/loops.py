"""Loops of steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxobs.facts.functions import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWait:
    """How the host waits for its devices in a loop that was found, because it reads arrays."""

    share: float
    """Share of the steps' time in which the host was seen to wait."""
    idle_share: float
    """Share of the steps' time that would be saved at most if the host did not wait in each step."""
    looks: int
    """How often it was looked at."""
    where: str
    """`file:line` that reads, where most of the waits were seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLine:
    """Time that the program's thread spent at a line, in one category, by looks at its stack."""

    line: str
    """`file:line` of the user's code, or of a library's if none of the user's calls it."""
    category: str
    """Category of time, one of `TIME_CATEGORIES`."""
    seconds: float
    share: float
    """Share of the time since the first step, from 0 to 1."""
    paces: bool = False
    """Whether the line is a `sleep` that may keep a pace: in the loop itself, or for a difference in a function."""
    keeps_pace: bool = False
    """Whether the `sleep` does keep a pace: it lasts for a difference, as of the time of the next turn and now."""
    called_back: bool = False
    """Whether a compiled program had this line run, as by `jax.pure_callback`."""
    locks: bool = False
    """Whether the line takes a lock, which another thread may hold."""
    runs: bool = False
    """Whether the thread mostly runs Python at the line, and waits for nothing."""
    steps: int = 0
    """Steps in which looks saw the thread there: many if each step takes the time, few if a part took it once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """A loop of steps, by `jaxobs.step`, `jaxobs.steps`, or found as a function that is called again and again.

    A step's time runs from the end of the step before it on its thread to its own: in a steady loop that is what a step
    takes, although a device may finish it later. Evaluations, checkpoints and compilations between two steps are
    neither's; a wait for input is the step's. The first step of a thread has the time of its scope.
    """

    name: str
    found: bool = False
    """True if the loop is a function that is called in a loop, and its calls are the steps."""
    steps: int = 0
    """Steps that have ended."""
    steps_counted: bool = True
    """Whether all of them were; where not, `steps` are those that were seen, of a loop that was found."""
    failed: int = 0
    """Steps that an exception ended; they are not steps otherwise."""
    slow: int = 0
    """Steps that took more than three times the typical time, and at least 0.1 s."""
    items: float | None = None
    """Samples or tokens so far; None if none were reported."""
    seconds: Histogram | None = None
    """Times of all steps; None where it was found."""
    ended: float | None = None
    """Time at which the last step ended."""
    recent: tuple[float, ...] = ()
    """Times of the latest steps, the oldest first; the mean of each sample interval where calls are only counted."""
    history: tuple[tuple[float, float, float], ...] = ()
    """Spans of the whole run that have steps, the oldest first: the middle of each as a Unix time, the mean of its step
    times and the longest, in seconds."""
    mean_seconds: float | None = None
    """Over the recent steps, as all that follows, whatever the host runs ahead. Of a loop that was found, without the
    seconds that it compiled or saved."""
    least_seconds: float | None = None
    p50_seconds: float | None = None
    """Percentiles; None where calls are only counted, and below the mean where the host runs ahead and then waits."""
    p90_seconds: float | None = None
    p99_seconds: float | None = None
    steps_per_second: float | None = None
    """By wall time: compilations and checkpoints are included."""
    items_per_second: float | None = None
    calls: Mapping[str, float] = field(default_factory=dict)
    """Calls of functions in a step, by function; of instrumented ones, looked at in some of the steps, unless found."""
    flops: float | None = None
    """Floating-point operations of a step on one device: of these calls, by the compiler's own count."""
    peak_flops: float | None = None
    """FLOP/s of one device, by its data sheet or the setting `peak_flops`."""
    mfu: float | None = None
    """Share of `peak_flops` that the steps use; None if it is unknown, and when the loop is idle."""
    mfu_range: tuple[float, float] | None = None
    """The least and the most that it can be, where it is unknown because a function has programs of several sizes."""
    mfu_unknown: str | None = None
    """Why not, as a sentence for a person."""
    bytes_again: int = 0
    """Bytes of NumPy arrays that a call was given and an earlier one as well, so that they are copied once more."""
    carries: bool = False
    """Whether a call was given an array that the call before returned, as the parameters in a training."""
    host_wait: HostWait | None = None
    """None where it was not seen to wait, or not looked at often enough."""
    dispatching: HostLine | None = None
    """Seconds in which the thread was in JAX while no device computed, of all lines, with the line that has most."""
    differences: HostLine | None = None
    """Seconds in which SciPy estimated derivatives over many parameters, with the line that has it do so most."""
    lines: tuple[HostLine, ...] = ()
    """Lines with the most seconds, the most first; of the loop that was found and does most."""
