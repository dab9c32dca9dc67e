"""Where the time went: every second of the thread that runs the program, in exactly one category.

Whoever sees something begin and end (a step, a wait for input, an evaluation, a compilation) enters and leaves its
category; the innermost counts. What is known only afterwards is moved out of the category that was charged meanwhile.
So the categories add up to the wall time since the process began, whatever is entered.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from threading import get_ident

from jaxobs.facts import TIME_CATEGORIES

WORK = frozenset(("step", "input_wait", "eval"))
"""With the first of these the program has done with its preparations: what is in no category is `idle` from then on."""
CATEGORY_OF_PHASE = {"trace": "trace", "lower": "trace", "compile": "compile"}
"""Lowering counts as tracing: both are Python on the host, and no cache saves either."""
_MOST_CLOSED = 1024
_MOST_TRIES = 100


def process_age(pid: int | str = "self") -> float | None:
    """Seconds since a process was started, to 10 ms; None where the system does not tell, as any but Linux.

    A process that took the place of another by `exec` is as old as that one.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError, IndexError):
        return None
    return age if ticks > 0 and age >= 0.0 else None


def started() -> float:
    """When this process was started, in seconds since 1970: the same at each call, so that a restart is told by it."""
    return _started(os.getpid())


@functools.lru_cache(maxsize=1)
def _started(pid: int) -> float:
    return time.time() - (process_age() or 0.0)


class Scope:
    """Something that began and is charged until it ends, less what began within it."""

    __slots__ = ("began", "category", "ended", "outer", "own", "wall")

    def __init__(self, wall: Wall, category: str, began: float, outer: Scope | None = None) -> None:
        self.wall = wall
        self.category = category
        self.began = began
        self.outer = outer
        self.own = 0.0
        """Seconds charged to it so far."""
        self.ended: float | None = None
        """When it was ended by another thread than the charged one."""


