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
from collections.abc import Callable, Collection, Sequence
from threading import get_ident
from time import perf_counter
from types import FrameType
from typing import Any

from jaxobs.base import arrivals
from jaxobs.base.guard import guarded
from jaxobs.facts.compilations import EAGER
from jaxobs.internals import post_hook
from jaxobs.loops import call_names, call_places
from jaxobs.loops.clock import Clock
from jaxobs.loops.loop_outputs import LoopOutputs
from jaxobs.loops.pauses import Pauses
from jaxobs.loops.seen import PLACE_SECONDS, Mark, Seen
from jaxobs.state.call_stats import CallStats
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
OPERATION_SECONDS = 0.5
"""Between two looks at where an operation outside of jitted functions is called from, after two in a row."""
OPERATIONS_SECONDS = 10.0
"""Seconds, less compilations, for which one place calls one in a loop: models are built in less."""
MOST_FUNCTIONS = 200
CHARGED = 0
"""The number of the charged thread in marks."""
FEWEST_COMPILED = 5
"""Long calls that each recompile and make a loop: a handful of fits, each of a model of its own, is not one."""
MOST_COMPILED = 64
"""Calls of a function that compiled, kept until one is seen."""
_request = open_request.get


class SeenCalls:
    """The recorder: on by `watch`, off by `stop`."""

    def __init__(self, name_of: Callable[[CallStats], str | None], outputs: LoopOutputs) -> None:
        self._name_of = name_of
        self._outputs = outputs
        self.hook = self._after_call
        """The hook, always the same object, because JAX knows hooks by identity."""
        self._pauses: Pauses | None = None
        self.clock: Clock | None = None
        self.forget()

    def forget(self) -> None:
        """Nothing was seen: in a forked child, or of another program's state."""
        self.functions: dict[str, Seen] = {}
        self._known: call_names.ByFunction[Seen] = call_names.ByFunction()
        self._left = FIRST_CALLS
        self._due = 0.0  # the next operation is looked at from then on
        self._granted = perf_counter()
        self._wall: Wall | None = None
        self._version = -1
        self._last = self._apart = 0.0
        self.missed = 0.0
        """Seconds between bursts, in which calls are missed."""
        self._off = perf_counter()  # the latest moment at which calls were seen
        self.whole_since = time.time()
        """Every call since then was seen."""
        self.latest: Seen | None = None
        """The function that was called last on the charged thread."""
        self.serves = False
        """Whether a server calls functions."""
        self._training = False
        """Whether a loop was found that is known to be more than an evaluation."""
        self._compiled: dict[str, deque[Mark]] = {}
        self._compiled_at: dict[tuple[int, int], tuple[str, call_places.Place]] = {}
        """Functions that compiled, with the place, by the number of the calling code and its instruction."""
        self._again: dict[str, tuple[call_places.Place, list[float]]] = {}
        """Place and moments of the calls of functions that seem to compile in each call."""
        self._adopting: tuple[int, Sequence[Seen], float] | None = None
        """The thread that must be charged, with its next call, its loops, and the seconds of a turn."""
        self.threads: set[int] = set()
        """Threads that call functions, but for the charged one."""

    def watch(self, wall: Wall) -> None:
        """Grants calls for the time since the last were granted, and sets the hook where it is free."""
        if wall is not self._wall:
            self._wall, self._version = wall, -1
        self._grant()
        if self._pauses is None:
            self._pauses = Pauses(self._grant)

    def _grant(self) -> None:
        now = perf_counter()
        self._left = int(min(MOST_CALLS, max(self._left, 0) + CALLS_A_SECOND * (now - self._granted)))
        self._granted = now
        if not post_hook.holds(self.hook):
            self.missed += now - self._off
            self.whole_since = time.time()
            post_hook.put(self.hook, falls=True)
        self._off = now

    def stop(self) -> None:
        """Takes the hook off, if it is still ours."""
        for thread in (self._pauses, self.clock):
            if thread is not None:
                thread.stop()
        self._pauses = self.clock = None
        post_hook.take(self.hook)

    def after_fork(self) -> None:
        """In a forked child, which has no other thread."""
        self._pauses = self.clock = None
        self.stop()
        self.forget()

    def fold(self) -> list[Seen]:
        """Takes in what waits; returns all functions."""
        found = [each for each in list(self.functions.values()) if not each.ignored]
        for each in found:
            each.fold()
        return found

    def charged(self) -> set[str]:
        """Returns the functions that the charged thread called or compiled."""
        called = (each.name for each in list(self.functions.values()) if each.recent and each.recent[-1][1] == CHARGED)
        return {*self._compiled.copy(), *called}

    def charge(self, loops: Sequence[Seen], within: Collection[str], median: float, thread: int | None = None) -> None:
        """From now on the calls of these are the turns of loops on the charged thread.

        Args:
          within: functions that are called in most turns of another.
          median: seconds of a turn.
          thread: charged with its next call, if the account wants it.
        """
        for function in list(self.functions.values()):
            if function.evaluates:
                function.category = None if function.name in within else "eval"
            else:
                function.category = "step" if function in loops else None
            self._training = self._training or function.category == "step"
        if thread is not None:
            self._adopting = thread, loops, median
        elif self.clock is not None:
            self.clock.found(loops, median)

    def compiled(self, name: str, now: float, *, alike: bool) -> None:
        """A function was compiled on this thread, and is called: by a call that is not seen.

        `alike` says whether it was compiled before for the same shapes: for a new function object or static argument.
        """
        wall, thread = self._wall, get_ident()
        if wall is None or thread != wall.thread or _request() is not None:
            return
        mark = (now, CHARGED, wall.elsewhere(), self.missed)
        self._look()
        seen, caller = self.functions.get(name), call_places.outside(sys._getframe(1))
        if seen is None and self._training and call_places.evaluates(name, training=True):
            seen = self.functions[name] = Seen(name, compiled=self._compiled.pop(name, ()), training=True)
        if seen is not None:
            seen.compiled += 1
            seen.marks.append(mark)
            seen.called(now, caller)
            self.latest = seen
        elif name in self._compiled or len(self._compiled) < MOST_FUNCTIONS:
            self._compiled.setdefault(name, deque(maxlen=MOST_COMPILED)).append(mark)
            if len(self._compiled_at) < MOST_FUNCTIONS:
                self._compiled_at[id(caller.f_code), caller.f_lasti] = name, call_places.place(caller)
            if alike and not self._training:
                self._compiles_again(name, now)

    def alone(self, called: Seen | None, at: tuple[int, int]) -> None:
        """The devices compute for long what few calls dispatched, and no loop is known: each of them is a turn.

        A turn belongs to `called`, to the function that compiled at this instruction, or to the latest function.
        """
        compiled, (name, place) = self._compiled.copy(), self._compiled_at.get(at, ("", None))
        seen = called or (None if name in compiled else self.latest)
        if self.clock is None or self._training or not (seen or compiled):
            return
        if seen is None:
            name = name if name in compiled else max(compiled, key=lambda name: compiled[name][-1][0])
            seen = self.functions[name] = Seen(name, compiled=self._compiled.pop(name))
            seen.places, seen.place = {at: place[0][0]} if place else {}, place
        seen.long, seen.first, seen.category = True, None, seen.category or "step"
        self._training = seen.category == "step"
        self.clock.found([seen], 0.0)

    def _compiles_again(self, name: str, now: float) -> None:
        """Each call of a function may compile it: then these calls are the loop."""
        here = call_places.place(sys._getframe(2))
        before, times = self._again.get(name, ((), []))
        times = [*(times if call_places.same(here, before) else ()), now][-FEWEST_CALLS:]
        self._again[name] = (here, times)
        least = call_places.LEAST_TURN * len(times) if len(times) < FEWEST_CALLS else 0.0
        if len(times) >= FEWEST_COMPILED and times[-1] - times[0] >= least:
            seen = self.functions[name] = Seen(name, compiled=self._compiled.pop(name))
            seen.long, seen.first = True, None
            self._find(seen, times)

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
                if seen.name == EAGER and not self._training:
                    self._operation(seen, now)
                return
            if _request() is not None:
                return  # a call of a server's is no turn
            wall, thread = self._wall, get_ident()
            if wall is None or (thread != wall.thread and not self._adopted(seen, thread)):
                waiting = seen.elsewhere((now, thread, 0.0, self.missed), (args, kwargs), output)
                if waiting == 1:
                    seen.called(now, post_hook.caller(sys._getframe(1)))
                    self.threads.add(thread)
                elif waiting == FEWEST_CALLS:
                    self._check_server(seen)
                return
            if wall._last is not self._last or wall._version != self._version:
                self._last, self._version, self._apart = wall._last, wall._version, wall.elsewhere()
            seen.marks.append((now, CHARGED, self._apart, self.missed))
            self.latest = seen
            seen.output = weakref.ref(output) if type(output) is arrivals.array_class else arrivals.reference(output)
            if now > seen.due:
                self._attend(seen, now, post_hook.caller(sys._getframe(1)), output)
                seen.given(args, kwargs or {}, output)
        except Exception as failure:
            with guarded("seen_calls"):
                raise failure

    def _spend(self) -> None:
        """Ends a burst: the granted calls are spent."""
        post_hook.take(self.hook)
        self._off = perf_counter()
        if self._pauses is not None:
            self._pauses.begin()

    def _attend(self, seen: Seen, now: float, frame: FrameType, output: Any) -> None:
        """Looks at a call more closely: at some of each function, and at all that may show a loop of few long ones."""
        seen.called(now, frame)
        if seen.first is not None:
            self._early(seen, now, frame)
            seen.due = 0.0
        elif seen.category == "step" and seen.name != EAGER:
            self._outputs.take(seen.name, seen.made, output, frame)

    def _early(self, seen: Seen, now: float, caller: FrameType) -> None:
        """Takes in one of the first calls of a function on the charged thread."""
        first = seen.first
        assert first is not None
        if first.add(now, caller) and not self._only_evaluates(seen, first.times[0]):
            seen.long, seen.first = True, None
            self._find(seen, first.times)
        elif seen.made >= FEWEST_CALLS:
            seen.first = None
            self._find(seen, seen.times(FEWEST_CALLS))

    def _operation(self, seen: Seen, now: float) -> None:
        """Takes in a call outside of jitted functions: a loop if two in a row come from one place, for long."""
        wall, marks = self._wall, seen.marks
        if wall is None or get_ident() != wall.thread or _request() is not None:
            return
        marks.append((now, CHARGED, wall.elsewhere(), self.missed))
        if now < seen.due or (seen.place is None and now < self._due):
            return
        before = seen.place
        seen.called(now, post_hook.caller(sys._getframe(2)))
        seen.due = now + OPERATION_SECONDS
        if before is None:
            self._look()
            seen.due, self._due = 0.0, now + PLACE_SECONDS
        elif seen.place is not before:
            seen.place = None
            del marks[:]
        elif len(marks) >= FEWEST_CALLS and now - marks[0][0] - marks[-1][2] + marks[0][2] >= OPERATIONS_SECONDS:
            self.functions[EAGER] = seen
            seen.ignored, seen.first, seen.began = False, None, marks[0][0]
            self._find(seen, seen.times(FEWEST_CALLS))

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
            seen.answers()
            self.serves = True
        return seen.ignored

    def _find(self, seen: Seen, times: Sequence[float]) -> None:
        """A function is called in a loop, as it seems before the sampler has looked."""
        if len(times) < 2 or self._check_server(seen) or (self._training and EAGER not in self.functions):
            return
        if self._training and self.functions[EAGER] is not seen:
            self.functions.pop(EAGER).ignored = True  # what came before the training
        if seen.category is None:
            seen.category, self._training = "step", True
        if self.clock is not None:
            self.clock.found([seen], (times[-1] - times[0]) / (len(times) - 1))

    def _adopted(self, seen: Seen, thread: int) -> bool:
        """Returns whether this thread is charged from now on."""
        adopting = self._adopting
        return adopting is not None and thread == adopting[0] and seen.category is not None and self.adopt()

    def adopt(self) -> bool:
        """Charges the thread that waits to be charged, with its next call or as the program ends; whether it did."""
        wall, adopting, self._adopting = self._wall, self._adopting, None
        if wall is None or adopting is None or not wall.adopt(adopting[0]):
            return False
        self._version = -1
        for each in list(self.functions.values()):
            each.adopt(adopting[0])
        if self.clock is not None:
            self.clock.found(adopting[1], adopting[2])
        return True

    def _look(self) -> None:
        """Has the charged thread looked at."""
        if self.clock is None and self._pauses is not None:
            self.clock = Clock(self, self._outputs)

    def _meet(self, fun: Any, args: Any, kwargs: Any) -> Seen:
        """The function is called for the first time."""
        frame = sys._getframe(2)
        name = call_names.name(fun, args, kwargs, frame, self._name_of)
        if name is None or name == EAGER:
            seen = Seen(name or "", ignored=True)
        else:
            known = self.functions.get(name)
            if known is None:
                compiled = self._compiled.pop(name, ()) if self._wall and get_ident() == self._wall.thread else ()
                served = call_places.is_served(frame)
                self.serves = self.serves or served
                known = Seen(name, served or len(self.functions) >= MOST_FUNCTIONS, compiled, training=self._training)
                known.produces = call_places.is_generated(frame)
                if not known.ignored:
                    self.functions[name] = known
                if served or not known.ignored:
                    self._look()
            seen = known
        return self._known.keep(fun, seen)
