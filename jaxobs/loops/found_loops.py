"""Loops that nobody reported: functions that are called again and again.

Their calls are the steps. Of instrumented functions the calls are counted anyway, and two counts with the time between
them tell how long a call's turn takes. Where single calls are seen (see `seen_calls`), of any function, there
are percentiles, and it is known what is called in turn: that is one loop, with the function that does most of the work
for its name, and the others in `calls`. A function that is called twenty times in a row has a loop of its own.
"""

import itertools
import statistics
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from time import perf_counter
from typing import Any

from jaxobs.base import threads
from jaxobs.facts.loops import LoopState
from jaxobs.loops.clock import Clock
from jaxobs.loops.positions import is_task
from jaxobs.loops.seen import SLOW, SLOW_SECONDS, Mark, Seen
from jaxobs.loops.seen_calls import CHARGED as CHARGED
from jaxobs.loops.seen_calls import FEWEST_CALLS as FEWEST_CALLS
from jaxobs.state.loops import MOST_SHOWN, NoLoops, rates
from jaxobs.state.step_history import StepHistory

MOST_FOUND = 5
FEWEST_TURNS = 2
"""Turns that have a pace: a single one is all that lies between two calls, whatever they do."""
LEAST_SECONDS = 0.4
"""Counts that are closer together tell too little."""
ALIKE = 0.9
"""A function belongs to the turn of another if it is called at least this part as often in a sample interval."""
MOST_APART = 0.5
"""A function that is called in a smaller part of the turns is not part of them if it lengthens them or evaluates."""
MOST_PREPARES = 0.5
"""A function on another thread prepares data if it does less than this part of the work of a charged turn."""
AHEAD = 1.25
"""If the devices compute steps for so many times what the turns take, the host runs ahead of the devices: it waits for
the steps in turns that are left out."""
MOST_BESIDE = 32
"""Functions, those called most, that are looked for in the turns of a loop."""
Work = Callable[[Mapping[str, int]], Mapping[str, float]]
"""Returns the work of these calls by function, in one unit; 0 where it is unknown."""


