"""Our histograms as single values: OpenTelemetry's Python SDK has no instrument that takes whole buckets.

What was observed since the last time is recorded as so many values in each bucket whose sum is the observed one. Counts
and sums are exact; where a value lies inside its bucket is made up, and so are the smallest and the largest one, which
the SDK keeps. (Without them it would export infinities.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxobs.facts.histograms import Histogram

MOST_VALUES = 20_000
"""Values of one series that are recorded at a time: about 0.1 s. The others follow at the next collection."""


@dataclass(slots=True)
class Recorded:
    """Values of one series that were recorded so far."""

    counts: list[int] = field(default_factory=list)
    sum: float = 0.0

    def values(self, now: Histogram, most: int = MOST_VALUES) -> Iterator[float]:
        """The values to record so that counts and sum become those of `now`, the sum to the last bit but rounding.

        A histogram that has fewer than before was reset: then it counts from nothing.
        """
        if (
            not self.counts
            or len(self.counts) != len(now.counts)
            or any(new < old for new, old in zip(now.counts, self.counts, strict=True))
        ):
            self.counts, self.sum = [0] * len(now.counts), 0.0
        missing = [new - old for new, old in zip(now.counts, self.counts, strict=True)]
        if sum(missing) == 0:
            return
        amount = now.sum - self.sum
        share = min(1.0, most / sum(missing))
        if share < 1.0:
            amount, missing = amount * share, [math.floor(count * share) for count in missing]
        self.counts = [old + count for old, count in zip(self.counts, missing, strict=True)]
        for value in _with_sum(now.bounds, missing, amount):
            self.sum += value
            yield value


def _with_sum(bounds: tuple[float, ...], counts: list[int], amount: float) -> Iterator[float]:
    """Returns values for each bucket, `amount` in all, or as near to it as the buckets allow."""
    filled = [(count, *_bucket(bounds, position)) for position, count in enumerate(counts) if count]
    least = sum(count * low for count, low, _ in filled)
    if counts[-1]:
        # Without a bound of its own: as far as the sum asks for.
        count, low, _ = filled[-1]
        filled[-1] = count, low, low + max(0.0, amount - least) / count
    most = sum(count * high for count, _, high in filled)
    share = 0.0 if most <= least else min(1.0, max(0.0, (amount - least) / (most - least)))
    total, left = 0.0, sum(counts)
    for count, low, high in filled:
        value = min(high, max(low, low + share * (high - low)))
        for _ in range(count):
            left -= 1
            # The last one takes what rounding has left over.
            each = value if left else min(high, max(low, amount - total))
            total += each
            yield each


def _bucket(bounds: tuple[float, ...], position: int) -> tuple[float, float]:
    """The smallest and the largest value of a bucket: above the bound below it, and at most its own."""
    low = math.nextafter(bounds[position - 1], math.inf) if position else 0.0
    return low, bounds[position] if position < len(bounds) else math.inf
