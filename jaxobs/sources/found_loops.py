"""Loops that are found in a program that tells of none: the slow tick takes in the calls that were seen."""

from __future__ import annotations

from collections.abc import Callable

from jaxobs.facts import Compilation, Event
from jaxobs.found_loops import CHARGED, FoundLoops, Total, longest
from jaxobs.internals import post_hook
from jaxobs.loops import Loops
from jaxobs.seen_calls import Seen, SeenCalls
from jaxobs.store import Store
from jaxobs.utilization import ProgramFlops
from jaxobs.wall import Wall


class FoundLoopsSource:
    """The source: calls of `jax.jit` functions in, where the setting `find_loops` wants that."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._calls = SeenCalls(store.name_of)
        self._can = False
        self._end: Callable[[], None] | None = None
        self._watching = False

    def start(self) -> None:
        """Begins to see calls, if JAX lets us and the setting wants it."""
        self._can = post_hook.can_hook()
        self._end = self._store.subscribe(self._compiled)
        self.sample()

    def stop(self) -> None:
        """Sees no calls any more."""
        if self._end is not None:
            self._end()
            self._end = None
        self._rest()

    def _rest(self) -> None:
        if self._watching:
            self._calls.stop()
            self._calls.forget()
            self._watching = False

    def after_fork(self) -> None:
        """In a forked child: its calls are its own."""
        if self._watching:
            self._calls.after_fork()
            self._watching = False

    def sample(self) -> None:
        """Takes in what was seen; grants more."""
        wanted = self._can and self._store.settings.find_loops and not self._store.part(Loops).any
        if not wanted:
            self._rest()
            return
        if self._watching:
            self._take_in(self._calls.fold())
        self._watching = True
        self._calls.watch(self._store.part(Wall))

    def _compiled(self, event: Event) -> None:
        """On the thread that compiled, also between two bursts: what it traced may have taken it out of our sight."""
        if self._watching and isinstance(event, Compilation):
            post_hook.repair()

    def _take_in(self, functions: list[Seen]) -> None:
        programs, counted = self._store.part(ProgramFlops), self._store.calls()
        whole_since = self._calls.whole_since
        totals = {}
        for each in functions:
            if each.name in counted:
                totals[each.name] = Total(counted[each.name], True)
                continue
            # The call that compiles is none that C++ serves.
            first, made = programs.made(each.name)
            totals[each.name] = Total(each.calls + made, first is not None and first > whole_since)
        going = self._store.part(FoundLoops).see(functions, programs.work, totals)
        charged = [each for each in going if each.seen.window[-1][1] == CHARGED]
        if charged:
            self._calls.charge({each.seen.name for each in charged}, max(longest(each) for each in charged))


def source(store: Store) -> FoundLoopsSource:
    """What the folder's discovery asks every source for."""
    return FoundLoopsSource(store)
