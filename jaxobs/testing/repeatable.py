"""Repeatability: a function called twice with the same arguments has to return the same, bit for bit."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxobs.reasons.described import described

_CAUSES = (
    "Common causes: a random generator or a clock that is not an argument, the order of a set or of threads, state "
    "left behind by the first call; on GPUs, operations that add in no fixed order: set "
    "XLA_FLAGS=--xla_gpu_deterministic_ops=true."
)


class NotRepeatableError(AssertionError):
    """Two calls with the same arguments returned different things. The text names the first leaf that differs."""


def assert_repeatable(fun: Callable[..., Any], *args: Any, times: int = 2, **kwargs: Any) -> Any:
    """Calls `fun` several times with the same arguments, and checks that it returns the same, bit for bit.

        assert_repeatable(train, jax.random.key(0), steps=10)

    Each call gets copies of the arrays, so that `fun` may donate them. NaN equals NaN of the same bits. What `fun`
    takes from elsewhere (a global generator, the clock) is what such a check is to find.

    Args:
      fun: returns arrays, numbers, or a pytree of them.
      *args: handed on to `fun`, as are other keywords.
      times: how often it is called.

    Returns:
      What the first call returned.

    Raises:
      NotRepeatableError: a later call returned something else: another structure, shape, type or value.
      ValueError: `times` is less than 2.
    """
    __tracebackhide__ = True  # the message is enough for pytest to show
    if times < 2:
        raise ValueError(f"`times` is {times!r}, but must be 2 or more to compare.")
    from jax.tree_util import keystr, tree_flatten_with_path, tree_map

    def called() -> Any:
        copied_args, copied_kwargs = tree_map(_copied, (args, kwargs))
        return fun(*copied_args, **copied_kwargs)

    first = called()
    expected, structure = tree_flatten_with_path(first)
    name = getattr(fun, "__qualname__", None) or described(fun)
    for number in range(2, times + 1):
        found, other = tree_flatten_with_path(called())
        if other != structure:
            raise NotRepeatableError(
                f"`{name}` is not repeatable: call {number} returned another structure.\n"
                f"  call 1: {structure}\n  call {number}: {other}"
            )
        pairs = zip(expected, found, strict=True)
        unlike = [(keystr(path), told) for (path, a), (_, b) in pairs if (told := _difference(a, b))]
        if unlike:
            path, told = unlike[0]
            more = f" {len(unlike)} of {len(expected)} leaves differ." if len(unlike) > 1 else ""
            raise NotRepeatableError(
                f"`{name}` is not repeatable: call {number} with the same arguments returned another "
                f"{f'`{path}`' if path else 'value'}: {told}.{more}\n{_CAUSES}"
            )
    return first


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray) or hasattr(leaf, "is_ready"):
        return leaf.copy()
    return copy.copy(leaf)


def _bits(leaf: Any) -> Any:
    """Returns a leaf as a NumPy array; of a random key, its data."""
    import jax

    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf)


def _difference(one: Any, two: Any) -> str:
    """Returns in words how two leaves differ; empty if they are the same."""
    first, second = _bits(one), _bits(two)
    if first.dtype != second.dtype or first.shape != second.shape:
        return f"{first.dtype}{list(first.shape)}, then {second.dtype}{list(second.shape)}"
    if first.dtype == object:
        same = one is two or bool(one == two)
        return "" if same else f"{described(one)}, then {described(two)}"
    if first.tobytes() == second.tobytes():
        return ""
    rows = [np.frombuffer(array.tobytes(), np.uint8).reshape(first.size, -1) for array in (first, second)]
    unlike = (rows[0] != rows[1]).any(axis=1)
    place = int(unlike.argmax())
    where = list(map(int, np.unravel_index(place, first.shape))) if first.shape else []
    told = f"{int(unlike.sum()):,} of {first.size:,} elements differ, the first at {where}: "
    told += f"{first.ravel()[place]!s}, then {second.ravel()[place]!s}"
    if first.dtype.kind in "iufcV":
        with np.errstate(all="ignore"):
            wide = np.complex128 if first.dtype.kind == "c" else np.float64
            apart = np.abs(first.astype(wide) - second.astype(wide))
        finite = apart[np.isfinite(apart)]
        told += f"; the largest difference is {finite.max():.3g}" if finite.size else ""
    return told
