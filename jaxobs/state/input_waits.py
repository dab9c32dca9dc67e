"""Cost of inputs: for each name the time waited, the intervals between batches, and which side holds the loop up.

The one that iterates appends three numbers for each batch; all else is done when somebody asks.

The wait alone does not tell who is to blame: a program runs ahead of its devices, and what it waits for while they
still have work costs nothing. So now and then, when a batch comes, it is looked whether an array is still computed.
"""

from collections import deque
from time import perf_counter

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.facts.compilations import OTHER
from jaxobs.facts.inputs import InputState

MOST_INPUTS = 20
"""Names; what comes later shares `<other>`."""
MOST_WAITING = 1024
WARM_UP = 4
"""Batches whose intervals do not count: the first step is compiled in them."""
RECENT = 128
"""Intervals that the verdict is of."""
LEAST_INTERVALS = 8
INPUT_BOUND = 0.5
"""Part of the interval that is waited from which on the input holds the loop up: it takes longer than all else."""
COMPUTE_BOUND = 0.05
"""Below it, an input that cost nothing would make the loop faster by less than a twentieth."""

MOST_HIDDEN = 0.5
"""An input keeps up with the devices if they have work in more than this part of the looks."""
LEAST_LOOKS = 3
MOST_LOOKS = 32
LOOK_SECONDS = 0.1
"""At least so long between two looks, and a thousand times what the last one took."""
_LOOK_PAUSE = 1000

Wait = tuple[float, float, float, bool]
"""Times of a call of `next`: begin, end, end of the call before it (0 if there was none), and whether it was made on
the thread that is charged for its time."""


class InputMeter:
    """Waits for one input. The hot path calls `waits.append`: one call into C, exact under threads."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waits: list[Wait] = []
        # Reentrant: a signal handler of the program may iterate while this thread is in here.
        self._lock = threads.RLock()
        self._batches = 0
        self._seconds = 0.0
        self._elsewhere_batches = 0
        self._elsewhere_seconds = 0.0
        self._passed_over = 0
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT)
        self._looks: deque[bool] = deque(maxlen=MOST_LOOKS)

    # ----------------------------------------------------------------------------------------------- coming in

    def digest(self) -> None:
        """Takes in what the hot path left."""
        with self._lock:
            waiting = self.waits[:]
            del self.waits[: len(waiting)]
            for each in waiting:
                self._take(each)

    def _take(self, wait: Wait) -> None:
        began, ended, before, charged = wait
        self._batches += 1
        if not charged:
            self._elsewhere_batches += 1
            self._elsewhere_seconds += ended - began
            return
        self._seconds += ended - began
        if self._passed_over < WARM_UP:
            self._passed_over += 1
        elif before:
            self._recent.append((ended - began, ended - before))

    def waited(self, seconds: float, charged: bool) -> None:
        """A wait that brought no batch: for the end of an epoch, or for an error."""
        with self._lock:
            if charged:
                self._seconds += seconds
            else:
                self._elsewhere_seconds += seconds

    def look(self) -> float:
        """Looks whether the devices still have work, now that a batch has come; seconds until the next look."""
        began = perf_counter()
        busy = internals.computing()
        if busy is not None:
            self._looks.append(busy)
        return max(LOOK_SECONDS, _LOOK_PAUSE * (perf_counter() - began))

    # ----------------------------------------------------------------------------------------------- going out

    def frozen(self) -> InputState:
        self.digest()
        with self._lock:
            number = len(self._recent)
            known = number >= LEAST_INTERVALS and not self._fetched_elsewhere()
            wait = sum(each for each, _ in self._recent) / number if known else None
            interval = sum(each for _, each in self._recent) / number if known else None
            share = min(1.0, wait / interval) if wait is not None and interval else None
            looks = list(self._looks)
            hidden = sum(looks) / len(looks) if len(looks) >= LEAST_LOOKS else None
            waiting_for_looks = hidden is None and bool(looks)
            verdict = None if share is None or waiting_for_looks else verdict_of(share, hidden)
            return InputState(
                name=self.name, batches=self._batches, wait_seconds=self._seconds,
                elsewhere_batches=self._elsewhere_batches, elsewhere_seconds=self._elsewhere_seconds,
                intervals=number if known else 0, mean_wait_seconds=wait, mean_interval_seconds=interval, share=share,
                looks=len(looks), hidden=hidden, verdict=verdict,
                summary=self._summary(share, wait, interval, hidden, verdict),
            )  # fmt: skip

    def _fetched_elsewhere(self) -> bool:
        """Whether a prefetcher takes the batches. A loop on another thread is known by its first step only."""
        return 2 * self._elsewhere_batches > self._batches

    def _summary(
        self, share: float | None, wait: float | None, interval: float | None, hidden: float | None, verdict: str | None
    ) -> str:
        if self._fetched_elsewhere():
            return (
                "Another thread, such as a prefetcher, reads its batches, so what the program waits "
                "for is not visible here. Put `jaxobs.data` around what the training loop itself "
                "iterates over."
            )
        if share is None or wait is None or interval is None or verdict is None:
            return f"Unknown so far: it takes {WARM_UP + LEAST_INTERVALS:,} batches and a second."
        side = {
            "input": "the input is the bottleneck",
            "compute": "the input keeps up, the rest of the loop is the bottleneck"
            if share <= COMPUTE_BOUND
            else f"when a batch arrived, the devices still had work in {hidden or 0:.0%} of checks: the input keeps up",
            "mixed": "both cost",
        }[verdict]
        return (
            f"Of {interval * 1e3:,.3g} ms from batch to batch the program waits {wait * 1e3:,.3g} ms for input "
            f"({share:.0%}): {side}."
        )


def verdict_of(share: float, hidden: float | None) -> str:
    """Returns a name from `facts.inputs.INPUT_VERDICTS`, by `InputState.share` and `InputState.hidden`."""
    if share <= COMPUTE_BOUND or (hidden is not None and hidden > MOST_HIDDEN):
        return "compute"
    return "input" if share >= INPUT_BOUND else "mixed"


class Inputs:
    """All inputs of one process, by name; see `Store.part`."""

    def __init__(self) -> None:
        self._lock = threads.RLock()
        self._meters: dict[str, InputMeter] = {}

    def meter(self, name: str) -> InputMeter:
        """The one of that name; beyond a bound that of all others."""
        with self._lock:
            if name not in self._meters and len(self._meters) >= MOST_INPUTS:
                name = OTHER
            return self._meters.setdefault(name, InputMeter(name))

    def frozen(self) -> tuple[InputState, ...]:
        with self._lock:
            meters = list(self._meters.values())
        return tuple(each.frozen() for each in meters)
