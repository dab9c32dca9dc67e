"""Calls of `jax.jit` functions as JAX itself tells of them, no function being replaced: which, when, on which thread.

JAX calls a hook of ours after each call that its C++ dispatch served (see `jaxobs.internals.post_hook`). It appends a
mark, which costs well under a microsecond; everything else is worked out on the sampler's thread. So that it stays
cheap where a program makes very many calls, only `CALLS_A_SECOND` are paid for: when they are spent the hook comes off,
for a quarter of a second. A slow loop is seen whole, a fast one in bursts, and what is seen says which.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from operator import itemgetter
from threading import get_ident
from time import perf_counter
from typing import Any

from jaxobs import internals, naming
from jaxobs.call_stats import CallStats, label
from jaxobs.guard import guarded
from jaxobs.internals import Miss, post_hook
from jaxobs.wall import Wall

CALLS_A_SECOND = 2000.0
"""A mark costs 0.6 to 0.9 microseconds (`make bench`): at most 0.2 % of a second."""
MOST_CALLS = 10_000
"""Calls that are marked between two samples at most: 1 MB."""
PAUSE_SECONDS = 0.25
"""Between two bursts."""
FEWEST_CALLS = 20
"""Calls of a function that make a loop."""
SLOW, SLOW_SECONDS = 3.0, 0.1
"""A turn that takes more times the mean, and more than that, is none of a loop that goes: it had come to rest."""
MOST_FUNCTIONS = 200
MOST_RECENT = 513
CHARGED_SECONDS = 0.05
"""Turns are charged to `step` when they make up that much."""

Mark = tuple[float, int, float, int]
"""A call that was dispatched: when, by `perf_counter`; its thread (0 the charged one); what was apart from the loop by
then (see `Wall.elsewhere`); and the number of the burst, for between two bursts calls are missed."""


class Seen:
    """The calls of one function that were seen."""

    __slots__ = ("calls", "ignored", "marks", "met", "name", "recent", "turns", "window")

    def __init__(self, name: str, ignored: bool = False) -> None:
        self.name = name
        self.ignored = ignored
        """JAX's own, or one too many."""
        self.met = time.time()
        self.marks: list[Mark] = []
        """Those that wait for the sampler."""
        self.calls = 0
        """Without those that wait."""
        self.recent: deque[Mark] = deque(maxlen=MOST_RECENT)
        self.window: list[Mark] = []
        """Of the latest sample interval."""
        self.turns = False
        """Whether its calls are the turns of a loop on the charged thread."""

    def fold(self) -> None:
        """Takes in the marks that wait: a new window."""
        marks = self.marks
        self.window = marks[:]
        del marks[: len(self.window)]
        self.calls += len(self.window)
        self.recent.extend(self.window)

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