class _Found:
    """Calls of one function at the last count, and the turns since the function began to be called."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.turns: deque[tuple[int, float]] = deque(maxlen=MOST_SHOWN)
        """Calls between two counts, and the seconds between these."""
        self.ended: float | None = None
        self.going = False
        self.history = StepHistory()


@dataclass(slots=True)
class Going:
    """A loop of which single calls were seen."""

    seen: Seen
    calls: dict[str, float] = field(default_factory=dict)
    """Calls of each function in a turn."""
    between: list[Mark] = field(default_factory=list)
    """Marks from the end of the first turn that is left out to the end of the last one."""
    within: set[str] = field(default_factory=set)
    """Functions that are called in most turns."""
    turns: list[tuple[float, float, float]] = field(default_factory=list)
    """Begin, end and seconds of the recent turns."""
    ended: float = 0.0
    history: StepHistory = field(default_factory=StepHistory)

    @property
    def seconds(self) -> list[float]:
        """Seconds of the recent turns."""
        return [seconds for _, _, seconds in self.turns]

    @property
    def wall_seconds(self) -> float:
        """Mean seconds from the beginning of a turn to its end, with what compiled or was saved in between."""
        return statistics.fmean(ended - began for began, ended, _ in self.turns)

    @property
    def median(self) -> float:
        """Median seconds of a turn."""
        return statistics.median(self.seconds)

    def remember(self, before: "Going | None", computed: float) -> None:
        """Adds the new turns to the history of the loop, each as a step.

        Args:
          before: the loop as it was at the sample before.
          computed: seconds for which devices compute a step if the host runs ahead of the devices, else 0.
        """
        since = 0.0
        if before is not None:
            self.history, since = before.history, before.turns[-1][1]
        for _, ended, seconds in self.turns:
            if ended > since:
                self.history.add(ended, computed or seconds)


@dataclass(frozen=True, slots=True)
class Total:
    """Calls of a function in all: as far as they are known."""

    calls: int
    whole: bool


class FoundLoops(NoLoops):
    """The functions that are called in a loop, as far as the counts of their calls tell, or single calls were seen."""

    def __init__(self) -> None:
        self._lock = threads.RLock()
        self._found: dict[str, _Found] = {}
        self._counted: float | None = None
        self._going: dict[str, Going] = {}
        self._totals: Mapping[str, Total] = {}
        self.clock: Clock | None = None
        """The clock that looks at the charged thread."""

    def forget(self) -> None:
        """The program reports its loops itself."""
        with self._lock:
            self._found = {}
            self._counted = None
            self._going = {}

    def count(self, calls: Mapping[str, int]) -> None:
        """Takes in how often each instrumented function has been called."""
        with self._lock:
            now = perf_counter()
            passed = None if self._counted is None else now - self._counted
            if passed is not None and passed < LEAST_SECONDS:
                return
            self._counted = now
            for name, made in calls.items():
                found = self._found.get(name)
                if found is None:
                    self._found[name] = _Found(made)
                elif passed is not None:
                    _turn(found, made, passed, now)

    def see(self, functions: Sequence[Seen], work: Work, totals: Mapping[str, Total]) -> list[Going]:
        """Takes in which calls were seen since the last time; returns the loops that continued meanwhile.

        Args:
          functions: all of which calls were seen.
          work: what calls of functions do.
          totals: calls of each function in all.
        """
        with self._lock:
            threads: dict[int, list[Seen]] = {}
            for function in functions:
                lately = () if is_task(function.place or ()) else function.lately
                if lately and (function.folded >= FEWEST_CALLS or function.long):
                    threads.setdefault(lately[-1][1], []).append(function)
            self._totals = totals
            going = [loop for together in threads.values() for loop in _loops(together, functions, work)]
            going = [loop for loop in going if not _prepares(loop, going, work)]
            for loop in going:
                names = dict.fromkeys((loop.seen.name, *loop.calls))
                before = [self._going.pop(each) for each in names if each in self._going]
                loop.remember(before[0] if before else None, _computed(loop, self.clock))
                self._going[loop.seen.name] = loop
            while len(self._going) > MOST_FOUND:
                del self._going[next(iter(self._going))]  # that which went on least lately
            return going

    def charged(self) -> list[Going]:
        """Returns the loops of the charged thread, also those at rest."""
        with self._lock:
            return [each for each in self._going.values() if each.seen.recent[-1][1] == CHARGED]

    def made(self, name: str) -> int | None:
        """Calls of a function, as far as they were seen; None if it is not known."""
        with self._lock:
            total = self._totals.get(name)
            return None if total is None else total.calls

    def threads(self, name: str) -> int:
        """How many threads made the recent steps."""
        with self._lock:
            loop = self._going.get(name)
            return 1 if loop is None else max(1, loop.seen.threads())

    def frozen(self) -> list[LoopState]:
        """Returns the functions that are called most, each as a loop."""
        with self._lock:
            seen = {name for loop in self._going.values() for name in loop.calls}
            states = [_seen_state(loop, self._totals, self.clock) for loop in self._going.values()]
            found = {
                name: each
                for name, each in self._found.items()
                if each.calls >= FEWEST_CALLS and each.turns and name not in seen
            }
            states += [_state(name, each) for name, each in found.items()]
            return sorted(states, key=lambda each: -each.steps)[:MOST_FOUND]


def _turn(found: _Found, made: int, passed: float, now: float) -> None:
    since, found.calls = made - found.calls, made
    # The first turn with calls may have begun before the loop did, and the last one may end after it.
    if since > 0 and found.going:
        found.turns.append((since, passed))
        found.history.add(now, passed / since, since)
    found.going = since > 0
    if since > 0:
        found.ended = time.time()


def _state(name: str, found: _Found) -> LoopState:
    calls, seconds = (sum(each) for each in zip(*found.turns, strict=True))
    mean = seconds / calls
    known: dict[str, Any] = {"recent": tuple(passed / each for each, passed in found.turns)}
    return LoopState(
        name=name, found=True, steps=found.calls, ended=found.ended, mean_seconds=mean, steps_per_second=1 / mean,
        calls={name: 1.0}, history=found.history.frozen(time.time() - perf_counter()), **known,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- of single calls


def _loops(together: Sequence[Seen], functions: Sequence[Seen], work: Work) -> list[Going]:
    """The loops among functions that one thread called in the same interval; `functions` are all that were seen."""
    calls = {each.name: len(each.lately) for each in together}
    done = dict(work(calls))
    if not all(done.values()):
        # Not known: the one that is called most, and of those that are called as often, which was called first.
        most = max(calls.values())
        done = {name: made if made < ALIKE * most else most for name, made in calls.items()}
    ordered = sorted(together, key=lambda each: (each.evaluates, each.produces, -done[each.name], each.met))
    found: list[Going] = []
    for function in ordered:
        if all(_in_a_row(function, loop.seen) >= FEWEST_CALLS for loop in found):
            found.append(Going(function))
    for loop in found:
        own = [each.seen for each in found if each is not loop]
        dropped = _take_turns(loop, own, functions)
        loop.ended = time.time() - (perf_counter() - loop.seen.recent[-1][0])
        within = [each for each in together if each not in own and each.name not in dropped]
        loop.calls = {each.name: _calls(each, loop.seen) for each in within}
    return [each for each in found if each.turns]


def _prepares(loop: Going, going: Sequence[Going], work: Work) -> bool:
    """Whether a thread next to the charged one makes less in each turn than a loop of that does: it prepares data."""
    if loop.seen.recent[-1][1] == CHARGED:
        return False
    names = {each.seen.name: 1 for each in going}
    does = work(names)
    return any(
        each.seen.recent[-1][1] == CHARGED and does[loop.seen.name] < MOST_PREPARES * does[each.seen.name]
        for each in going
    )


def _times(seen: Seen) -> list[float]:
    return [each[0] for each in seen.recent]


def _in_a_row(seen: Seen, other: Seen) -> int:
    """How often it was called at most without a call of the other between."""
    most, calls = 0, _times(seen)
    edges = [0, *(bisect_left(calls, each) for each in _times(other)), len(calls)]
    for begin, end in itertools.pairwise(edges):
        most = max(most, end - begin)
    return most


def _calls(seen: Seen, main: Seen) -> float:
    """Returns the calls of a function for each call of `main`, in the time in which both were seen."""
    mine, others = _times(seen), _times(main)
    begin = max(mine[0], others[0])
    return max(1, len(mine) - bisect_left(mine, begin)) / max(1, len(others) - bisect_left(others, begin))


def _take_turns(loop: Going, own: Sequence[Seen], functions: Sequence[Seen]) -> set[str]:
    """The recent turns without those in which something else ran: another loop, an evaluation.

    Returns the functions that some were left out for.
    """
    seen, turns = loop.seen, loop.seen.intervals()
    if not turns:
        return set()
    ends, median = [ended for _, ended, _ in turns], statistics.median(seconds for _, _, seconds in turns)
    long = max(SLOW * median, SLOW_SECONDS)
    left_out: set[int] = set()
    dropped: set[str] = set()
    others = [each for each in functions if each is not seen and each.recent]
    for other in sorted(others, key=lambda each: -each.calls)[:MOST_BESIDE]:
        inside = Counter(
            turn for when in _times(other) if (turn := bisect_left(ends, when)) < len(ends) and turns[turn][0] < when
        )
        if len(inside) >= MOST_APART * len(turns):
            if not (seen.long and other.evaluates):  # an evaluation after each epoch stays one
                loop.within.add(other.name)
            continue
        if other in own:
            out = {turn for turn, calls in inside.items() if calls >= FEWEST_CALLS}
        elif inside and (other.evaluates or statistics.median(turns[turn][2] for turn in inside) > long):
            out = set(inside)
        else:
            continue
        if out:
            dropped.add(other.name)
            left_out |= out
    loop.turns = [each for turn, each in enumerate(turns) if turn not in left_out]
    edges = [turns[turn][1] for turn in left_out]
    loop.between = [mark for mark in seen.recent if min(edges) <= mark[0] <= max(edges)] if edges else []
    return dropped


def _computed(loop: Going, clock: Clock | None) -> float:
    """Returns the mean seconds for which devices compute a step, from one evaluation to another.

    Returns 0 if that is not known, or if the host runs no further ahead than by its turns.
    """
    bursts = [list(marks) for _, marks in itertools.groupby(loop.between, key=itemgetter(3))]
    marks = max(bursts, key=len, default=[])  # between two bursts calls are missed
    if clock is None or len(marks) < FEWEST_TURNS:
        return 0.0
    computed = clock.stepped(loop.seen, marks[0][0], marks[-1][0]) / (len(marks) - 1)
    return computed if computed > AHEAD * statistics.fmean(loop.seconds) else 0.0


def _seen_state(loop: Going, totals: Mapping[str, Total], clock: Clock | None) -> LoopState:
    seen, seconds, wall_seconds = loop.seen, loop.seconds, loop.wall_seconds
    total = totals.get(seen.name)
    if computed := _computed(loop, clock):
        seconds, wall_seconds = len(seconds) * [computed], computed
    return LoopState(
        name=seen.name, found=True, steps=seen.calls if total is None else total.calls,
        history=loop.history.frozen(time.time() - perf_counter()),
        steps_counted=total is not None and total.whole, ended=loop.ended, calls=loop.calls, bytes_again=seen.again,
        carries=seen.carries,
        host_wait=None if clock is None else clock.host_wait(seen.name),
        dispatching=None if clock is None else clock.dispatching(seen.name),
        differences=None if clock is None else clock.differences(seen.name),
        lines=() if clock is None else clock.host_lines(seen.name),
        **(rates(seconds, max(1, seen.threads()), wall_seconds) if len(seconds) >= FEWEST_TURNS else {}),
    )  # fmt: skip
