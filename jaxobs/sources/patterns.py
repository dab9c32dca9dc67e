"""Patterns over time: each compilation goes through `findings.patterns`; what these find is recorded as a `Finding`."""

import math
import time

from jaxobs.base import threads
from jaxobs.base.guard import guard
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.findings.patterns import Patterns
from jaxobs.loops.found_loops import FoundLoops
from jaxobs.sources.support.source import Subscriber, keep
from jaxobs.state.loops import Loops


class PatternsSource(Subscriber):
    """The source: compilations from the store in, findings into the store out, on the thread that compiled."""

    answers = True

    def _begin(self) -> None:
        # Reentrant: a signal handler of the program may compile while this thread is in here.
        self._lock = threads.RLock()
        self._patterns = Patterns(made=self._made)

    def sample(self) -> None:
        """Brings the snapshot's findings up to date with what has grown since they were reported."""
        now = time.time()
        with self._lock:
            news = [(finding, True) for finding in (*self._patterns.stood(now), *self._patterns.settled(now))]
            grown = [(finding, False) for finding in self._patterns.grown()]
        keep(self._store, news + grown)

    def concluding(self) -> None:
        """Reports what nothing can refute any more."""
        with self._lock:
            news = [(finding, True) for finding in self._patterns.stood(math.inf)]
        keep(self._store, news)

    def _made(self, function: str) -> int | None:
        """Calls of a function, or else steps of the loops that the program reports: each calls it, or does without."""
        loops = self._store.part(Loops)
        if (counted := self._store.calls().get(function)) is not None:
            return counted
        if not loops.any:
            return self._store.part(FoundLoops).made(function)
        return sum(loops.steps().values())

    @guard("patterns")
    def _on_event(self, event: Event) -> None:
        if not isinstance(event, Compilation):
            return
        with self._lock:
            due = [(finding, True) for finding in self._patterns.see(event)]
        keep(self._store, due)


source = PatternsSource
