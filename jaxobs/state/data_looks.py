"""Whether numbers look like placeholders for data: one value throughout, or drawn by chance. Numbers in, words out.

Real data fails these tests by far: neighbours are alike, values come with unlike frequency, or in few steps. What
passes them may still be real (noise, compressed bytes), so this is said as a look, and with what it looks like.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jaxobs.base.lazy import LazyModule

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")


MOST_VALUES = 8192
LEAST_VALUES = 512
"""Below it, small tables of real numbers pass for chance."""
LEAST_DISTINCT = 0.9
"""Part of the values of a float32 or float64 array that differ: pixels divided by 255 come in 256 steps."""
_KOLMOGOROV = 1.95
"""Distance to the distribution times the root of the number: exceeded by chance once in a thousand."""
_SIGMAS = 5.0


def looks(parts: Sequence[Any], shape: tuple[int, ...]) -> tuple[str | None, str | None]:
    """One of `facts.inputs.DATA_LOOKS` and the same in words, or None twice.

    Args:
      parts: samples of one array in the order of its elements, one for each batch.
      shape: of the whole array.
    """
    values = np.concatenate([np.asarray(part).ravel() for part in parts]) if parts else np.zeros(0)
    if values.dtype.kind not in "biufV" or values.size < 2:
        return None, None
    if values.dtype.kind == "V":  # bfloat16 and the like
        values = values.astype(np.float32)
    if bool((values == values[0]).all()):
        return "constant", "one value throughout"
    values = values[:MOST_VALUES]
    if values.size < LEAST_VALUES or values.dtype.kind == "b":
        return None, None
    if values.dtype.kind in "iu":
        # Labels of a shuffled, balanced set are drawn by chance as well.
        chance = len(shape) > 1 and _uniform_integers(values) and _unrelated(values.astype(float), shape)
        return ("random", "like uniform random integers") if chance else (None, None)
    return _floats(values, shape)


def _floats(values: Any, shape: tuple[int, ...]) -> tuple[str | None, str | None]:
    fine = values.dtype.itemsize >= 4
    values = values.astype(np.float64)
    if not np.isfinite(values).all() or (fine and np.unique(values).size < LEAST_DISTINCT * values.size):
        return None, None
    if not _unrelated(values, shape):
        return None, None
    ordered = np.sort(values)
    low, high = ordered[0], ordered[-1]
    if _distance(ordered, (ordered - low) / (high - low)) <= _KOLMOGOROV:
        return "random", "like uniform random numbers"
    spread = (ordered - ordered.mean()) / (ordered.std() * math.sqrt(2.0))
    if _distance(ordered, np.array([0.5 + 0.5 * math.erf(each) for each in spread.tolist()])) <= _KOLMOGOROV:
        return "random", "like normal random numbers"
    return None, None


def _distance(ordered: Any, expected: Any) -> float:
    """Kolmogorov's distance of a sample to a distribution, times the root of its size."""
    number = ordered.size
    steps = np.arange(1, number + 1) / number
    apart = max(float(np.abs(steps - expected).max()), float(np.abs(steps - 1 / number - expected).max()))
    return apart * math.sqrt(number)


def _uniform_integers(values: Any) -> bool:
    low, high = int(values.min()), int(values.max())
    number = high - low + 1
    if number < 4:
        return False
    if number > values.size // 16:
        return _distance(np.sort(values), (np.sort(values).astype(float) - low + 1) / number) <= 2 * _KOLMOGOROV
    counts = np.bincount(values.astype(np.int64) - low, minlength=number)
    expected = values.size / number
    chi = float(((counts - expected) ** 2 / expected).sum())
    return abs(chi - (number - 1)) <= _SIGMAS * math.sqrt(2 * (number - 1))


def _unrelated(values: Any, shape: tuple[int, ...]) -> bool:
    """Whether a value says nothing of the next one, nor of the one below it."""
    apart = values - values.mean()
    variance = float((apart * apart).mean())
    for lag in {1, 3, shape[-1] if shape else 1}:
        pairs = values.size - lag
        if variance and pairs >= LEAST_VALUES // 2:
            correlation = float((apart[:-lag] * apart[lag:]).mean()) / variance
            if abs(correlation) > _SIGMAS / math.sqrt(pairs):
                return False
    return True
