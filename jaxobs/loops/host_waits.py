"""In how much of a found loop's time the host waits for the devices, because it reads an array in each step.

A host that does not read runs ahead of its devices. One that reads in each step waits until the step is computed, and
the devices are idle until it has dispatched the next one: that costs the lesser of the two times. A host that reads in
some steps only costs next to nothing: it waits there for all the steps that it ran ahead of, so these take long, and
what continues for longer than usual does not count.
"""

from __future__ import annotations

from collections import Counter

from jaxobs.facts.loops import HostWait
from jaxobs.internals.array_reads import waits_for_array
from jaxobs.internals.source_files import is_jax, is_plumbing, shown
from jaxobs.loops.call_places import Line, Place
from jaxobs.loops.positions import line_of

USUAL = 1.5
"""A step continues as usual for so many times the median."""
FEWEST_LOOKS = 20
MOST_DEEP = 4
"""Innermost frames among which the one that waits is looked for."""
MOST_LOOPS, MOST_LINES = 32, 16


class HostWaits:
    """Looks at the steps of found loops, by loop."""

    def __init__(self) -> None:
        self._looks: Counter[str] = Counter()
        self._waits: dict[str, Counter[Line]] = {}

    def look(self, loop: str, here: Place) -> None:
        """Takes in where the thread is in a step of a usual length."""
        if loop not in self._looks and len(self._looks) >= MOST_LOOPS:
            return
        self._looks[loop] += 1
        line = _waits_at(here)
        if line is not None:
            lines = self._waits.setdefault(loop, Counter())
            if line in lines or len(lines) < MOST_LINES:
                lines[line] += 1

    def of(self, loop: str) -> HostWait | None:
        """Returns the waits of a loop's host; None if there were too few looks."""
        looks, lines = self._looks[loop], self._waits.get(loop, Counter())
        if looks < FEWEST_LOOKS or not lines:
            return None
        share = sum(lines.values()) / looks
        line: Line = max(lines, key=lambda each: lines[each])
        return HostWait(
            share=share, idle_share=min(share, 1 - share), looks=looks,
            where=f"{shown(line[0].co_filename)}:{line_of(*line)}",
        )  # fmt: skip


def _waits_at(here: Place) -> Line | None:
    """The innermost line of the user's, or else of a library's but JAX's, if the thread waits for an array."""
    if not here or not any(waits_for_array(code) for code, _ in here[:MOST_DEEP]):
        return None
    outside = [line for line in here if not is_jax(line[0].co_filename)]
    return next((line for line in outside if not is_plumbing(line[0].co_filename)), outside[0] if outside else None)
