"""Turns of loops that were found, charged on the thread that makes them: from a call to the next, by what the first is.

A turn costs nothing until turns make up a stretch. The last one of a loop is taken to have been as long as usual.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol

from jaxobs.loops.call_places import Place
from jaxobs.state.wall import Wall

CHARGED_SECONDS = 0.05
"""Turns are charged when they make up that much."""
SLOW, SLOW_SECONDS = 3.0, 0.1
"""A turn that takes more times the mean, and more than that, ends a loop that goes: the loop had come to rest, unless
something is known that continued."""
MOST_EVALUATION = 10.0
"""An evaluation of which it is not known yet how long it takes, from its last call to the next step, takes at most so
many seconds."""
KNOWN = 3
"""Evaluations after which it is known."""
MOST_AHEAD = 64.0
"""How many turns a host is taken to run ahead of its devices at most: then it waits for them, and does not rest."""


class Tracked(Protocol):
    """A function whose calls begin turns."""

    name: str
    category: str | None
    """Category of its turns: `step` or `eval`."""
    usual: float
    """Seconds of a turn as a rule; 0 if that is not known."""
    known: int
    """Turns of an evaluation by which that is known."""


class EarlyLooks(Protocol):
    """Looks of a second thread before a loop was known."""

    def waited(self, since: float) -> float:
        """Seconds since then in which the loop waited for its input."""

    def learn(self, began: float, ended: float) -> None:
        """Between these there was a usual turn."""

    def seen(self, began: float, ended: float) -> tuple[float, float]:
        """Seconds between these in which a turn was seen to go on, and not to."""


Call = tuple[float, float, int, Tracked]
"""Moment of a call, seconds apart from the loop by then, number of the burst, and function."""


class Turns:
    """Turns of the charged thread that are not charged yet."""

    def __init__(self) -> None:
        self.longest = 0.0
        """A turn that takes longer is not one: the loop had come to rest. 0 as long as no loop was found."""
        self.last = 0.0
        """The moment the last turn began."""
        self.apart = 0.0
        """Seconds that were apart from the loop by then."""
        self.called = 0.0
        """The end of the latest call that was looked at more closely."""
        self.due = 0.0
        """The moment at which the next turn must be charged."""
        self.category: str | None = None
        """Category of the turn that goes on."""
        self.begun = False
        """Whether what was turns already when the loop was found has been charged."""
        self._seen: Tracked | None = None
        self.median = 0.0
        """Seconds of a turn; 0 as long as no loop was found."""
        self.count = 0
        """Turns since the host waited last."""
        self.pace = 0.0
        """Seconds of a turn for which the host waits: the 90th percentile."""
        self._waited = 0.0
        """The moment the host waited last."""
        self._since: float | None = None
        """Until when turns have been charged; None where they begin again."""
        self._burst = 0
        # Of the thread that looks (see `thread_looks`):
        self.place: Place | None = None
        """Place of the latest call that the looking thread wanted to know of."""
        self.wants_place = True
        """Whether the looking thread wants to know the place of the next call."""
        self.overdue = (0.0, 0.0, 0.0)
        """Begin of an overdue turn, and its seconds so far in which it was seen to go on, and not to."""
        self.waited = 0.0
        """Seconds of turns that were spent in the loop's input, so far."""
        self.slow = 0.0
        """Begin of the latest turn that took longer than usual."""
        self._charged_waits = 0.0

    @property
    def function(self) -> str | None:
        """Name of the function whose turn goes on."""
        return None if self._seen is None else self._seen.name

    def restart(self) -> None:
        """Forgets the turn that goes on."""
        self._since = self._seen = self.category = None
        self.begun = False
        self.due = 0.0

    def begin(self, wall: Wall, calls: Sequence[Call], now: float, looks: EarlyLooks | None) -> None:
        """A loop was found: so far these calls were its turns, in their order; the last one is made now."""
        calls = [each for each in calls if each[0] >= wall.known_since] or calls[-1:]
        rested = evaluated = 0.0
        slow: list[tuple[float, float, float, Tracked]] = []
        for (began, apart, _, seen), (ended, left, _, following) in itertools.pairwise(calls):
            passed = max(0.0, ended - began - (left - apart))
            if passed > self._most(seen, following):
                slow.append((began, ended, passed, seen))
                continue
            if seen.category == "eval":
                evaluated += passed
            elif looks is not None:
                looks.learn(began, ended)
        for began, ended, passed, seen in slow:
            going, resting = (0.0, 0.0) if looks is None else looks.seen(began, ended)
            rested += _rested(seen, passed, going, resting)
        began, (last, apart, self._burst, seen) = calls[0][0], calls[-1]
        self.begun = True
        self._seen, self.category, self.last, self.apart = seen, seen.category, last, apart
        self.count, self._waited = 0, last
        self._charged_waits = self.waited
        if seen.category == "eval":
            evaluated += now - last
        parts = {"eval": evaluated, "input_wait": 0.0 if looks is None else looks.waited(began)}
        told = wall.turned(now - began, less=rested, parts=parts)
        self._go_on(wall, seen, told, now)

    def turn(self, wall: Wall, call: Call, paused: float, now: float) -> None:
        """A turn begins, as the one before it ends, with a call: now, or earlier if the call took long.

        Args:
          paused: seconds for which calls are not seen between two bursts; the loop continues meanwhile.
        """
        before, category, since, last = self._seen, self.category, self._since, self.last
        began, apart, burst, seen = call
        self._seen, self.category = seen, seen.category
        passed = began - last - (apart - self.apart)
        if burst != self._burst:
            self._burst = burst
            passed -= paused
        if before is None or category is None or since is None:
            self._go_on(wall, seen, wall.at_rest, now)
            return
        most, rested = self._most(before, seen), 0.0
        if passed > most:
            self.slow = last
            if passed - self._ahead(last) > most:
                of, going, resting = self.overdue
                rested = _rested(before, passed, *((going, resting) if of == last else (0.0, 0.0)))
            self.count, self._waited = 0, began
        if not rested and category is seen.category and began - since < CHARGED_SECONDS:
            self.due = since + CHARGED_SECONDS
            return
        if category == "eval" and seen.category != "eval" and not rested:
            before.usual = (before.usual * before.known + passed) / (before.known + 1)
            before.known += 1
        parts: dict[str, float] = {}
        if category == "step":
            parts["input_wait"] = min(self.waited - self._charged_waits, max(0.0, began - since - rested))
            self._charged_waits += parts["input_wait"]
        if seen.category not in (None, category):
            parts[seen.category] = now - began  # in this call, which has returned
        self._go_on(wall, seen, wall.turned(now - since, category, less=rested, parts=parts), now)

    def _go_on(self, wall: Wall, seen: Tracked, told: bool, now: float) -> None:
        self._since, self.due = (now, now + CHARGED_SECONDS) if told else (None, 0.0)
        if told and seen.category is not None:
            wall.expect(seen.category, seen.usual + CHARGED_SECONDS)

    def _ahead(self, last: float) -> float:
        """Seconds that the host has gone ahead of its devices until then."""
        return max(0.0, min(self.count * self.pace - (last - self._waited), MOST_AHEAD * self.pace))

    def _most(self, seen: Tracked, following: Tracked) -> float:
        if seen.category == "step" and following.category == "eval":
            return max(self.longest, MOST_EVALUATION)  # before it evaluates, it waits for its devices
        if seen.category != "eval":
            return self.longest
        return max(self.longest, SLOW * seen.usual if seen.known >= KNOWN else MOST_EVALUATION)


def _rested(seen: Tracked, passed: float, going: float, resting: float) -> float:
    """Seconds of a turn that took long in which the loop was at rest: but for its usual length, unless it was seen to
    go on."""
    return min(resting, passed) if going else max(0.0, passed - seen.usual)
