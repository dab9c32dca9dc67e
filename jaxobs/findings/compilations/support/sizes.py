"""The sizes that a dimension takes: whether they look like buckets already, and which buckets would hold them.

A set of buckets is bounded: either each is well above the one before (powers of two), so that there can be only as many
as the logarithm of the largest, or all are multiples of one step.
"""

import functools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from jaxobs.facts.compilations import Change

STEP_UP = 1.3
"""A bucket is at least so many times the one before. Powers of two are 2 apart, those of their square root 1.41, and
64, 96, 128, 192 are at least 1.33 apart; sizes that come as the data come lie closer."""

MOST_CROWDED = 3
"""Sizes that may lie closer than buckets do: the last batches of training, validation and test."""

ALIGNED = 8
"""Sizes that are all multiples of this or of a larger number were rounded on purpose."""

MOST_ALIGNED = 16
"""Rounded sizes that may lie closer than that: a ladder such as 128, 256, 384, ... is bounded, if long."""

RUN = 6
"""Sizes in a row, each one more than the last (3, 4, 5, 6, 7, 8), that are never buckets, small as they are."""

MOST_BUCKETS = 8
"""Programs that suggested buckets leave at most, where there is a choice: each takes compile time and memory."""

WORTH = 0.03
"""The share of padding that one program less is worth. Padding costs at every step, a program once."""


def crowded(sizes: Collection[int]) -> int:
    """Returns how many sizes lie too close to another one to be buckets."""
    chosen, close = 0, 0
    for size in sorted(sizes):
        if chosen and size < chosen * STEP_UP:
            close += 1
        else:
            chosen = size
    return close


def aligned(sizes: Collection[int]) -> bool:
    """Returns whether the sizes were rounded on purpose."""
    return math.gcd(*sizes) >= ALIGNED


def bucket_like(sizes: Collection[int], most_crowded: int = MOST_CROWDED) -> bool:
    """Returns whether these sizes look like a bounded set that somebody chose, give or take a few remainders."""
    rounded = aligned(sizes)
    if not rounded and _longest_run(set(sizes)) >= RUN:
        return False
    positive = [size for size in sizes if size > 0]
    return crowded(positive) <= (MOST_ALIGNED if rounded else most_crowded)


def _longest_run(sizes: set[int]) -> int:
    longest = 0
    for size in sizes:
        if size - 1 not in sizes:
            length = 1
            while size + length in sizes:
                length += 1
            longest = max(longest, length)
    return longest


@dataclass(frozen=True, slots=True)
class Buckets:
    """A way to round sizes up."""

    rule: str
    """In words: `powers of two`, `multiples of 64`, `32`."""
    sizes: tuple[int, ...]
    """From the one for the smallest size seen to that for the largest: at most as many programs would be left."""
    padding: float
    """Share of padding in what would be computed, from 0 to 1, were each size seen as often as any other."""


def suggested(sizes: Collection[int]) -> Buckets:
    """Returns buckets that bound programs and padding best: powers of two for ascending sizes, which go on."""
    in_order = [size for size in sizes if size > 0]
    ascending = sorted(in_order)
    powers = _powers_of_two(ascending)
    if in_order == ascending:
        return powers
    few = (each for each in _multiples(ascending) if len(each.sizes) <= MOST_BUCKETS)
    # Where one is enough the multiples have it as well, and by its plain number.
    return min(*few, powers, key=lambda each: each.padding + WORTH * len(each.sizes))


def _powers_of_two(sizes: Sequence[int]) -> Buckets:
    first, last = ((size - 1).bit_length() for size in (sizes[0], sizes[-1]))
    padded = sum(1 << (size - 1).bit_length() for size in sizes)
    return Buckets("powers of two", tuple(1 << n for n in range(first, last + 1)), 1 - sum(sizes) / padded)


def _multiples(sizes: Sequence[int]) -> Iterator[Buckets]:
    """Yields buckets of ever larger steps; in the end a single bucket."""
    smallest, largest = sizes[0], sizes[-1]
    step = ALIGNED if largest > 2 * ALIGNED else 2
    while True:
        buckets = tuple(range(_rounded_up(smallest, step), _rounded_up(largest, step) + 1, step))
        padded = sum(_rounded_up(size, step) for size in sizes)
        rule = f"multiples of {step:,}" if len(buckets) > 1 else f"{buckets[0]:,}"
        yield Buckets(rule, buckets, 1 - sum(sizes) / padded)
        if len(buckets) == 1:
            return
        step *= 2


def _rounded_up(size: int, step: int) -> int:
    return -(-size // step) * step


def shape(text: str) -> tuple[int, ...] | None:
    """The sizes in `float32[32,128]`, or in `(32, 128)`; None where the text is neither."""
    if text.startswith("("):
        inside = text[1:-1].rstrip(",")
    else:
        start, end = text.find("["), text.rfind("]")
        if start < 0 or end < start:
            return None
        inside = text[start + 1 : end]
    if not inside:
        return ()
    try:
        return tuple(map(int, inside.split(",")))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Varied:
    """A dimension that took another size."""

    path: str
    number: int
    before: int
    after: int
    change: Change


@functools.lru_cache(maxsize=256)
def _varied(before: str, after: str) -> tuple[tuple[int, int, int], ...]:
    old, new = shape(before), shape(after)
    if old is None or new is None or len(old) != len(new):
        return ()
    return tuple((number, a, b) for number, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)


def varied(change: Change) -> list[Varied]:
    """The dimensions in which two shapes of one rank differ."""
    return [Varied(change.path, *each, change) for each in _varied(change.before, change.after)]


def grown(changes: Sequence[Change], results: Collection[tuple[int, ...]]) -> tuple[str, ...]:
    """Returns the arguments that grew in one dimension and of which a result has grown by as much again."""
    found = []
    for change in changes:
        after = shape(change.after)
        differing = varied(change) if change.what == "shape" and after is not None else []
        if after is not None and len(differing) == 1 and differing[0].after > differing[0].before:
            only = differing[0]
            following = (*after[: only.number], 2 * only.after - only.before, *after[only.number + 1 :])
            if following in results:
                found.append(change.path)
    return tuple(found)


def dimensions(changes: Sequence[Change]) -> list[Varied]:
    """The dimensions that took another size, one for all that went from the same size to the same size."""
    found: dict[tuple[int, int], Varied] = {}
    for change in changes:
        if change.what == "shape":
            for number, before, after in _varied(change.before, change.after):
                if (before, after) not in found:
                    found[before, after] = Varied(change.path, number, before, after, change)
    return list(found.values())
