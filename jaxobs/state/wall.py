"""The account of time: every second of the thread that runs the program, in exactly one category.

Whoever sees something begin and end (a step, a wait for input, an evaluation, a compilation) enters and leaves its
category; the innermost counts. What is known only afterwards is moved out of the category that was charged meanwhile.
So the categories add up to the wall time since the process began, whatever is entered.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from threading import get_ident

from jaxobs.base import threads
from jaxobs.facts.requests import AnsweringLine
from jaxobs.facts.wall import TIME_CATEGORIES
from jaxobs.state.account import Account
from jaxobs.state.lately import Lately
from jaxobs.state.scopes import Scope as Scope

MOST_LINES = 512
CATEGORY_OF_PHASE = {"trace": "trace", "lower": "trace", "compile": "compile"}
"""Lowering counts as tracing: both are Python on the host, and no cache saves either."""


class Wall(Account):
    """The account of one process: what scopes say, what JAX says that it does, and turns of loops that were found."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter, age: float | None = None) -> None:
        super().__init__(clock, age)
        self._phases: list[tuple[str, Scope]] = []
        self._counters = Counters()
        self.lately = Lately(0.0)
        """Seconds by category in the latest minutes; its clock is their sum."""
        self.serves, self.answering = False, tuple[AnsweringLine, ...]()
        """As in `TimeState`."""
        self.evaluations, self._evaluated = 0, -1
        self.compiled: dict[tuple[str, str], float] = {}
        """Seconds of compilations by the line that called the function, and the category."""

    def phase_began(self, phase: str) -> None:
        """JAX begins to trace, lower or compile on this thread."""
        if get_ident() != self.thread:
            self.rest.began(phase, CATEGORY_OF_PHASE[phase])
            return
        scope = self.enter(CATEGORY_OF_PHASE[phase])
        if scope is not None:
            self._phases.append((phase, scope))

    def phase_ended(self, phase: str, seconds: float, *, loaded: bool = False) -> None:
        """The innermost phase of that name has ended, after so many seconds; before JAX 0.6.1 none is seen to begin.

        Args:
          loaded: whether what passed for compiling was loading from the persistent cache.
        """
        category = "cache_load" if loaded else CATEGORY_OF_PHASE[phase]
        if get_ident() != self.thread:
            self.rest.ended(phase, category, seconds)
            return
        for position in range(len(self._phases) - 1, -1, -1):
            if self._phases[position][0] == phase:
                scope = self._phases[position][1]
                del self._phases[position:]
                self.leave(scope, category)
                return
        self.move(category, seconds)

    def compiled_at(self, line: str | None, phases: Mapping[str, float]) -> None:
        """A compilation has ended on this thread, whose phases took so many seconds."""
        if line is None or get_ident() != self.thread:
            return
        for phase, seconds in phases.items():
            key = line, CATEGORY_OF_PHASE.get(phase, phase)
            if key in self.compiled or len(self.compiled) < MOST_LINES:
                self.compiled[key] = self.compiled.get(key, 0.0) + seconds

    def nothing_open(self) -> None:
        """The ends of open phases were lost."""
        phases, self._phases = self._phases, []
        for _, scope in reversed(phases):
            self.leave(scope, alone=True)
        self.rest.nothing_open()

    # ------------------------------------------------------------------------------------- loops that were found

    def loop_found(self, seen: Iterable[tuple[str, float]]) -> float:
        """Takes in the looks since a loop began, what was before being preparations; returns the part that counts."""
        return self.rest.settle_looks(seen, "init" if self._starting else None)

    def adopt(self, thread: int) -> bool:
        """Charges a thread, on which a loop was found, unless steps are declared; returns whether it did."""
        if thread == self.thread:
            return True
        with self._lock:
            if not self._starting or not self.at_rest:
                return False
            self._charge(thread)
        return True

    def _charge(self, thread: int) -> None:
        self._phases = []
        super()._charge(thread)

    def evaluated(self, steps: int) -> None:
        """An evaluation begins or continues, after so many steps: a new one if there are more than before."""
        self.evaluations += steps != self._evaluated
        self._evaluated = steps

    # ------------------------------------------------------------------------------------- what is known

    def elsewhere(self) -> float:
        """Seconds so far of what is not part of a loop that was found, other loops left aside."""
        spent = self._seconds
        return spent["checkpoint"] + spent["trace"] + spent["compile"] + spent["cache_load"] + spent["eval"]

    def apart(self, scope: Scope) -> float:
        """Seconds so far of what is not part of a loop whose step `scope` is, to be asked when that begins or ends.

        `known_apart` is the same of a step outside of an evaluation.
        """
        # From here
        spent = self._seconds
        apart = spent["checkpoint"] + spent["trace"] + spent["compile"] + spent["cache_load"]
        if scope.category == "eval":
            return apart
        self.known_apart = apart = apart + spent["eval"]
        return apart

    def counted(self, seconds: dict[str, float]) -> dict[str, float]:
        """Returns `seconds` as counters show them: none ever goes down, and together they are the wall time.

        What was shown under one category and turned out to be another's stays where it was until that category has
        caught up; until then the others get less than they are due.
        """
        return self._counters.counted(seconds)


class Counters:
    """Seconds by category as counters that never go down, kept as they were shown last."""

    def __init__(self) -> None:
        # Reentrant: a signal handler of the program may come in here while this thread is.
        self._lock = threads.RLock()
        self._shown = dict.fromkeys(TIME_CATEGORIES, 0.0)

    def counted(self, seconds: dict[str, float]) -> dict[str, float]:
        """See `Wall.counted`."""
        with self._lock:
            before = self._shown
            # It will never catch up: what was shown as not known stays so, at the expense of what it was.
            kept = max(0.0, before["unattributed"] - seconds["unattributed"])
            wanted_of = seconds | {"init": max(0.0, seconds["init"] - kept)}
            due = {name: max(0.0, value - before[name]) for name, value in wanted_of.items()}
            passed, wanted = sum(seconds.values()) - sum(before.values()), sum(due.values())
            if passed > 0.0 and wanted > 0.0:
                share = min(1.0, passed / wanted)
                shown = {name: value + share * due[name] for name, value in before.items()}
                if self._shown is before:
                    self._shown = shown
            return self._shown
