"""How far this process is and how fast, by two looks at its counts; and where its main thread is at each look."""

from __future__ import annotations

import statistics
import sys
import threading
from collections import Counter, deque
from collections.abc import Mapping

from jaxobs.internals.source_files import is_jax, is_own, is_plumbing

MOST_TURNS = 20
FEWEST_TURNS = 3
PAUSE = 3.0
"""A turn this many times as long as usual ones is a pause: a checkpoint, an evaluation."""
FEWEST_STEPS = 10
"""Steps after which there is a usual time."""
MOST_LOOKS = 20
FEWEST_LOOKS = 10
_MOST_FRAMES = 200


class Pace:
    """The steps of one process: those of the loop, or calls of the function, that has most."""

    def __init__(self) -> None:
        self.loop = ""
        self.steps = 0
        self._seen: float | None = None
        self._grew: float | None = None
        """When it was last seen that the count had grown."""
        self._total = 0
        self._looks = 0
        """Since then."""
        self._turns: deque[tuple[float, int, int]] = deque(maxlen=MOST_TURNS)
        """Seconds between two looks at which the count had grown, by how much, and looks so far."""

    def see(self, now: float, counts: Mapping[str, int]) -> None:
        """Takes in the counts by loop or function, at a time of the monotonic clock."""
        loop = max(counts, key=lambda name: counts[name], default="")
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
            self._total, self._seen = total, now

    def rest(self, now: float) -> None:
        """Something else goes on that explains why no step is made: a compilation."""
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
        """How many looks that spans: it is as exact as one in so many."""
        return sum(looks for _, _, looks in self._kept())

    def _kept(self) -> list[tuple[float, int, int]]:
        """The turns without pauses."""
        turns = list(self._turns)
        longest = PAUSE * statistics.median(seconds for seconds, _, _ in turns) if turns else 0.0
        return [turn for turn in turns if turn[0] <= longest]

    def idle(self, now: float) -> float:
        """Seconds since any count was last seen to have grown."""
        return 0.0 if self._seen is None else now - self._seen


class Looks:
    """Where the main thread was at the latest looks: inside JAX, or at a line of the program's own."""

    def __init__(self) -> None:
        self._looks: deque[tuple[bool, str]] = deque(maxlen=MOST_LOOKS)

    def look(self) -> None:
        """Looks once. Nothing is read but file names and line numbers."""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        inside, line, count = False, "", 0
        while frame is not None and not line and count < _MOST_FRAMES:
            name = frame.f_code.co_filename
            # Called from a wrapper of ours, it is in JAX as well: its fast path has no frame of Python.
            inside = inside or is_jax(name) or (is_own(name) and count == 0)
            line = "" if is_plumbing(name) else f"{name}:{frame.f_lineno}"
            frame, count = frame.f_back, count + 1
        self._looks.append((inside, line))

    @property
    def inside(self) -> bool:
        """Whether it was inside JAX at the last look."""
        return bool(self._looks) and self._looks[-1][0]

    @property
    def at(self) -> str:
        """`file:line` of the program's own code at the last look; empty where none was in sight."""
        return self._looks[-1][1] if self._looks else ""

    @property
    def waiting(self) -> float | None:
        """Share of the looks at which it was inside JAX; None as long as there were too few."""
        looks = list(self._looks)
        return sum(inside for inside, _ in looks) / len(looks) if len(looks) >= FEWEST_LOOKS else None

    @property
    def line(self) -> str:
        """`file:line` where it was most often when it was not inside JAX; empty where none is known."""
        lines = Counter(line for inside, line in list(self._looks) if line and not inside)
        return lines.most_common(1)[0][0] if lines else ""
