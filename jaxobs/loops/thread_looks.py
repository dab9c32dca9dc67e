"""Looks at the thread that makes the turns of a loop, about ten times a second, while no call is seen.

Calls alone do not tell a slow turn from a rest, nor a call that computes before it returns from what was before it, nor
a wait for input. So the stack is read: no object of the program is kept, and nothing is added to it. A turn that takes
much longer than usual continues as long as the thread is where usual turns take it, in the call or in the loop's input,
or as the devices still compute what was dispatched: a host runs ahead of them, and then waits by reading a loss.
"""

from __future__ import annotations

import math
import random
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable
from time import perf_counter

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.guard import guarded
from jaxobs.loops import call_places, positions
from jaxobs.loops.call_places import Line, Place
from jaxobs.loops.host_waits import USUAL as USUAL_STEP
from jaxobs.loops.host_waits import HostWaits
from jaxobs.loops.loop_outputs import LoopOutputs
from jaxobs.loops.positions import IN_INPUT
from jaxobs.loops.turns import Turns
from jaxobs.state.wall import Wall

LOOK_SECONDS = 0.1
"""Between two looks, on average: at even intervals they might always meet the same part of a turn."""
QUIET_SECONDS = 10.0
"""After so long without a call it looks once in `QUIET_LOOK_SECONDS`."""
QUIET_LOOK_SECONDS = 1.0
PLACE_SECONDS = 1.0
"""Between two looks at where the calls of the loop come from."""
USUAL = 0.05
"""Usual turns are at a line where they were in more of the looks."""
MOST_LINES = 64
MOST_EARLY = 64
"""Looks that are kept as long as no loop is known."""


