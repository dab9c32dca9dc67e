"""The pace of this process: how far it is and how fast, by two looks at its counts."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Mapping

MOST_TURNS = 40
FEWEST_TURNS = 3
PAUSE = 3.0
"""A turn this many times as long as usual ones is a pause: a checkpoint, an evaluation."""
FEWEST_STEPS = 10
"""Steps after which there is a usual time."""
MORE = 1.5
"""Another loop becomes the main one when it has taken so many times the time of the main one until then."""


class Pace:
    """The steps of one process: those of the loop that takes most time, else of the function with most calls."""

    def __init__(self) -> None:
        self.loop = ""
        self.steps = 0
        self.longest = 0.0
        """Seconds of the longest rest that steps followed."""
        self._seen: float | None = None
        self._grew: float | None = None
        """Time at which the count was last seen to have grown."""
        self._total = 0
        self._looks = 0
        """Looks since then."""
        self._turns: deque[tuple[float, int, int]] = deque(maxlen=MOST_TURNS)
        """Seconds between two looks at which the count had grown, by how much, and looks so far."""

    def see(self, now: float, counts: Mapping[str, int], seconds: Mapping[str, float] | None = None) -> None:
        """Takes in steps or calls by loop or function, and their seconds so far; `now` is by the monotonic clock."""
        loop = self._main(counts, seconds or {})
        total = sum(counts.values())
        self._looks += 1
        if loop != self.loop:
            self.loop, self._turns = loop, deque(maxlen=MOST_TURNS)
            self.steps, self._grew, self._looks = counts.get(loop, 0), None, 0
        made = counts.get(loop, 0) - self.steps
        if made > 0:
            if self._grew is not None:
                self._turns.append((now - self._grew, made, self._looks))
            self._grew, self.steps, self._looks = now, self.steps + made, 0
        if total != self._total or self._seen is None:  # of another loop: it is not stuck either
            if self._seen is not None and self._total:
                self.longest = max(self.longest, now - self._seen)
            self._total, self._seen = total, now

    def _main(self, counts: Mapping[str, int], seconds: Mapping[str, float]) -> str:
        """Returns the main loop: an evaluation may have more steps than the training, and on one process only."""
        most = max(counts, key=lambda name: (seconds.get(name, 0.0), counts[name]), default="")
        known = seconds.get(self.loop, 0.0)
        return self.loop if self.loop in counts and 0.0 < seconds.get(most, 0.0) < MORE * known else most

    def rest(self, now: float) -> None:
        """Something else continues that explains why no step is made: a compilation."""
        self._seen = self._grew = now
        self._looks = 0

    @property
    def usual(self) -> float | None:
        """Seconds from step to step."""
        kept = self._kept()
        if len(kept) < FEWEST_TURNS or self.steps < FEWEST_STEPS:
            return None
        # The looks come at their own pace: only many turns together tell what a step takes.
        return sum(seconds for seconds, _, _ in kept) / sum(made for _, made, _ in kept)

    @property
    def looks(self) -> int:
        """Looks that `usual` spans: it is as exact as one in so many."""
        return sum(looks for _, _, looks in self._kept())

    def _kept(self) -> list[tuple[float, int, int]]:
        """The turns without pauses."""
        turns = list(self._turns)
        longest = PAUSE * statistics.median(seconds for seconds, _, _ in turns) if turns else 0.0
        return [turn for turn in turns if turn[0] <= longest]

    def idle(self, now: float) -> float:
        """Seconds since any count was last seen to have grown."""
        return 0.0 if self._seen is None else now - self._seen
