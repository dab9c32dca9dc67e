"""One derivative both ways, by JAX and by a numerical difference; and which leaves have one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxobs.reasons import signature

MOST_ELEMENTS = 64
"""Elements of an argument that are differentiated one by one, to name the one that is furthest off."""

Function = Callable[..., Any]


def _derivative(fun: Function, leaf: Any, mode: str, direction: Any) -> list[float]:
    """Real part of the derivative along `direction`, of each sum of outputs."""
    import jax
    import jax.numpy as jnp

    if mode == "fwd":
        _, tangents = jax.jvp(fun, (leaf,), (direction,))
        return [float(jnp.real(each)) for each in tangents]
    values, pull_back = jax.vjp(fun, leaf)
    found = []
    for n in range(len(values)):
        (cotangent,) = pull_back(
            tuple(jnp.ones_like(each) if m == n else jnp.zeros_like(each) for m, each in enumerate(values))
        )
        found.append(float(np.real(np.sum(np.asarray(cotangent, _wide(leaf)) * np.asarray(direction, _wide(leaf))))))
    return found


def _numerical(fun: Function, leaf: Any, eps: float, direction: Any) -> list[float]:
    from jax import numpy as jnp

    array, dtype = np.asarray(leaf), number_type(leaf)
    ahead, behind = (np.asarray(array + sign * eps * direction, dtype) for sign in (1, -1))
    pairs = zip(fun(ahead), fun(behind), strict=True)
    return [
        float(np.real(np.asarray(jnp.real(a), np.float64) - np.asarray(jnp.real(b), np.float64))) / (2 * eps)
        for a, b in pairs
    ]


def compared(fun: Function, leaf: Any, mode: str, eps: float) -> str | None:
    """The derivative by both ways, at the element of the leaf that is furthest off."""
    shape, size = np.shape(leaf), int(np.size(leaf))
    if not 0 < size <= MOST_ELEMENTS:
        return None
    worst: tuple[float, str] | None = None
    for index in np.ndindex(*shape):
        direction = np.zeros(shape, number_type(leaf))
        direction[index] = 1
        pairs = zip(_derivative(fun, leaf, mode, direction), _numerical(fun, leaf, eps, direction), strict=True)
        for automatic, numerical in pairs:
            off = abs(automatic - numerical) if np.isfinite(automatic) else np.inf
            if worst is None or not off <= worst[0]:
                where = f"at [{', '.join(map(str, index))}] " if shape else ""
                worst = (
                    off,
                    f"{where}{automatic:.6g} by JAX, {numerical:.6g} numerically{_ratio(automatic, numerical)}",
                )
    return None if worst is None or worst[0] == 0 else worst[1]


def _ratio(automatic: float, numerical: float) -> str:
    if not np.isfinite(numerical):
        return " (the function is not finite a step away)"
    if not np.isfinite(automatic) or not numerical:
        return ""
    return f" ({(automatic - numerical) / abs(numerical) * 100:+.3g} %)"


def not_finite(fun: Function, leaf: Any, mode: str) -> str | None:
    """Both ways may say nan, and to JAX's checker that is agreement."""
    found = _derivative(fun, leaf, mode, np.ones(np.shape(leaf), number_type(leaf)))
    return None if all(np.isfinite(each) for each in found) else "the derivative is not finite"


_LARGEST = re.compile(r"Max (absolute|relative) difference[^:]*: (\S+)")


def in_short(text: str) -> str:
    """What JAX's checker says, on one line: the differences if it has them."""
    found = dict(_LARGEST.findall(text))
    if found:
        return "off by " + ", ".join(f"{value} ({which})" for which, value in found.items())
    return signature.shortened(text)


def argument_paths(fun: Function, args: tuple[Any, ...]) -> list[str]:
    """Paths of the leaves as the user wrote them: `params['w']`."""
    from jax import tree_util

    parameters = signature.parameter_names(fun)
    found = []
    for (first, *rest), _ in tree_util.tree_flatten_with_path(args)[0]:
        number = first.idx
        head = parameters[number] if number < len(parameters) else f"args[{number}]"
        found.append(head + str(tree_util.keystr(tuple(rest))))
    return found


def widened(leaf: Any) -> Any:
    """The leaf with as many digits as there are."""
    array = np.asarray(leaf)
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def number_type(leaf: Any) -> Any:
    """The dtype that JAX gives the leaf."""
    import jax.numpy as jnp

    return jnp.result_type(leaf)


def _wide(leaf: Any) -> type[Any]:
    return np.complex128 if np.iscomplexobj(leaf) else np.float64


def differentiable(leaf: Any) -> bool:
    """Whether it is a real or complex number, or an array of them."""
    import jax
    import jax.numpy as jnp

    if not isinstance(leaf, float | complex | np.ndarray | np.generic | jax.Array):
        return False
    return bool(jnp.issubdtype(jnp.result_type(leaf), jnp.inexact))


def exactness(leaf: Any) -> int:
    """Bytes of one real number."""
    dtype = number_type(leaf)
    return int(dtype.itemsize // (2 if np.issubdtype(dtype, np.complexfloating) else 1))


def kind(leaf: Any) -> str:
    """What a leaf is, for a person."""
    return str(getattr(leaf, "dtype", type(leaf).__name__))


def first_not_finite(output: Any) -> str | None:
    """`nan` or `inf`, where one is in there."""
    array = np.asarray(output)
    array = array if array.dtype.kind in "fc" else array.astype(np.float32)  # NumPy does not know bfloat16
    wrong = array[~np.isfinite(array)]
    return str(wrong.flat[0]) if wrong.size else None