class ThreadLooks:
    """The thread that looks; it ends with `stop`, and does not keep the process alive."""

    def __init__(self, turns: Turns, wall: Callable[[], Wall | None], waits: HostWaits, outputs: LoopOutputs) -> None:
        """`wall` returns the account of the thread to look at, if there is one; `waits` gets looks at steps."""
        self._outputs = outputs
        self._turns = turns
        self._waits = waits
        self._wall = wall
        self._here: tuple[Place, float] = ((), 0.0)
        """Place of the thread at the latest looks, and the moment it was first seen there."""
        self._looked = perf_counter()
        self._early: deque[tuple[float, float, Place, bool]] = deque(maxlen=MOST_EARLY)
        """Moment, seconds since the look before, place of the thread, and whether a device computed in an idle host."""
        self._lines: Counter[Line] = Counter()
        self._pending: list[Line] = []
        """Lines of the turn that goes on: those of a slow one are not usual."""
        self._turn = 0.0
        """The moment the turn began that goes on."""
        self._asked = 0.0
        """The moment the place of a call was last asked for."""
        self._computing = True
        """Whether a device computed when it was last asked in this turn."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jaxobs-thread-looks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, which must not hold anything of the program when the interpreter ends."""
        self._stopped.set()
        self._outputs.wake()
        threads.join(self._thread)

    def began(self, here: Place, after: float, now: float) -> float:
        """Returns when the call `here` began that has returned: not before `after`, and before `now` if it was seen."""
        place, since = self._here
        return min(now, max(math.nextafter(after, now), since)) if place and call_places.same(place, here) else now

    def waited(self, since: float) -> float:
        """See `EarlyLooks`."""
        return sum(passed for passed, at, _ in self._taken(since, perf_counter()) if at == IN_INPUT)

    def learn(self, began: float, ended: float) -> None:
        """See `EarlyLooks`."""
        self._lines.update(at for _, at, _ in self._taken(began, ended) if isinstance(at, tuple))

    def seen(self, began: float, ended: float) -> tuple[float, float]:
        """See `EarlyLooks`."""
        looks = [(passed, computed or self._is_usual(at)) for passed, at, computed in self._taken(began, ended)]
        return sum(passed for passed, goes in looks if goes), sum(passed for passed, goes in looks if not goes)

    def _taken(self, began: float, ended: float) -> list[tuple[float, str | Line | None, bool]]:
        """The looks between these before a loop was known: the seconds of each, where it was, and what devices did."""
        call = self._turns.place
        if call is None:
            return []
        early = [each for each in list(self._early) if began <= each[0] <= ended]
        return [
            (min(passed, when - began), positions.position(here, call), computed)
            for when, passed, here, computed in early
        ]

    def _run(self) -> None:
        while not self._stopped.is_set():
            with guarded("thread_looks.outputs"):
                self._outputs.settle_until(perf_counter() + self._pause())
            if self._stopped.is_set():
                return
            with guarded("thread_looks"):
                self.look()

    def _pause(self) -> float:
        quiet = perf_counter() - self._turns.called > QUIET_SECONDS
        return (QUIET_LOOK_SECONDS if quiet else LOOK_SECONDS) * random.uniform(0.5, 1.5)

    def look(self) -> None:
        """Looks once."""
        now, turns = perf_counter(), self._turns
        passed, self._looked = now - self._looked, now
        wall = self._wall()
        frame = None if wall is None or not wall.at_rest else sys._current_frames().get(wall.thread or 0)
        if wall is None or frame is None:
            self._here = ((), 0.0)
            return
        here = call_places.place(frame)
        del frame
        if not call_places.same(here, self._here[0]):
            self._here = (here, now)
        if turns.category is None or turns.place is None:
            self._early.append((now, passed, here, self._computes_early(now)))
            return
        last = turns.last
        if last != self._turn:
            self._next_turn(last)
        if now - self._asked > PLACE_SECONDS:
            self._asked, turns.wants_place = now, True
            turns.due = min(turns.due, now)
        at = positions.position(here, turns.place) if turns.category == "step" else None
        if at == IN_INPUT:
            turns.waited += passed
        slow = now - last > max(turns.longest, LOOK_SECONDS)
        if at not in (None, IN_INPUT) and now - last < USUAL_STEP * turns.median and turns.function is not None:
            self._waits.look(turns.function, here)
        if not slow:
            if isinstance(at, tuple):
                self._pending.append(at)
        elif self._goes_on(at):
            turns.overdue = (last, turns.overdue[1] + min(passed, now - last), turns.overdue[2])
            wall.goes_on()
        else:
            turns.overdue = (last, turns.overdue[1], turns.overdue[2] + min(passed, now - last))

    def _next_turn(self, began: float) -> None:
        if self._turns.slow != self._turn:
            self._lines.update(self._pending)
            if len(self._lines) > MOST_LINES:
                self._lines = Counter(dict(self._lines.most_common(MOST_LINES // 2)))
        self._pending.clear()
        self._turn, self._computing = began, True
        self._turns.overdue = (began, 0.0, 0.0)

    def _computes_early(self, now: float) -> bool:
        called = self._turns.called
        if called != self._turn:
            self._turn, self._computing = called, True
        if now - called <= LOOK_SECONDS:
            return False
        return self._computes()

    def _goes_on(self, at: str | Line | None) -> bool:
        if self._is_usual(at):
            return True
        return self._computes()

    def _computes(self) -> bool:
        # Of a turn in which no device computes nothing more is asked: it asks all arrays.
        self._computing = self._computing and internals.computing() is True
        return self._computing

    def _is_usual(self, at: str | Line | None) -> bool:
        if isinstance(at, str):
            return True
        return at is not None and self._lines[at] > USUAL * self._lines.total()


PAUSE_SECONDS = 0.25
"""Between two bursts."""


class Pauses:
    """A thread that ends the pauses between bursts; it is started with the first."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._begun = threading.Event()
        self._stopped = threading.Event()
        # Reentrant: a signal handler of the program may call functions while this thread is in here.
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """A pause begins, on any thread."""
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="jaxobs-found-loops", daemon=True)
                    self._thread.start()
        self._begun.set()

    def stop(self) -> None:
        """Ends no pause any more."""
        with self._lock:
            self._stopped.set()
        self._begun.set()

    def _run(self) -> None:
        while self._begun.wait() and not self._stopped.wait(PAUSE_SECONDS):
            with self._lock, guarded("seen_calls.pause"):
                if self._stopped.is_set():
                    return
                # Under the lock: `stop` sets the event behind it, and that must not be cleared.
                self._begun.clear()
                self._end()
