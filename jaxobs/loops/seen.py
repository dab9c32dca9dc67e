"""The calls of one function that were seen, and the marks that are made of them."""

import itertools
import sys
import time
import weakref
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from time import perf_counter
from types import CodeType, FrameType
from typing import Any

from jaxobs.base.arrivals import arrays
from jaxobs.loops import call_places

MOST_RECENT = 513
MOST_PLACES = 32
LARGE_BYTES = 2**20
"""Bytes of an array whose copying costs something."""
CARRY_LOOKS, CARRY_BYTES = 6, 64
"""Calls that are looked at for what they carry on, and bytes of an array that is more than a key or a number."""
PLACE_SECONDS = 0.05
"""Between two closer looks at calls of a function."""
SLOW, SLOW_SECONDS = 3.0, 0.1
"""A turn that takes more times the mean, and more than that, is not a usual one."""

Mark = tuple[float, int, float, float]
"""A call: when it was dispatched, or began where that is known and much earlier, by `perf_counter`; its thread (0 the
charged one); what was apart from the loop by then (see `Wall.elsewhere`); and the seconds in which calls were missed by
then, between bursts."""


class Seen:
    """The calls of one function that were seen."""

    __slots__ = (
        "again", "began", "carries", "category", "compiled", "due", "evaluates", "first", "folded", "ignored",
        "large", "long", "looks", "marks", "met", "name", "output", "place", "places", "produces", "recent", "returned",
        "window",
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
        self.places: dict[tuple[int, int], CodeType] = {}
        """Instructions that call the function, by the number of their code."""
        self.place: call_places.Place | None = None
        """Place of a call, read again now and then."""
        self.due = 0.0
        """The moment from which on the next call is looked at more closely."""
        self.large: list[weakref.ref[Any]] = []
        """Large NumPy arrays that a call was given, ..."""
        self.again = 0
        """... and bytes of those that the latest was given as well: each call copies them to the device."""
        self.carries = False
        """Whether a call was given an array that the call before returned."""
        self.looks = CARRY_LOOKS
        """Calls in a row that are still looked at for this, ..."""
        self.returned: list[weakref.ref[Any]] = []
        """... and arrays that the latest of them returned."""
        self.output: weakref.ref[Any] | None = None
        """An array that the latest call returned."""
        self.began = min((mark[0] for mark in compiled), default=perf_counter())
        """The moment of the first call."""
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

    def called(self, now: float, caller: FrameType) -> None:
        """Takes in where the function is called from."""
        if len(self.places) < MOST_PLACES:
            self.places[id(caller.f_code), caller.f_lasti] = caller.f_code
        here = call_places.place(caller)
        if self.place is None or not call_places.same(here, self.place):
            self.place = here
        self.due = now + PLACE_SECONDS

    def given(self, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
        """Takes in the arguments of a call, and what the call returned."""
        arguments = (*args, *kwargs.values())
        if self.looks:
            if not self.carries:
                self.gave(arguments, output)
            self.looks = 0 if self.carries else self.looks - 1
            self.returned, self.due = (self.returned, 0.0) if self.looks else ([], self.due)
        kinds = (sys.modules["numpy"].ndarray, sys.modules["numpy"].memmap)  # a subclass has methods of the program's
        parts = [each.values() if type(each) is dict else [each] for each in arguments]
        large = [each for each in itertools.chain(*parts) if type(each) in kinds and each.nbytes >= LARGE_BYTES]
        before = [reference() for reference in self.large]
        self.again = sum(each.nbytes for each in large if any(each is other for other in before))
        self.large = [weakref.ref(each) for each in large]

    def answers(self) -> None:
        """Has the calls count as answers of a server from now on."""
        self.ignored = True
        self.marks.clear()

    def elsewhere(self, mark: Mark, arguments: Any, output: Any) -> int:
        """Takes in a call on a thread that is not charged; returns how many marks wait."""
        self.marks.append(mark)
        if len(self.marks) <= CARRY_LOOKS and not self.carries:
            self.gave(arguments, output)
        return len(self.marks)

    def gave(self, arguments: Any, output: Any) -> None:
        """Takes in whether a call was given what the call before returned, and what it returned itself."""
        before = {id(array) for reference in self.returned if (array := reference()) is not None}
        self.carries = bool(before) and any(id(each) in before for each in arrays(arguments))
        returned = () if self.carries else arrays(output)
        self.returned = [weakref.ref(each) for each in returned if each.nbytes >= CARRY_BYTES]

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
            for position, (when, of, apart, missed) in enumerate(list(marks)):
                if of == thread:
                    marks[position] = (when, 0, apart, missed)

    def intervals(self) -> list[tuple[float, float, float]]:
        """Begin, end and seconds of the recent turns, those cut by the end of a burst left out.

        If all were cut, each takes the mean of the time in which calls were seen.
        """
        found: list[tuple[float, float, float]] = []
        cut: list[tuple[float, float, float]] = []
        recent = list(self.recent)
        for thread in {each[1] for each in recent}:
            mine = [each for each in recent if each[1] == thread]
            for (began, _, apart, missed), (ended, _, left, until) in itertools.pairwise(mine):
                if missed == until:
                    found.append((began, ended, max(0.0, ended - began - (left - apart))))
            if len(mine) > 1 and not found:
                seen = mine[-1][0] - mine[0][0] - (mine[-1][3] - mine[0][3]) - (mine[-1][2] - mine[0][2])
                mean = max(seen, 0.0) / (len(mine) - 1)
                cut += [(ended - mean, ended, mean) for ended, *_ in mine[1:]]
        return sorted(found or cut, key=itemgetter(1))

    def threads(self) -> int:
        """How many threads made the recent calls."""
        return len({each[1] for each in self.recent})