class SeenCalls:
    """The recorder: on by `watch`, off by `stop`."""

    def __init__(self, name_of: Callable[[CallStats], str | None]) -> None:
        self._name_of = name_of
        self.hook = self._after_call
        """One object: JAX's hook is told by identity."""
        self._pauses: _Pauses | None = None
        self.forget()

    def forget(self) -> None:
        """Nothing was seen: in a forked child, or of another program's state."""
        self.functions: dict[str, Seen] = {}
        self._known: dict[int, Seen] = {}
        self._references: dict[int, weakref.ref[Any]] = {}
        self._left = MOST_CALLS
        self._granted = perf_counter()
        self._wall: Wall | None = None
        self._version = -1
        self._apart = 0.0
        self.burst = 0
        self.whole_since = time.time()
        """Every call since then was seen."""
        self._last = 0.0
        self._due = 0.0
        """When the next turn is to be charged."""
        self._since: float | None = None
        """From when on the turns of the charged thread are not charged yet; None where they are to begin anew."""
        self._turned_in = 0
        self.longest = 0.0
        """A turn that takes longer is none: the loop had come to rest."""

    def watch(self, wall: Wall) -> None:
        """Grants calls for the time since the last were granted, and sets the hook where it is free."""
        if wall is not self._wall:
            self._wall, self._version, self._since, self._due = wall, -1, None, 0.0
        self._grant()
        if self._pauses is None:
            self._pauses = _Pauses(self._grant)

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
        if self._pauses is not None:
            self._pauses.stop()
            self._pauses = None
        post_hook.take(self.hook)

    def after_fork(self) -> None:
        """In a forked child, which has no other thread."""
        self._pauses = None
        self.stop()
        self.forget()

    def fold(self) -> list[Seen]:
        """Takes in what waits; returns all functions."""
        found = [each for each in list(self.functions.values()) if not each.ignored]
        for each in found:
            each.fold()
        return found

    def charge(self, mains: set[str], longest: float) -> None:
        """From now on the calls of these are the turns of a loop on the charged thread, if none is longer than that."""
        self.longest = longest
        for each in list(self.functions.values()):
            each.turns = each.name in mains

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
            wall, thread = self._wall, get_ident()
            if wall is None or thread != wall.thread:
                seen.marks.append((now, thread, 0.0, self.burst))
                return
            if wall._version != self._version:
                self._version, self._apart = wall._version, wall.elsewhere()
            seen.marks.append((now, 0, self._apart, self.burst))
            if seen.turns:
                last, self._last = self._last, now
                # Most turns are of the usual length, and too few to be charged.
                if now - self._due > 0.0 or now - last > self.longest:
                    self._turn(wall, now, now - last)
            elif not self.longest and len(seen.marks) == FEWEST_CALLS:
                self._find(seen)
        except Exception as failure:
            _failed(failure)

    def _spend(self) -> None:
        """What was granted is spent."""
        post_hook.take(self.hook)
        if self._pauses is not None:
            self._pauses.begin()

    def _find(self, seen: Seen) -> None:
        """A function is called in a loop, as it seems before the sampler has looked."""
        times = [each[0] for each in seen.marks]
        longest = max(SLOW * (times[-1] - times[0]) / (len(times) - 1), SLOW_SECONDS)
        if max(end - begin for begin, end in itertools.pairwise(times)) <= longest:
            self._since, self._last = times[0], times[-1]
        seen.turns, self.longest = True, longest

    def _turn(self, wall: Wall, now: float, passed: float) -> None:
        """Turns have ended. Those that make up a stretch are charged together, for that costs a microsecond."""
        since = self._since
        if self.burst != self._turned_in:
            self._turned_in = self.burst
            passed -= PAUSE_SECONDS  # it was not seen meanwhile, and goes on as before
        if since is None or passed > self.longest:
            self._since = now if wall.at_rest else None
        elif now - since >= CHARGED_SECONDS:
            self._since = now if wall.turned(now - since) else None
        self._due = now + CHARGED_SECONDS if self._since is not None else 0.0

    def _meet(self, fun: Any, args: Any, kwargs: Any) -> Seen:
        """The function is called for the first time."""
        name = self._name(fun, args, kwargs)
        if name is None:
            seen = Seen("", ignored=True)
        else:
            known = self.functions.get(name)
            if known is None:
                known = Seen(name, ignored=len(self.functions) >= MOST_FUNCTIONS)
                if not known.ignored:
                    self.functions[name] = known
            seen = known
        number, known_by, references = id(fun), self._known, self._references

        def gone(_: object) -> None:
            known_by.pop(number, None)
            references.pop(number, None)

        references[number] = weakref.ref(fun, gone)
        known_by[number] = seen
        return seen

    def _name(self, fun: Any, args: Any, kwargs: Any) -> str | None:
        """The label of the user's function; None where it is not the user's, or was compiled ahead of time."""
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


class _Pauses:
    """A thread that ends the pauses between bursts."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._begun = threading.Event()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="jaxobs-found-loops", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """A pause begins, on any thread."""
        self._begun.set()

    def stop(self) -> None:
        """Ends no pause any more."""
        with self._lock:
            self._stopped.set()
        self._begun.set()

    def _run(self) -> None:
        while self._begun.wait() and not self._stopped.wait(PAUSE_SECONDS):
            self._begun.clear()
            with self._lock, guarded("seen_calls.pause"):
                if not self._stopped.is_set():
                    self._end()


def _failed(failure: Exception) -> None:
    """Counts a failure of ours. Out of line, to cost nothing where there is none."""
    with guarded("seen_calls"):
        raise failure
