"""Calls of `jax.jit` functions as JAX itself reports them, no function being replaced: which, when, on which thread.

JAX calls a hook of ours after each call that its C++ dispatch served (see `jaxobs.internals.post_hook`). It appends a
mark, which costs well under a microsecond; everything else is worked out on the sampler's thread. So that it stays
cheap where a program makes very many calls, only `CALLS_A_SECOND` are paid for: when they are spent the hook comes off,
for a quarter of a second. A slow loop is seen whole, a fast one in bursts, and what is seen says which.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping
from threading import get_ident
from time import perf_counter
from types import FrameType
from typing import Any

from jaxobs import internals
from jaxobs.base.guard import guarded
from jaxobs.internals import Miss, post_hook
from jaxobs.loops import call_places
from jaxobs.loops.host_waits import HostWaits
from jaxobs.loops.loop_outputs import LoopOutputs
from jaxobs.loops.seen import Mark, Seen
from jaxobs.loops.thread_looks import LOOK_SECONDS, PAUSE_SECONDS, Pauses, ThreadLooks
from jaxobs.loops.turns import SLOW, SLOW_SECONDS, Call, Turns
from jaxobs.reasons import naming
from jaxobs.state.call_stats import CallStats, label
from jaxobs.state.routes import open_request
from jaxobs.state.wall import Wall

CALLS_A_SECOND = 2000.0
"""A mark costs 0.6 to 0.9 microseconds (`make bench`): at most 0.2 % of a second."""
MOST_CALLS = 1000
"""Calls that are paid for at once at most, after a rest: within half a second it is 0.2 % again."""
FIRST_CALLS = 200
"""Paid for when the process begins to look, so that it costs next to nothing from the first call on."""
FEWEST_CALLS = 20
"""Calls of a function that make a loop."""
MOST_FUNCTIONS = 200
CHARGED = 0
"""The number of the charged thread in marks."""
FEWEST_COMPILED = 5
"""Calls that each recompile and make a loop: a handful of fits, each of a model of its own, is not one."""
MOST_COMPILED = 64
"""Calls of a function that compiled, kept until one is seen."""

_request = open_request.get


class SeenCalls:
    """The recorder: on by `watch`, off by `stop`."""

    def __init__(self, name_of: Callable[[CallStats], str | None], outputs: LoopOutputs, waits: HostWaits) -> None:
        self._name_of = name_of
        self._outputs = outputs
        self._waits = waits
        self.hook = self._after_call
        """The hook, always the same object, because JAX knows hooks by identity."""
        self._pauses: Pauses | None = None
        self._looks: ThreadLooks | None = None
        self.forget()

    def forget(self) -> None:
        """Nothing was seen: in a forked child, or of another program's state."""
        self.functions: dict[str, Seen] = {}
        self._known: dict[int, Seen] = {}
        self._references: dict[int, weakref.ref[Any]] = {}
        self._left = FIRST_CALLS
        self._granted = perf_counter()
        self._wall: Wall | None = None
        self._version = -1
        self._apart = 0.0
        self.burst = 0
        self.whole_since = time.time()
        """Every call since then was seen."""
        self.turns = Turns()
        self._training = False
        """Whether a loop was found that is known to be more than an evaluation."""
        self._compiled: dict[str, deque[Mark]] = {}
        self._again: dict[str, tuple[call_places.Place, list[float]]] = {}
        """Place and moments of the calls of functions that seem to compile in each call."""
        self._adopting: int | None = None
        """The thread that must be charged, with its next call, and since when it makes turns."""
        self._adopting_since = 0.0

    def watch(self, wall: Wall) -> None:
        """Grants calls for the time since the last were granted, and sets the hook where it is free."""
        if wall is not self._wall:
            self._wall, self._version = wall, -1
            self.turns.restart()
        self._grant()
        if self._pauses is None:
            self._pauses = Pauses(self._grant)

    def _grant(self) -> None:
        now = perf_counter()
        self._left = int(min(MOST_CALLS, max(self._left, 0) + CALLS_A_SECOND * (now - self._granted)))
        self._granted = now
        if not post_hook.holds(self.hook):
            self.burst += 1
            self.whole_since = time.time()
            post_hook.put(self.hook)

    def stop(self) -> None:
        """Takes the hook off, if it is still ours."""
        for thread in (self._pauses, self._looks):
            if thread is not None:
                thread.stop()
        self._pauses = self._looks = None
        post_hook.take(self.hook)

    def after_fork(self) -> None:
        """In a forked child, which has no other thread."""
        self._pauses = self._looks = None
        self.stop()
        self.forget()

    def fold(self) -> list[Seen]:
        """Takes in what waits; returns all functions."""
        found = [each for each in list(self.functions.values()) if not each.ignored]
        for each in found:
            each.fold()
        return found

    def charge(
        self, mains: Mapping[str, float], within: Collection[str], longest: float, median: float, pace: float
    ) -> None:
        """From now on the calls of these are the turns of loops on the charged thread, if none is longer than that.

        Args:
          mains: seconds of a turn of each.
          within: functions that are called in most turns of another.
          longest: seconds.
          median: seconds of a turn.
          pace: seconds of a turn for which the host waits for its devices.
        """
        turns = self.turns
        turns.longest, turns.median, turns.pace = longest, median, pace
        for function in list(self.functions.values()):
            before = function.category
            if function.evaluates:
                function.category = None if function.name in within else "eval"
            else:
                function.category = "step" if function.name in mains else None
            if function.category == "step":
                function.usual = mains[function.name]
                self._training = True
                if before is None:
                    turns.begun, turns.due = False, 0.0

    def adopt(self, thread: int, since: float) -> None:
        """Has this thread charged, if the account wants it: it makes the turns of a loop since then."""
        self._adopting, self._adopting_since = thread, since

    def compiled(self, name: str, now: float, *, alike: bool) -> None:
        """A function was compiled on this thread, and is called: by a call that is not seen.

        Args:
          alike: whether it was compiled before for the same shapes: for a new function object or static argument.
        """
        wall, thread = self._wall, get_ident()
        if wall is None or thread != wall.thread or _request() is not None:
            return
        mark = (now, CHARGED, wall.elsewhere(), self.burst)
        self.turns.called = now
        self._look()
        seen = self.functions.get(name)
        if seen is None and self._training and call_places.evaluates(name, training=True):
            seen = self.functions[name] = Seen(name, compiled=self._compiled.pop(name, ()), training=True)
        if seen is not None:
            seen.compiled += 1
            seen.marks.append(mark)
            if seen.category is not None and self.turns.longest:
                self._turn(wall, seen, mark)
        elif name in self._compiled or len(self._compiled) < MOST_FUNCTIONS:
            self._compiled.setdefault(name, deque(maxlen=MOST_COMPILED)).append(mark)
            if alike and not self._training:
                self._compiles_again(name, now)

    def _compiles_again(self, name: str, now: float) -> None:
        """Each call of a function may compile it: then these calls are the loop."""
        frame = sys._getframe(2)
        here = call_places.place(frame)
        before, times = self._again.get(name, ((), []))
        times = [*(times if call_places.same(here, before) else ()), now][-FEWEST_COMPILED:]
        self._again[name] = (here, times)
        if len(times) >= FEWEST_COMPILED and times[-1] - times[0] >= call_places.LEAST_TURN * len(times):
            seen = self.functions[name] = Seen(name, compiled=self._compiled.pop(name))
            seen.long, seen.first = True, None
            self._find(seen, times, frame)

    # --------------------------------------------------------------------------------- on the program's threads

    def _after_call(self, fun: Any, args: Any, kwargs: Any, output: Any) -> None:
        try:
            now = perf_counter()
            seen = self._known.get(id(fun))
            if seen is None:
                seen = self._meet(fun, args, kwargs)
            self._left -= 1
            if self._left <= 0:
                self._spend()
            if seen.ignored:
                return
            if _request() is not None:
                return  # a call of a server's is no turn
            wall, thread = self._wall, get_ident()
            if wall is None or (thread != wall.thread and not self._adopted(wall, seen, thread)):
                marks = seen.marks
                marks.append((now, thread, 0.0, self.burst))
                if len(marks) == FEWEST_CALLS:
                    self._check_server(seen)
                return
            if wall._version != self._version:
                self._version, self._apart = wall._version, wall.elsewhere()
            turns = self.turns
            if seen.category is not None and turns.longest:
                # Most turns are of the usual length, and too few to be charged.
                if now > turns.due or seen.category is not turns.category:
                    frame = sys._getframe(1)
                    self._turn(wall, seen, self._mark(seen, now, frame), frame)
                    if seen.category == "step":
                        self._outputs.take(seen.name, seen.folded + len(seen.marks), output, frame)
                    return
                turns.last, turns.apart = now, self._apart
                turns.count += 1
            elif seen.first is not None:
                frame = sys._getframe(1)
                self._early(seen, self._mark(seen, now, frame)[0], frame)
                return
            elif not self._training and (len(seen.marks) if turns.longest else seen.made) >= FEWEST_CALLS - 1:
                frame = sys._getframe(1)
                self._mark(seen, now, frame)
                self._find(seen, seen.times(FEWEST_CALLS), frame)
                return
            seen.marks.append((now, CHARGED, self._apart, self.burst))
        except Exception as failure:
            _failed(failure)

    def _spend(self) -> None:
        """Ends a burst: the granted calls are spent."""
        post_hook.take(self.hook)
        if self._pauses is not None:
            self._pauses.begin()

    def _mark(self, seen: Seen, now: float, caller: FrameType) -> Mark:
        """Marks a call that ends now; if it comes long after the one before, when it began."""
        began, turns = now, self.turns
        if self._looks is not None:
            called = max(turns.called, *(each.latest for each in list(self.functions.values())), 0.0)
            if now - called > LOOK_SECONDS:
                began = self._looks.began(call_places.place(post_hook.caller(caller)), called, now)
        turns.called = now
        mark = (began, CHARGED, self._apart, self.burst)
        seen.marks.append(mark)
        return mark

    def _turn(self, wall: Wall, seen: Seen, mark: Mark, caller: FrameType | None = None) -> None:
        """A turn begins, and is looked at more closely."""
        now, turns = perf_counter(), self.turns
        if caller is not None and turns.wants_place and seen.category == "step":
            turns.place, turns.wants_place = call_places.place(post_hook.caller(caller)), False
        if turns.begun:
            turns.turn(wall, _call(seen, mark), PAUSE_SECONDS, now)
            turns.last, turns.apart = mark[0], mark[2]
            turns.count += 1
        elif caller is not None or turns.place is not None:  # else the next call tells where the loop is
            self._begin(wall, now)

    def _begin(self, wall: Wall, now: float, since: float = 0.0) -> None:
        """A loop was found: what its functions were called so far, since then, were turns of it."""
        found: list[Call] = []
        for function in list(self.functions.values()):
            if function.category is not None:
                marks = (*function.recent, *function.marks)
                found += [_call(function, mark) for mark in marks if mark[1] == CHARGED and mark[0] >= since]
        found.sort(key=lambda call: call[0])
        self.turns.begin(wall, found, now, self._looks)

    def _early(self, seen: Seen, now: float, caller: FrameType) -> None:
        """Takes in one of the first calls of a function on the charged thread."""
        first = seen.first
        assert first is not None
        if first.add(now, caller) and not self._only_evaluates(seen, first.times[0]):
            seen.long, seen.first = True, None
            if not (self._training or self._check_server(seen)):
                self._find(seen, first.times, caller)
        elif seen.made >= FEWEST_CALLS:
            seen.first = None
            if not self._training:
                self._find(seen, seen.times(FEWEST_CALLS), caller)

    def _only_evaluates(self, seen: Seen, since: float) -> bool:
        """Returns whether a function evaluates the result of another function, which was called since then."""
        if not seen.evaluates:
            return False
        calls = [(name, mark[0]) for name, marks in self._compiled.items() for mark in marks]
        calls += [(each.name, mark[0]) for each in self.functions.values() for mark in (*each.recent, *each.marks)]
        return any(name != seen.name and when > since for name, when in calls)

    def _check_server(self, seen: Seen) -> bool:
        """Whether a server calls it: then its calls are not turns."""
        if call_places.is_served(sys._getframe(1)):
            seen.ignored = True
            seen.marks.clear()
        return seen.ignored

    def _find(self, seen: Seen, times: list[float], caller: FrameType) -> None:
        """A function is called in a loop, as it seems before the sampler has looked."""
        if len(times) < 2 or self._check_server(seen):
            return
        wall, turns = self._wall, self.turns
        assert wall is not None
        mean = (times[-1] - times[0]) / (len(times) - 1)
        turns.longest, turns.median, seen.usual = max(SLOW * mean, SLOW_SECONDS), mean, mean
        if seen.category is None:
            seen.category = "step"
        self._training = seen.category == "step"
        if self._training:
            turns.place, turns.wants_place = call_places.place(post_hook.caller(caller)), False
        self._begin(wall, perf_counter())

    def _adopted(self, wall: Wall, seen: Seen, thread: int) -> bool:
        """Returns whether this thread is charged from now on."""
        if thread != self._adopting or seen.category is None:
            return False
        self._adopting = None
        if not wall.adopt():
            return False
        self._version = -1
        for each in list(self.functions.values()):
            each.adopt(thread)
        self._begin(wall, perf_counter(), self._adopting_since)
        return True

    def _look(self) -> None:
        """Has the charged thread looked at."""
        if self._looks is None and self._pauses is not None:
            self._looks = ThreadLooks(self.turns, lambda: self._wall, self._waits, self._outputs)

    def _meet(self, fun: Any, args: Any, kwargs: Any) -> Seen:
        """The function is called for the first time."""
        name = self._name(fun, args, kwargs)
        if name is None:
            seen = Seen("", ignored=True)
        else:
            known = self.functions.get(name)
            if known is None:
                too_many = len(self.functions) >= MOST_FUNCTIONS
                charged = self._wall is not None and get_ident() == self._wall.thread
                compiled = self._compiled.pop(name, ()) if charged else ()
                frame = sys._getframe(2)
                served = too_many or call_places.is_served(frame)
                known = Seen(name, served, compiled, training=self._training)
                known.produces = call_places.is_generated(frame)
                if not known.ignored:
                    self.functions[name] = known
                    self._look()
            seen = known
        number, known_by, references = id(fun), self._known, self._references

        def gone(_: object) -> None:
            known_by.pop(number, None)
            references.pop(number, None)

        references[number] = weakref.ref(fun, gone)
        known_by[number] = seen
        return seen

    def _name(self, fun: Any, args: Any, kwargs: Any) -> str | None:
        """The label of the user's function; None if it is not the user's, or was compiled ahead of time."""
        caller = post_hook.caller(sys._getframe(3))
        stats = caller.f_locals.get("stats") if caller.f_code.co_name == "__call__" else None
        if isinstance(stats, CallStats):
            return self._name_of(stats)
        inner = post_hook.function_of(fun)
        if inner is None or naming.is_primitive(inner):
            return None
        user = internals.called(Miss(fun=inner, args=tuple(args), kwargs=dict(kwargs or {}))).fun
        if internals.is_jax_function(naming.unwrapped(user)):
            return None
        name = naming.function_name(user)
        return None if name is None else label(name)


def _call(seen: Seen, mark: Mark) -> Call:
    when, _, apart, burst = mark
    return when, apart, burst, seen


def _failed(failure: Exception) -> None:
    """Counts a failure of ours. Out of line, to cost nothing where there is none."""
    with guarded("seen_calls"):
        raise failure
