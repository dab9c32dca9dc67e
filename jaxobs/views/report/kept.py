"""Bounded collections of a report: a log may be far larger, and whatever the bound cuts off is counted."""

import json
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")

LEAST = 8
"""Samples with which something over time can be shown."""

encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


class Newest:
    """The newest objects, so many at most, as JSON texts, which are made when they are asked for."""

    def __init__(self, most: int) -> None:
        self._texts: deque[str | Callable[[], Any]] = deque(maxlen=most)
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def texts(self) -> Sequence[str]:
        """The oldest first."""
        made = [each if isinstance(each, str) else encode(each()) for each in self._texts]
        self._texts = deque(made, self._texts.maxlen)
        return made

    def add(self, make: Callable[[], Any]) -> None:
        """Takes one in, and releases the oldest beyond the bound."""
        self.left_out += len(self._texts) == self._texts.maxlen
        self._texts.append(make)

    def drop(self) -> None:
        """Releases the oldest."""
        self._texts.popleft()
        self.left_out += 1


class Thinned(Generic[T]):
    """Samples over time, thinned to a bound: of neighbours, so many everywhere, the highest and the lowest stay."""

    def __init__(self, most: int, height: Callable[[T], float]) -> None:
        self._most, self._height = max(most, LEAST), height
        self._first: T | None = None
        self._last: T | None = None
        self._stretches: list[list[T]] = []
        """The lowest and the highest sample of each stretch of neighbours, in their order."""
        self._each = 1
        """Samples that a stretch stands for."""
        self._in_latest = 0

    def add(self, sample: T) -> None:
        """Takes one in, which is later than those before."""
        if self._first is None:
            self._first = sample
        self._last = sample
        if self._in_latest == 0:
            self._stretches.append([])
        self._stretches[-1] = self._extremes([*self._stretches[-1], sample])
        self._in_latest = (self._in_latest + 1) % self._each
        if len(self._stretches) > self._most:
            self._halve()

    def samples(self, most: int | None = None) -> list[T]:
        """The oldest first; at most `most`, and at most as many as the bound. Fewer than 8 are the last one alone."""
        bound = self._most if most is None else min(most, self._most)
        if bound < LEAST:
            return [] if self._last is None else [self._last]
        while sum(map(len, self._stretches)) > bound - 2:
            self._halve()
        found = [sample for stretch in self._stretches for sample in stretch]
        if self._first is not None and found[0] is not self._first:
            found.insert(0, self._first)
        if self._last is not None and found[-1] is not self._last:
            found.append(self._last)
        return found

    def _halve(self) -> None:
        """Makes one stretch of every two; a last one alone goes on."""
        if len(self._stretches) % 2 == 0 and self._in_latest:
            self._in_latest += self._each
        elif len(self._stretches) % 2:
            self._in_latest = self._in_latest or self._each
        pairs = range(0, len(self._stretches), 2)
        self._stretches = [
            self._extremes([each for pair in self._stretches[at : at + 2] for each in pair]) for at in pairs
        ]
        self._each *= 2

    def _extremes(self, samples: list[T]) -> list[T]:
        if len(samples) < 3:
            return samples
        low = min(range(len(samples)), key=lambda at: self._height(samples[at]))
        high = max(range(len(samples)), key=lambda at: self._height(samples[at]))
        return [samples[at] for at in sorted({low, high})]
