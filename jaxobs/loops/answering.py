"""Answering: the lines at which the requests of a service are, by looks at the threads that answer them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from jaxobs.facts.requests import AnsweringLine
from jaxobs.loops.spots import Spot

MOST_THREADS = 8
"""Threads, chosen by chance, that a look reads."""
MOST_LINES, MOST_SHOWN = 256, 6
LEAST_SHOWN = 0.02
"""Share of the time that each line of a snapshot has at least."""
OFTEN, DISTINCT = 0.2, 2.0
"""Another thread may hold a lock if it is at one line in this part of the looks at the lock, and in so many times the
part of all other looks: a thread that always works, or always waits in C, is there whether requests wait or not."""
MOST_SECONDS = 2.0
"""Seconds between two looks that count at most: in a longer pause the process was stopped."""


class Answering:
    """The seconds in which a service answered requests, each second at one line."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str], float] = {}
        self._before: float | None = None
        self._looks: Counter[str] = Counter()
        """Looks at each line that waits for a lock, and all others under an empty name, ..."""
        self._meanwhile: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """... and those of them in which another thread was at a line."""

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
        lock = spot.line if at == "lock" else ""
        self._looks[lock] += 1
        for line in {each.line for each in spots if each.works}:
            if line in self._meanwhile[lock] or len(self._meanwhile[lock]) < MOST_LINES:
                self._meanwhile[lock][line] += 1

    def _held_at(self, lock: str) -> str | None:
        """Returns the line at which another thread is while requests wait for a lock, and else hardly ever."""
        others, looks = self._meanwhile[""], self._looks[""]
        for line, count in self._meanwhile[lock].most_common():
            share = count / self._looks[lock]
            if share > OFTEN and share > DISTINCT * (others[line] + 1) / (looks + 2):
                return line
        return None

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
