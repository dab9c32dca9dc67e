"""Progress of the processes of a job.

`Progress` has the steps of this process by loop, as the program marks them, else as the calls of its functions tell;
`Pace` how far and how fast a process is, by two looks at its counts; `Excess` whether a process that has a program less
than another is only behind, or has continued without it.
"""

import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from jaxobs.facts.loops import LoopState
from jaxobs.findings.fleet.support.digest import Digest
from jaxobs.loops.found_loops import FoundLoops
from jaxobs.state.loops import Loops
from jaxobs.state.store import Store

SETTLED_TICKS = 2
"""Ticks after which the calls before a compilation are all counted: they are taken in by the tick."""


class Progress:
    """The counts at the latest look."""

    def __init__(self) -> None:
        self.steps: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        """Seconds that the steps took, where that is known."""
        self._loops: dict[str, LoopState] = {}
        self._ticks = 0
        self._compiled = -SETTLED_TICKS

    def tick(self) -> None:
        """A tick comes: what was called until the one before it is counted."""
        self._ticks += 1

    def compiled(self) -> None:
        """A program that spans processes was compiled."""
        self._compiled = self._ticks

    def look(self, store: Store) -> None:
        """Takes in how far the loops are."""
        marked = store.part(Loops)
        states = [each.frozen() for each in marked.all()] if marked.any else store.part(FoundLoops).frozen()
        self._loops = {each.name: each for each in states}
        self.steps = {} if marked.any else store.calls()
        for each in states:
            self.steps.setdefault(each.name, each.steps)
        self.seconds = {each.name: each.steps * (each.mean_seconds or 0.0) for each in states}

    def found(self, loop: str) -> bool:
        """Returns whether the program does not mark the steps of this loop."""
        state = self._loops.get(loop)
        return state is None or state.found

    def exact(self, loop: str) -> bool:
        """Returns whether all steps are counted, and those before the latest program too."""
        state = self._loops.get(loop)
        if state is None or not state.found:
            return True
        return state.steps_counted and self._ticks - self._compiled > SETTLED_TICKS

    def typical(self, loop: str) -> float | None:
        """The median time of a step; None where single steps are not seen, or take no time."""
        state = self._loops.get(loop)
        return None if state is None else state.p50_seconds or None


MORE_STEPS = 2
"""Steps that the other makes beyond the count at which the first had the program."""
FOUND_STEPS, FOUND_SHARE = 20, 0.05
"""Steps and share that count where calls stand for the steps: some of them may not be seen."""


@dataclass(frozen=True, slots=True)
class _Mark:
    behind: int
    """Which process has fewer."""
    programs: int
    """Number of programs that it has."""
    steps: int
    """Steps that the process with more had made when this was first seen."""
    loop: str


class Excess:
    """Programs that one process has more than this one, or this one more than it."""

    def __init__(self) -> None:
        self._marks: dict[int, _Mark] = {}

    def see(self, own: Digest, other: Digest) -> bool:
        """Whether the one with fewer programs has been where the other was, and has not compiled what that had."""
        if own.programs == other.programs or own.loop != other.loop:
            self._marks.pop(other.process, None)
            return False
        if not (own.exact and other.exact):
            return False
        behind, ahead = (own, other) if own.programs < other.programs else (other, own)
        mark = self._marks.get(other.process)
        if mark is None or (mark.behind, mark.programs, mark.loop) != (behind.process, behind.programs, own.loop):
            self._marks[other.process] = _Mark(behind.process, behind.programs, ahead.steps, own.loop)
            return False
        fewest = max(FOUND_STEPS, FOUND_SHARE * mark.steps) if own.found or other.found else MORE_STEPS
        return behind.steps >= mark.steps + fewest


MOST_TURNS = 40
FEWEST_TURNS = 3
PAUSE = 3.0
"""A turn this many times as long as usual ones is a pause: a checkpoint, an evaluation."""
FEWEST_STEPS = 10
"""Steps after which there is a usual time."""
MORE = 1.5
"""Another loop becomes the main one when it has taken so many times the time of the main one until then."""


class Pace:
    """The steps of one process: those of the loop that takes most time, else of the function with most calls."""

    def __init__(self) -> None:
        self.loop = ""
        self.steps = 0
        self.longest = 0.0
        """Seconds of the longest rest that steps followed."""
        self._seen: float | None = None
        self._grew: float | None = None
        """Time at which the count was last seen to have grown."""
        self._total = 0
        self._looks = 0
        """Looks since then."""
        self._turns: deque[tuple[float, int, int]] = deque(maxlen=MOST_TURNS)
        """Seconds between two looks at which the count had grown, by how much, and looks so far."""

    def see(self, now: float, counts: Mapping[str, int], seconds: Mapping[str, float] | None = None) -> None:
        """Takes in steps or calls by loop or function, and their seconds so far; `now` is by the monotonic clock."""
        loop = self._main(counts, seconds or {})
        total = sum(counts.values())
        self._looks += 1
        if loop != self.loop:
            self.loop, self._turns = loop, deque(maxlen=MOST_TURNS)
            self.steps, self._grew, self._looks = counts.get(loop, 0), None, 0
        made = counts.get(loop, 0) - self.steps
        if made > 0:
            if self._grew is not None:
                self._turns.append((now - self._grew, made, self._looks))
            self._grew, self.steps, self._looks = now, self.steps + made, 0
        if total != self._total or self._seen is None:  # of another loop: it is not stuck either
            if self._seen is not None and self._total:
                self.longest = max(self.longest, now - self._seen)
            self._total, self._seen = total, now

    def _main(self, counts: Mapping[str, int], seconds: Mapping[str, float]) -> str:
        """Returns the main loop: an evaluation may have more steps than the training, and on one process only."""
        most = max(counts, key=lambda name: (seconds.get(name, 0.0), counts[name]), default="")
        known = seconds.get(self.loop, 0.0)
        return self.loop if self.loop in counts and 0.0 < seconds.get(most, 0.0) < MORE * known else most

    def rest(self, now: float) -> None:
        """Something else continues that explains why no step is made: a compilation."""
        self._seen = self._grew = now
        self._looks = 0

    @property
    def usual(self) -> float | None:
        """Seconds from step to step."""
        kept = self._kept()
        if len(kept) < FEWEST_TURNS or self.steps < FEWEST_STEPS:
            return None
        # The looks come at their own pace: only many turns together tell what a step takes.
        return sum(seconds for seconds, _, _ in kept) / sum(made for _, made, _ in kept)

    @property
    def looks(self) -> int:
        """Looks that `usual` spans: it is as exact as one in so many."""
        return sum(looks for _, _, looks in self._kept())

    def _kept(self) -> list[tuple[float, int, int]]:
        """The turns without pauses."""
        turns = list(self._turns)
        longest = PAUSE * statistics.median(seconds for seconds, _, _ in turns) if turns else 0.0
        return [turn for turn in turns if turn[0] <= longest]

    def idle(self, now: float) -> float:
        """Seconds since any count was last seen to have grown."""
        return 0.0 if self._seen is None else now - self._seen
