"""Answering: the lines at which the requests of a service are, by looks at the threads that answer them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from jaxobs.facts.requests import AnsweringLine
from jaxobs.loops.spots import Spot

MOST_LINES, MOST_SHOWN = 256, 6
LEAST_SHOWN = 0.02
"""Share of the time that each line of a snapshot has at least."""
OFTEN = 0.2
"""Part of the looks at a lock in which another thread is at one line, so that the thread may hold the lock."""
MOST_SECONDS = 1.0
"""Seconds between two looks that count at most: in a longer pause the process was stopped."""


class Answering:
    """The seconds in which a service answered requests, each second at one line."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str], float] = {}
        self._before: float | None = None
        self._locked: Counter[str] = Counter()
        """Looks at each line that waits for a lock, ..."""
        self._meanwhile: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """... and those in which another thread worked at a line."""

    def saw(self, spots: Sequence[Spot], now: float, computes: Callable[[], bool]) -> None:
        """Takes in a look: a request in JAX stands for all, then one that works, then one that waits for a lock.

        Args:
          spots: where threads are, those among them that answer requests.
          now: seconds of the monotonic clock.
          computes: returns whether a device computes anything.
        """
        before, self._before = self._before, now
        answering = [each for each in spots if each.answers]
        if before is None or not answering:
            return
        spot, at = next((each for each in answering if each.in_jax or each.reads), None), "jax"
        if spot is None:  # what works may be in C++ of JAX, which has no frame
            works = next((each for each in answering if each.works), None)
            spot = works or next((each for each in answering if each.locks), answering[0])
            at = "jax" if computes() else "lock" if spot.locks else "host"
        if (spot.line, at) not in self._seconds and len(self._seconds) >= MOST_LINES:
            return
        self._seconds[spot.line, at] = self._seconds.get((spot.line, at), 0.0) + min(now - before, MOST_SECONDS)
        if at == "lock":
            self._locked[spot.line] += 1
            self._meanwhile[spot.line].update({each.line for each in spots if each.works})

    def _held_at(self, line: str) -> str | None:
        """Returns where another thread most often is while threads wait for a lock at a line; None if it is nowhere."""
        most, looks = next(iter(self._meanwhile[line].most_common(1)), ("", 0))
        return most if looks > OFTEN * self._locked[line] else None

    def lines(self) -> tuple[AnsweringLine, ...]:
        """Returns the lines with the most seconds, the most first."""
        seconds = self._seconds.copy()
        total = sum(seconds.values())
        most = sorted(seconds.items(), key=lambda item: -item[1])[:MOST_SHOWN]
        return tuple(
            AnsweringLine(line=line, at=at, seconds=spent, share=spent / total,
                          held_at=self._held_at(line) if at == "lock" else None)
            for (line, at), spent in most
            if spent >= LEAST_SHOWN * total > 0.0
        )  # fmt: skip
