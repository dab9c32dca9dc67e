"""A data receipt: what the first batches were, as types, a fingerprint, and whether they look like real data.

A sample of each batch is copied when it is handed out, for a program may write into its buffers again: 64 KiB at most,
of arrays in the host's memory only. Nothing on a device is read or waited for. The rest is done when somebody asks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jaxobs import internals
from jaxobs.base.lazy import LazyModule
from jaxobs.facts.inputs import DataLeaf, DataReceipt
from jaxobs.state.data_looks import looks

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

MOST_BATCHES = 8
MOST_BYTES = 64 * 1024
"""Of one batch."""
MOST_LEAVES = 32
_BLOCKS = 16
"""Places of an array that is too large for its part: a batch is seen from its first to its last example."""
_MOST_TEXT = 200

_SAID = {
    "constant": "Its {largest} has one value throughout, in all {batches}.",
    "random": "The values of its {largest} look {detail}.",
}


@dataclass(frozen=True, slots=True)
class LeafSample:
    """One array of a batch, and a part of its values where it lies in the host's memory."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    values: Any
    """In the order of the elements; None where it could not be looked at."""


def sample(batch: Any) -> tuple[LeafSample, ...]:
    """Copies what a receipt is made of; of very many arrays the first."""
    leaves = [(path, leaf, _host_array(leaf)) for path, leaf in _leaves(batch)]
    total = sum(array.nbytes for _, _, array in leaves if array is not None)
    return tuple(
        LeafSample(
            path=path[:_MOST_TEXT],
            shape=tuple(int(size) for size in getattr(leaf, "shape", ())),
            dtype=str(getattr(leaf, "dtype", type(leaf).__name__)).removeprefix("torch.")[:_MOST_TEXT],
            nbytes=0 if array is None else array.nbytes,
            values=None if array is None else _part(array, MOST_BYTES * array.nbytes // max(total, MOST_BYTES)),
        )
        for path, leaf, array in leaves
    )


def _leaves(batch: Any) -> list[tuple[str, Any]]:
    """The arrays of a pytree with their paths. JAX is not imported for it: without JAX there is nothing to feed."""
    tree_util = internals.tree_util()
    if tree_util is None:
        return []
    found = tree_util.tree_flatten_with_path(batch)[0][:MOST_LEAVES]
    return [(str(tree_util.keystr(path)), leaf) for path, leaf in found]


def _host_array(leaf: Any) -> Any:
    """The same memory as a NumPy array; None for what lies elsewhere, or is no numbers."""
    array: Any = None
    if isinstance(leaf, np.ndarray | np.generic | bool | int | float):
        array = np.asarray(leaf)
    elif getattr(getattr(leaf, "device", None), "type", None) == "cpu" and hasattr(leaf, "detach"):
        try:
            array = leaf.detach().numpy()  # PyTorch: no copy
        except (TypeError, RuntimeError):  # a type that NumPy does not have
            return None
    elif type(leaf).__module__.partition(".")[0] == "tensorflow" and "CPU" in str(getattr(leaf, "device", "")):
        try:
            array = np.asarray(memoryview(leaf))
        except (TypeError, BufferError):
            return None
    return array if array is not None and array.dtype.kind in "biufcV" and array.dtype.names is None else None


def _part(array: Any, most: int) -> Any:
    """A copy of so many bytes at most, from places all over the array."""
    if array.nbytes <= most:
        return array.flatten()
    each = max(1, most // array.itemsize // _BLOCKS)
    starts = np.linspace(0, array.size - each, _BLOCKS).astype(int).tolist()
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    return np.concatenate([flat[start : start + each] for start in starts])


def receipt(name: str, batches: Sequence[tuple[LeafSample, ...]]) -> DataReceipt | None:
    """What is known by the samples of the first batches, in their order; None where there is nothing to tell."""
    if not batches or not batches[0]:
        return None
    first = batches[0]
    details = [_looks(number, leaf, batches) for number, leaf in enumerate(first)]
    digests = [_digest(each) for each in batches]
    readable = any(leaf.values is not None for leaf in first)
    leaves = tuple(
        DataLeaf(path=leaf.path, shape=leaf.shape, dtype=leaf.dtype, looks=look, detail=detail)
        for leaf, (look, detail) in zip(first, details, strict=True)
    )
    look, reason = _verdict(first, leaves, digests) if readable else (None, None)
    return DataReceipt(
        name=name,
        batches=len(batches),
        fingerprint=hashlib.sha256(b"".join(digests)).hexdigest()[:16] if readable else None,
        leaves=leaves,
        looks=look,
        reason=reason,
    )


def _looks(number: int, leaf: LeafSample, batches: Sequence[tuple[LeafSample, ...]]) -> tuple[str | None, str | None]:
    if leaf.values is None:
        return None, "not in the host's memory, or not numbers: not checked"
    alike = [each[number] for each in batches if number < len(each)]
    parts = [each.values for each in alike if each.dtype == leaf.dtype and each.values is not None]
    return looks(parts, leaf.shape)


def _verdict(
    first: Sequence[LeafSample], leaves: Sequence[DataLeaf], digests: Sequence[bytes]
) -> tuple[str | None, str | None]:
    """By the largest array: masks are often constant, and labels look like chance."""
    place = max(range(len(first)), key=lambda number: first[number].nbytes)
    largest = leaves[place]
    what = f"largest array `{largest.path}`" if largest.path else "array"
    batches = f"{len(digests)} batches" if len(digests) > 1 else "its first batch"
    own = (
        _SAID[largest.looks].format(largest=what, batches=batches, detail=largest.detail)
        if largest.looks in _SAID
        else ""
    )
    if largest.looks == "constant" and math.prod(largest.shape) > 1:
        return "constant", own.replace("in all its first batch", "in its first batch")
    period = _period(digests)
    if period is not None:
        again = "every batch is the same" if period == 1 else f"the same {period} batches repeat"
        return "repeating", f"Of the first {len(digests)} batches {again}." + (
            f" {own}" if largest.looks == "random" else ""
        )
    return ("random", own) if largest.looks == "random" else (None, None)


def _period(digests: Sequence[bytes]) -> int | None:
    """After how many batches they come again; None where they do not, or not twice."""
    number = len(digests)
    for period in range(1, number // 2 + 1):
        if all(digests[place] == digests[place - period] for place in range(period, number)):
            return period
    return None


def _digest(batch: Sequence[LeafSample]) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for leaf in batch:
        found.update(repr((leaf.path, leaf.shape, leaf.dtype)).encode())
        if leaf.values is not None:
            found.update(leaf.values.tobytes())
    return found.digest()
