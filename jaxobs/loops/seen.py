"""The calls of one function that were seen, and the marks that are made of them."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Collection, Sequence
from operator import itemgetter
from time import perf_counter

from jaxobs.loops import call_places
from jaxobs.loops.turns import SLOW

MOST_RECENT = 513

Mark = tuple[float, int, float, int]
"""A call: when it was dispatched, or began where that is known and much earlier, by `perf_counter`; its thread (0 the
charged one); what was apart from the loop by then (see `Wall.elsewhere`); and the number of the burst, for between two
bursts calls are missed."""


class Seen:
    """The calls of one function that were seen."""

    __slots__ = (
        "category", "compiled", "evaluates", "first", "folded", "ignored", "known", "long", "marks", "met", "name",
        "produces", "recent", "usual", "window",
    )  # fmt: skip

    def __init__(
        self, name: str, ignored: bool = False, compiled: Collection[Mark] = (), *, training: bool = False
    ) -> None:
        """`training`: whether it is first called when a loop that trains is known."""
        self.name = name
        self.evaluates = call_places.evaluates(name, training=training)
        """Whether the function's name says that it evaluates."""
        self.category: str | None = "eval" if self.evaluates else None
        """Kind of the turns that calls begin on the charged thread: of a loop (`step`) or evaluations (`eval`)."""
        self.produces = False
        """Whether a generator calls the function, as loaders do."""
        self.usual = 0.0
        """Seconds of a turn, as far as it is known."""
        self.known = 0
        self.first: call_places.FirstCalls | None = call_places.FirstCalls([mark[0] for mark in compiled][-1:])
        """None when they are known not to be few long ones, or known to be."""
        self.long = False
        """Whether few long calls of it are a loop."""
        self.ignored = ignored
        """JAX's own, or one too many."""
        self.met = time.time()
        self.marks: list[Mark] = []
        """Marks that wait for the sampler."""
        self.folded = len(compiled)
        """Marks, without those that wait."""
        self.compiled = len(compiled)
        """Marks of calls that compiled."""
        self.recent: deque[Mark] = deque(compiled, maxlen=MOST_RECENT)
        self.window: list[Mark] = []
        """Marks of the latest sample interval."""

    @property
    def calls(self) -> int:
        """Calls that C++ served, without those that wait for the sampler."""
        return self.folded - self.compiled

    @property
    def latest(self) -> float:
        """The moment of the latest call; 0 if there was none."""
        marks = self.marks[-1:] or [*self.recent][-1:]  # the sampler may come in between
        return marks[0][0] if marks else 0.0

    @property
    def made(self) -> int:
        """Marks so far, with those that wait."""
        return self.folded + len(self.marks)

    def times(self, most: int) -> list[float]:
        """Returns the moments of the latest calls, at most so many; fewer while the sampler takes marks in."""
        return [mark[0] for mark in (*self.recent, *self.marks)][-most:]

    def fold(self) -> None:
        """Takes in the marks that wait: a new window."""
        marks = self.marks
        self.window = marks[:]
        del marks[: len(self.window)]
        self.folded += len(self.window)
        self.recent.extend(self.window)

    @property
    def lately(self) -> Sequence[Mark]:
        """Marks of the latest sample interval; of few long calls, all those that still go on."""
        recent = self.recent
        if not self.long or len(recent) < 2:
            return self.window
        mean = (recent[-1][0] - recent[0][0]) / (len(recent) - 1)
        return recent if perf_counter() - recent[-1][0] < SLOW * mean else self.window

    def adopt(self, thread: int) -> None:
        """Makes the thread the charged one; none was charged before."""
        for marks in (self.recent, self.marks):
            for position, (when, of, apart, burst) in enumerate(list(marks)):
                if of == thread:
                    marks[position] = (when, 0, apart, burst)

    def intervals(self) -> list[tuple[float, float, float]]:
        """Begin, end and seconds of the recent turns, those cut by the end of a burst left out."""
        found: list[tuple[float, float, float]] = []
        recent = list(self.recent)
        for thread in {each[1] for each in recent}:
            mine = [each for each in recent if each[1] == thread]
            for (began, _, apart, burst), (ended, _, left, same) in itertools.pairwise(mine):
                if burst == same:
                    found.append((began, ended, max(0.0, ended - began - (left - apart))))
        found.sort(key=itemgetter(1))
        return found

    def threads(self) -> int:
        """How many threads made the recent calls."""
        return len({each[1] for each in self.recent})
