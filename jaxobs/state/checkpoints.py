"""Checkpoints: how long they take by operation, and which steps the latest complete one holds.

Work that no complete checkpoint holds is lost when the process ends. An asynchronous save holds the steps that were
made when it began, from the moment at which it is complete.
"""

import sys
import time
from collections import Counter, deque
from dataclasses import dataclass

from jaxobs.base import threads
from jaxobs.facts.functions import Histogram
from jaxobs.facts.wall import CHECKPOINT_OPERATIONS
from jaxobs.internals.source_files import user_line
from jaxobs.metrics.buckets import CHECKPOINT_BOUNDS
from jaxobs.state.call_stats import MutableHistogram
from jaxobs.state.wall import Wall

_MOST_UNDER_WAY = 8

MOST_LATEST = 64


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a checkpoint, such as a save."""

    operation: str
    """A name from `CHECKPOINT_OPERATIONS`."""
    ended: float
    """In seconds since the epoch."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment of a process, by the work that it had done."""

    steps: int = 0
    step_seconds: float = 0.0


def mark(wall: Wall) -> Mark:
    """This moment."""
    return Mark(wall.steps, wall.seconds()["step"])


class Checkpoints:
    """Checkpoints of this process: operations, times, and the work that they hold. Safe for threads."""

    def __init__(self) -> None:
        # Reentrant: the program may save a checkpoint in a signal handler.
        self._lock = threads.RLock()
        self._seconds: dict[str, MutableHistogram] = {}
        self._under_way: deque[Mark] = deque(maxlen=_MOST_UNDER_WAY)
        self._latest: deque[Operation] = deque(maxlen=MOST_LATEST)
        self.told = 0
        """Events of a checkpoint library so far."""
        self.bytes: Counter[str] = Counter()
        """Bytes by operation, as far as a library reports them."""
        self.failures: Counter[str] = Counter()
        """Operations that raised an exception, by operation."""
        self.lines: dict[str, float] = {}
        """Seconds by the line of the program that was held up."""
        self.complete = 0
        """Checkpoints that were saved completely."""
        self.latest = Mark()
        """Work that the latest complete checkpoint holds; none before the first."""

    def observe(self, operation: str, seconds: float) -> None:
        """An operation, one of `CHECKPOINT_OPERATIONS`, took so long."""
        assert operation in CHECKPOINT_OPERATIONS, operation
        line = user_line(sys._getframe(1)) if operation != "save_async" else None
        with self._lock:
            if line is not None and (line in self.lines or len(self.lines) < MOST_LATEST):
                self.lines[line] = self.lines.get(line, 0.0) + seconds
            self._seconds.setdefault(operation, MutableHistogram(CHECKPOINT_BOUNDS)).observe(seconds)
            self._latest.append(Operation(operation, time.time(), seconds))

    def sized(self, operation: str, size: int) -> None:
        """An operation wrote or read so many bytes."""
        with self._lock:
            self.bytes[operation] += size

    def failed(self, operation: str) -> None:
        """An operation raised an exception."""
        with self._lock:
            self.failures[operation] += 1

    def since(self, ended: float) -> list[Operation]:
        """The operations that ended after that, in seconds since the epoch, as far as they are kept."""
        with self._lock:
            return [each for each in self._latest if each.ended > ended]

    def begin(self, begun: Mark) -> None:
        """A save begins."""
        with self._lock:
            self._under_way.append(begun)

    def only_latest(self) -> None:
        """A save lets its caller go on: by then the one before it is complete, or has failed."""
        with self._lock:
            while len(self._under_way) > 1:
                self._under_way.popleft()

    def end(self) -> None:
        """The save that began first is complete."""
        with self._lock:
            if self._under_way:
                self.saved(self._under_way.popleft())

    def saved(self, holds: Mark) -> None:
        """A checkpoint that holds so much is complete."""
        with self._lock:
            self.complete += 1
            if holds.step_seconds >= self.latest.step_seconds:
                self.latest = holds

    def frozen(self) -> dict[str, Histogram]:
        """Seconds by operation."""
        with self._lock:
            return {name: histogram.frozen() for name, histogram in self._seconds.items()}