class Wall:
    """The account of one process. One thread is charged: the main one, unless another is the first to make a step.

    Only the charged thread writes, without a lock. Between the comments "From here" and the end of a block nothing is
    called, so that no signal handler and, where there is a global lock, no other thread comes in between.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter, age: float | None = None) -> None:
        self._clock = clock
        # Reentrant: a signal handler of the program may come in here while this thread is.
        self._lock = threading.RLock()
        self.thread = threading.main_thread().ident
        """The thread that is charged."""
        age = process_age() if age is None and clock is time.perf_counter else age
        self.began = self._last = clock() - (age or 0.0)
        """When the process began, by `clock`; where that is not known, when this was made."""
        self.steps = 0
        """Steps that began on the charged thread, those within a step or an evaluation left out."""
        self._starting = True
        self._by_turns = False
        """Whether the preparations are over by a loop that was found: who tells of steps still takes over."""
        self._root = self._top = Scope(self, "init", self.began, None)
        self._closed: deque[tuple[float, float]] = deque(maxlen=_MOST_CLOSED)
        self._phases: list[tuple[str, Scope]] = []
        self._seconds = dict.fromkeys(TIME_CATEGORIES, 0.0)
        self._version = 0
        self._shown = dict.fromkeys(TIME_CATEGORIES, 0.0)

    # ------------------------------------------------------------------------------------- what happens

    def enter(self, category: str) -> Scope | None:
        """A category begins on this thread: what to `leave`; None on a thread that is not charged.

        Args:
          category: one of `TIME_CATEGORIES`. A step within an evaluation is part of the evaluation.
        """
        if get_ident() != self.thread and not self._takes_over(category):
            return None
        if self._top.ended is not None:
            self._drop_ended()
        now = self._clock()
        scope = Scope(self, category, now)
        # From here
        scope.outer = top = self._top
        self._version += 1
        passed = now - self._last
        if passed > 0.0:
            self._seconds[top.category] += passed
            top.own += passed
            self._last = now
        if category == "step":
            if top.category == "eval":
                scope.category = "eval"
            elif top.category != "step":
                self.steps += 1
        self._top = scope
        self._version += 1
        if self._starting and category in WORK:
            self._started()
        return scope

    def leave(self, scope: Scope | None = None, category: str | None = None, *, alone: bool = False) -> None:
        """A category ends, and whatever began within it and was never left.

        Args:
          scope: what `enter` returned; the innermost unless given. One that has ended already is no error, nor is
            one of another process or thread.
          category: what it turned out to be, if not what it was entered as.
          alone: leaves what began within it open: for what may end at any time, as a generator that is collected.
        """
        if scope is None:
            scope = self._top
        if scope.wall is not self or scope.outer is None or scope.ended is not None:
            return
        now = self._clock()
        if get_ident() != self.thread:
            scope.ended = now
            return
        if scope is not self._top:
            if not self._is_open(scope):
                return
            if alone:
                scope.ended = now
                return
        # From here
        top = self._top
        self._version += 1
        passed = now - self._last
        if passed > 0.0:
            self._seconds[top.category] += passed
            top.own += passed
            self._last = now
        if category is not None:
            self._seconds[scope.category] -= scope.own
            self._seconds[category] += scope.own
        self._top = scope.outer
        self._version += 1
        scope.ended = now
        closed, began = self._closed, scope.began
        while closed and closed[-1][0] >= began:
            closed.pop()
        closed.append((began, now))
        if self._top.ended is not None:
            self._drop_ended()

    def follow(self, scope: Scope | None, category: str) -> Scope | None:
        """A category begins as another ends: `leave(scope)` and `enter(category)`, at one moment and for less."""
        if (
            scope is None
            or scope is not self._top
            or scope.ended is not None
            or (outer := scope.outer) is None
            or outer.ended is not None
            or get_ident() != self.thread
        ):
            if scope is not None:
                self.leave(scope)
            return self.enter(category)
        now = self._clock()
        following = Scope(self, category, now, outer)
        # From here
        top = self._top
        self._version += 1
        passed = now - self._last
        if passed > 0.0:
            self._seconds[top.category] += passed
            top.own += passed
            self._last = now
        if category == "step":
            if outer.category == "eval":
                following.category = "eval"
            elif outer.category != "step":
                self.steps += 1
        self._top = following
        self._version += 1
        scope.ended = now
        closed, began = self._closed, scope.began
        while closed and closed[-1][0] >= began:
            closed.pop()
        closed.append((began, now))
        if self._starting and category in WORK:
            self._started()
        return following

    def move(self, category: str, seconds: float) -> float:
        """The last `seconds` on this thread were of another category than was charged; returns what was moved.

        Less what began and ended within them: that has been charged to its own. Nothing on a thread not charged.
        """
        if get_ident() != self.thread:
            return 0.0
        if self._top.ended is not None:
            self._drop_ended()
        now = self._clock()
        start = now - seconds
        wanted = max(0.0, seconds - self._closed_since(start))
        # From here
        top = self._top
        self._version += 1
        if now > self._last:
            self._seconds[top.category] += now - self._last
            top.own += now - self._last
            self._last = now
        moved = wanted if wanted < top.own else top.own
        self._seconds[top.category] -= moved
        self._seconds[category] += moved
        top.own -= moved
        self._version += 1
        self._closed.append((start, now))
        return moved

    def turned(self, seconds: float) -> bool:
        """The last `seconds` on this thread were turns of a loop that was found: steps, but for what else was in them.

        Returns whether they could be told: not on a thread that is not charged, nor within any category.
        """
        if get_ident() != self.thread or not self.at_rest:
            return False
        closed = self._closed
        if len(closed) == _MOST_CLOSED and closed[0][0] > self._clock() - seconds:
            return False  # what lay in these turns is not all known any more
        self.move("step", seconds)
        if self._starting:
            self._started()
            self._by_turns = True
        return True

    def phase_began(self, phase: str) -> None:
        """JAX begins to trace, lower or compile on this thread."""
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
            return
        for position in range(len(self._phases) - 1, -1, -1):
            if self._phases[position][0] == phase:
                scope = self._phases[position][1]
                del self._phases[position:]
                self.leave(scope, category)
                return
        self.move(category, seconds)

    def nothing_open(self) -> None:
        """The ends of open phases were lost."""
        phases, self._phases = self._phases, []
        for _, scope in reversed(phases):
            self.leave(scope, alone=True)

    # ------------------------------------------------------------------------------------- what is known

    @property
    def at_rest(self) -> bool:
        """Whether no category is open on the charged thread."""
        return self._top is self._root

    @property
    def category(self) -> str:
        """What is charged now."""
        top = self._top
        while top.ended is not None and top.outer is not None:
            top = top.outer
        return top.category

    def age(self) -> float:
        """Seconds since the process began."""
        return self._clock() - self.began

    def seconds(self) -> dict[str, float]:
        """Seconds so far by category; together they are the wall time since `began`. From any thread."""
        for _ in range(_MOST_TRIES):
            version = self._version
            found, category, last = dict(self._seconds), self.category, self._last
            if version == self._version and not version % 2:
                break
        found[category] += max(0.0, self._clock() - last)
        return found

    def elsewhere(self) -> float:
        """Seconds so far of what is no part of a loop that no scope tells of."""
        spent = self._seconds
        return spent["checkpoint"] + spent["trace"] + spent["compile"] + spent["cache_load"] + spent["eval"]

    def apart(self, scope: Scope) -> float:
        """Seconds so far of what is no part of a loop whose step `scope` is, to be asked when that begins or ends."""
        spent = self._seconds
        apart = spent["checkpoint"] + spent["trace"] + spent["compile"] + spent["cache_load"]
        return apart if scope.category == "eval" else apart + spent["eval"]

    def counted(self, seconds: dict[str, float]) -> dict[str, float]:
        """What `seconds` returned as counters show it: none ever goes down, and together they are the wall time.

        What was shown under one category and turned out to be another's stays where it was until that category has
        caught up; until then the others get less than they are due.
        """
        with self._lock:
            before = self._shown
            due = {name: max(0.0, value - before[name]) for name, value in seconds.items()}
            passed, wanted = sum(seconds.values()) - sum(before.values()), sum(due.values())
            if passed > 0.0 and wanted > 0.0:
                share = min(1.0, passed / wanted)
                shown = {name: value + share * due[name] for name, value in before.items()}
                if self._shown is before:
                    self._shown = shown
            return self._shown

    # ------------------------------------------------------------------------------------------ helpers

    def _started(self) -> None:
        """The preparations are over."""
        self._starting = self._by_turns = False
        self._root.category, self._root.own = "idle", 0.0

    def _takes_over(self, category: str) -> bool:
        """Whether the calling thread is charged from now on: it is the first to make a step."""
        if category != "step":
            return False
        with self._lock:
            if not (self._starting or (self._by_turns and not self.steps)):
                return False
            self._phases = []
            now = self._clock()
            # From here
            self._version += 1
            if now > self._last:
                self._seconds[self._top.category] += now - self._last
                self._last = now
            self._top = self._root
            self.thread = get_ident()
            self._version += 1
            self._started()
        return True

    def _drop_ended(self) -> None:
        """Takes off what another thread, or an early end, left on top; its time ended when it did."""
        while self._top.ended is not None and self._top.outer is not None:
            top, ended = self._top, self._top.ended
            assert top.outer is not None and ended is not None
            # From here
            self._version += 1
            if ended > self._last:
                self._seconds[top.category] += ended - self._last
                self._last = ended
            self._top = top.outer
            self._version += 1
            self._closed.append((top.began, ended))

    def _is_open(self, scope: Scope) -> bool:
        each: Scope | None = self._top
        while each is not None and each is not scope:
            each = each.outer
        return each is scope

    def _closed_since(self, start: float) -> float:
        """Seconds of what began and ended since then, which has been charged already."""
        closed, total, earliest = self._closed, 0.0, float("inf")
        while closed and closed[-1][0] >= start:
            began, ended = closed.pop()
            if began < earliest:  # else it lay within the one after it
                total += min(ended, earliest) - began
                earliest = began
        return total
