"""The account of one thread's time: scopes within one another, each second charged to the innermost."""

import threading
import time
from collections import deque
from collections.abc import Callable
from threading import get_ident

from jaxobs.base import threads
from jaxobs.base.process import process_age
from jaxobs.facts.wall import TIME_CATEGORIES
from jaxobs.state import scopes
from jaxobs.state.rest import Rest
from jaxobs.state.scopes import APART, Scope

WORK = frozenset(("step", "input_wait", "eval"))
"""With the first of these it is known what came before: what was in no category was `init`, and is `idle` from then on.
Until then, and if none of them comes, it is `unattributed`."""
MOST_CLOSED = 1024
_MOST_TRIES = 100


class Account:
    """The account of one process. One thread is charged: the main one, unless another is the first to make a step.

    Only the charged thread writes, without a lock. Between the comments "From here" and the end of a block nothing is
    called, so that no signal handler and, where there is a global lock, no other thread comes in between.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter, age: float | None = None) -> None:
        self._clock = clock
        # Reentrant: a signal handler of the program may come in here while this thread is.
        self._lock = threads.RLock()
        self.thread = threading.main_thread().ident
        """The thread that is charged."""
        age = process_age() if age is None and clock is time.perf_counter else age
        self.began = self._last = clock() - (age or 0.0)
        """The start of the process by `clock`; if the start is unknown, the moment at which the account was made."""
        self.steps = 0
        """Steps that began on the charged thread, those within a step or an evaluation left out."""
        self._starting = True
        self._root = self._top = root = Scope()
        root.wall, root.category, root.began = self, "unattributed", self.began
        root.outer, root.own, root.ended, root.apart = None, 0.0, None, False
        self.rest = Rest(self._resting)
        """Knowledge of the seconds in no scope."""
        self._closed: deque[tuple[float, float]] = deque(maxlen=MOST_CLOSED)
        self._record: deque[tuple[str, float, float]] | None = None
        self._seconds = dict.fromkeys(TIME_CATEGORIES, 0.0)
        self.known_apart: float | None = None
        """Seconds of all categories in `scopes.APART` as `Wall.apart` added them up; None if they may have changed."""
        self._changing = False
        """Whether `enter` or `leave` is writing; whoever reads meanwhile sees that by `_unchanged`."""
        self._version = 0
        """Counts the beginnings and ends of all other changes, so it is odd during one."""

    # ------------------------------------------------------------------------------------- what happens

    def enter(self, category: str, at: float | None = None) -> Scope | None:
        """A category begins on this thread: what to `leave`; None on a thread that is not charged.

        Args:
          category: one of `TIME_CATEGORIES`. A step within an evaluation is part of the evaluation.
          at: the time by the clock, which only the charged thread gives; now unless given.
        """
        if at is None:
            if get_ident() != self.thread and not self._takes_over(category):
                return None
            if self._top.ended is not None:
                self._drop_ended()
            at = self._clock()
        scope = Scope()
        scope.wall = self
        scope.category = category
        scope.own = 0.0
        scope.ended = None
        scope.began = at
        # From here
        scope.outer = top = self._top
        self._changing = True
        passed = at - self._last
        if passed > 0.0:
            self._seconds[top.category] += passed
            top.own += passed
            self._last = at
            if top.apart:
                self.known_apart = None
        if category == "step":
            scope.apart = False
            if top.category == "eval":
                scope.category, scope.apart = "eval", True
            elif top.category != "step":
                self.steps += 1
        else:
            scope.apart = category in APART
        self._top = scope
        self._changing = False
        if self._starting and category in WORK:
            self._started()
        return scope

    def leave(
        self, scope: Scope | None = None, category: str | None = None, *, alone: bool = False, at: float | None = None
    ) -> bool:
        """Ends a category, and what nobody holds open within it; returns whether the outer one is charged from now on.

        Args:
          scope: what `enter` returned; the innermost unless given. One that has ended already is not an error, nor is
            one of another process or thread.
          category: what it turned out to be, if not what it was entered as.
          alone: leaves what began within it open: for what may end at any time, as a generator that is collected.
        """
        if scope is None:
            scope = self._top
        if scope.wall is not self or scope.outer is None or scope.ended is not None:
            return False
        if at is None:
            at = self._clock()
            if get_ident() != self.thread:
                scope.ended = at
                return False
        top = self._top
        if scope is not top:
            if not scopes.is_open(top, scope):
                return False
            if alone or scopes.goes_on_within(self._top, scope, at):
                scope.ended = at
                if self._top.ended is not None:
                    self._drop_ended()
                return False
            top = self._top
        # From here
        self._changing = True
        began, last = scope.began, self._last
        passed = at - last
        if passed > 0.0:
            self._seconds[top.category] += passed
            top.own += passed
            self._last = at
            if top.apart:
                self.known_apart = None
        if category is not None:
            self._seconds[scope.category] -= scope.own
            self._seconds[category] += scope.own
            self.known_apart = None
        self._top = outer = scope.outer
        self._changing = False
        scope.ended = at
        closed = self._closed
        if last > began:  # else nothing ended within it
            while closed and closed[-1][0] >= began:
                closed.pop()
        closed.append((began, at))
        if self._record is not None:
            self._note(category or scope.category, began, at)
        if outer.ended is not None:
            self._drop_ended()
        return True

    def follow(self, scope: Scope | None, category: str) -> Scope | None:
        """A category begins at the moment at which another ends."""
        if scope is not None and get_ident() == self.thread:
            now = self._clock()
            if self.leave(scope, at=now):
                return self.enter(category, now)
        elif scope is not None:
            self.leave(scope)
        return self.enter(category)

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
        wanted, rest = max(0.0, seconds - scopes.closed_since(self._closed, start)), self.rest
        # From here
        top = self._top
        self._version += 1
        if now > self._last:
            self._seconds[top.category] += now - self._last
            top.own += now - self._last
            self._last = now
        own = top.own - rest.drawn if top is self._root else top.own
        moved = max(0.0, min(wanted, own))
        self._seconds[top.category] -= moved
        self._seconds[category] += moved
        self.known_apart = None
        top.own -= moved
        if top is self._root and rest.seen > top.own:
            rest.seen = top.own
        self._version += 1
        self._closed.append((start, now))
        self._note(category, start, now)
        return moved

    def record_into(self, spans: deque[tuple[str, float, float]] | None) -> None:
        """Notes there what ends from now on, until it is `None`: category, beginning and end by the clock."""
        self._record = spans

    # ------------------------------------------------------------------------------------- what is known

    @property
    def at_rest(self) -> bool:
        """Whether no category is open on the charged thread."""
        return self._top is self._root

    @property
    def category(self) -> str:
        """The category that is charged now."""
        top = self._innermost()
        return top.category if top is not self._root else self.rest.category or top.category

    def open_scopes(self) -> list[tuple[str, float]]:
        """Returns category and start (by the clock) of the open scopes, the innermost first. Any thread may ask."""
        found = []
        each = self._top
        while each.outer is not None:
            if each.ended is None:
                found.append((each.category, each.began))
            each = each.outer
        return found

    def age(self) -> float:
        """Seconds since the process began."""
        return self._clock() - self.began

    def seconds(self) -> dict[str, float]:
        """Seconds so far by category; together they are the wall time since `began`. From any thread."""
        for _ in range(_MOST_TRIES):
            read = self._version, self._last, self._top
            found, top, last, own = dict(self._seconds), self._innermost(), self._last, self._root.own
            now = self._clock()
            passed = max(0.0, now - last)
            found[top.category] += passed
            resting, root = own + passed if top is self._root else own, self._root.category
            self.rest.apply(found, root, resting)
            if self._unchanged(*read):
                break
        return found

    # ------------------------------------------------------------------------------------------ helpers

    def _unchanged(self, version: int, last: float, top: Scope) -> bool:
        """Returns whether nothing was written since these were read.

        What is charged makes a new number for `_last`, and what is entered a new scope: the very same objects show
        that nothing was, for less than counting would cost on the way of each step.
        """
        same = last is self._last and top is self._top and version == self._version
        return same and not version % 2 and not self._changing

    def _note(self, category: str, began: float, ended: float) -> None:
        record = self._record  # another thread may end the recording
        if record is not None:
            record.append((category, began, ended))

    def _started(self) -> None:
        """The preparations are over, and known as such."""
        self._starting = False
        if self._root.category != "unattributed":
            return
        self._version += 1
        self.rest.settle(self._seconds, "unattributed")
        self._seconds["init"] += self._seconds["unattributed"]
        self._seconds["unattributed"] = 0.0
        self._root.category, self._root.own = "idle", 0.0
        self.known_apart = None
        self._version += 1

    def _innermost(self) -> Scope:
        top = self._top
        while top.ended is not None and top.outer is not None:
            top = top.outer
        return top

    def _resting(self) -> float:
        """Seconds so far in no category, since the preparations were over or, until then, since the process began."""
        own = 0.0
        for _ in range(_MOST_TRIES):
            read, own = (self._version, self._last, self._top), self._root.own
            if self._innermost() is self._root:
                own += max(0.0, self._clock() - self._last)
            if self._unchanged(*read):
                break
        return own

    def _takes_over(self, category: str) -> bool:
        """Whether the calling thread is charged from now on: it is the first to make a step."""
        if category != "step":
            return False
        with self._lock:
            if not self._starting:
                return False
            self._charge(get_ident())
            self._started()
        return True

    def _charge(self, thread: int) -> None:
        """Charges another thread, and nothing more to the scopes that were open on the one before."""
        self.rest.nothing_open(here=True)
        now = self._clock()
        # From here
        self._version += 1
        if now > self._last:
            self._seconds[self._top.category] += now - self._last
            self._top.own += now - self._last
            self._last = now
        self._top = self._root
        self.known_apart = None
        self.thread = thread
        self._version += 1

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
                self.known_apart = None
            self._top = top.outer
            self._version += 1
            self._closed.append((top.began, ended))
