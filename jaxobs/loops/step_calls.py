"""Calls in the steps that a program declares, counted without a wrapper: by JAX's hook, while steps are looked at."""

from __future__ import annotations

import sys
from collections import Counter
from threading import get_ident
from typing import Any

from jaxobs.base.guard import guarded
from jaxobs.facts.compilations import EAGER
from jaxobs.internals import post_hook
from jaxobs.loops import call_names
from jaxobs.state.loops import UNNAMED, WATCHED
from jaxobs.state.store import Store
from jaxobs.state.utilization import ProgramFlops

MOST_CALLS = 4000
"""Calls that are counted in a sample interval: each costs the program's thread a microsecond."""
MOST_COUNTS = 1000


class StepCalls:
    """The recorder: on when the first step asks for its calls, off by `rest` or when `MOST_CALLS` are counted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hook = self._after_call  # always the same object, because JAX knows hooks by identity
        self._names: call_names.ByFunction[str] = call_names.ByFunction()
        self._counts: Counter[tuple[int, str]] = Counter()
        self._left = MOST_CALLS
        self._watched = 0

    def grant(self) -> None:
        """Pays for the calls of the next sample interval."""
        self._left = MOST_CALLS

    def rest(self) -> None:
        """Takes the hook off, if it is set."""
        if post_hook.holds(self._hook):
            post_hook.take(self._hook)

    def calls(self) -> dict[str, int]:
        """Returns the calls so far by function: all that wrappers count, and those of this thread that the hook saw.

        The hook does not see a call that compiles, so a new program counts as a call. `WATCHED` is a number that is
        the same as long as every call is seen, negative when too many calls were made; without the hook, there is none.
        """
        found = self._store.part(ProgramFlops).numbers()
        watched = {WATCHED: -1} if self._left <= 0 else {WATCHED: self._watched} if self._watch() else {}
        thread = get_ident()
        for (by, name), calls in dict(self._counts).items():  # at once, next to other threads
            if by == thread:
                found[name] = found.get(name, 0) + calls
        return {**found, **self._store.calls(), **watched}

    def _watch(self) -> bool:
        if not self._store.settings.find_loops or not post_hook.can_hook():
            return False
        if not post_hook.holds(self._hook) or len(self._counts) > MOST_COUNTS:
            self._watched += 1
            self._counts.clear()
            return post_hook.put(self._hook, falls=True)
        return True

    def _after_call(self, fun: Any, args: Any, kwargs: Any, output: Any) -> None:
        try:
            name = self._names.get(id(fun))
            if name is None:
                name = self._meet(fun, args, kwargs)
            self._left -= 1
            if self._left <= 0:
                self.rest()
            if name != EAGER:
                self._counts[get_ident(), name] += 1
        except Exception as failure:
            with guarded("step_calls"):
                raise failure

    def _meet(self, fun: Any, args: Any, kwargs: Any) -> str:
        name = call_names.name(fun, args, kwargs, sys._getframe(2), self._store.name_of)
        return self._names.keep(fun, UNNAMED if name is None else name)
