"""Progress of this process: steps by loop, as the program marks them, else as the calls of its functions tell."""

from __future__ import annotations

from jaxobs.facts.loops import LoopState
from jaxobs.loops.found_loops import FoundLoops
from jaxobs.state.loops import Loops
from jaxobs.state.store import Store

SETTLED_TICKS = 2
"""Ticks after which the calls before a compilation are all counted: they are taken in by the tick."""


class Progress:
    """The counts at the latest look."""

    def __init__(self) -> None:
        self.steps: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        """Seconds that the steps took, where that is known."""
        self._loops: dict[str, LoopState] = {}
        self._ticks = 0
        self._compiled = -SETTLED_TICKS

    def tick(self) -> None:
        """A tick comes: what was called until the one before it is counted."""
        self._ticks += 1

    def compiled(self) -> None:
        """A program that spans processes was compiled."""
        self._compiled = self._ticks

    def look(self, store: Store) -> None:
        """Takes in how far the loops are."""
        marked = store.part(Loops)
        states = [each.frozen() for each in marked.all()] if marked.any else store.part(FoundLoops).frozen()
        self._loops = {each.name: each for each in states}
        self.steps = {} if marked.any else store.calls()
        for each in states:
            self.steps.setdefault(each.name, each.steps)
        self.seconds = {each.name: each.steps * (each.mean_seconds or 0.0) for each in states}

    def found(self, loop: str) -> bool:
        """Returns whether the program does not mark the steps of this loop."""
        state = self._loops.get(loop)
        return state is None or state.found

    def exact(self, loop: str) -> bool:
        """Returns whether all steps are counted, and those before the latest program too."""
        state = self._loops.get(loop)
        if state is None or not state.found:
            return True
        return state.steps_counted and self._ticks - self._compiled > SETTLED_TICKS

    def typical(self, loop: str) -> float | None:
        """The median time of a step; None where single steps are not seen, or take no time."""
        state = self._loops.get(loop)
        return None if state is None else state.p50_seconds or None
