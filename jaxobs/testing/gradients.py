"""Derivatives held against numerical differences by JAX's own checker, with the argument that disagrees by name.

JAX's checker compares along one random direction, with a tolerance that it multiplies by the size of what it compares:
an output of a thousand numbers may be off by a factor. Here the outputs are first added up to one number of each
dtype, with random weights, and each argument is checked by itself as well as all together.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jaxobs.reasons import signature
from jaxobs.reasons.described import described

MODES = {"fwd": "forward mode (jvp)", "rev": "reverse mode (vjp)"}
MOST_SHOWN = 20
STEPS = {8: 1e-4, 4: 1e-3, 2: 1e-1, 1: 0.5}
"""Step of the numerical difference by the size in bytes of the least exact real number: rounding is divided by it."""

_LARGEST = re.compile(r"Max (absolute|relative) difference[^:]*: (\S+)")


class GradientMismatchError(AssertionError):
    """A derivative is not what numerical differences say. The text names the argument, the mode and the difference."""


def assert_gradients_match(
    fun: Callable[..., Any],
    args: Sequence[Any],
    *,
    order: int = 1,
    modes: Iterable[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Checks the derivatives of `fun` at `args` against numerical differences, by `jax.test_util.check_grads`.

        assert_gradients_match(loss, (params, batch))

    Each leaf of `args` that is a real or complex number or array is checked, by itself and together with the others;
    what has no derivative (integers, booleans, keys, functions, None) stays as it is, and such outputs are left out.
    It takes about four calls of `fun` for each leaf and mode, not jitted unless `fun` is.

    Args:
      fun: takes `args` as positional arguments, and returns arrays or a pytree of them.
      args: the arguments, as a tuple or a list.
      order: up to which order the derivatives are checked.
      modes: `fwd` for forward mode, `rev` for reverse mode.
      atol: absolute tolerance; JAX's for the dtype if None.
      rtol: relative tolerance; JAX's for the dtype if None.
      eps: step of the numerical difference; 1e-4 for float64, 1e-3 for float32, 0.1 for 16 bits if None.

    Raises:
      GradientMismatchError: a derivative disagrees, or it or a value of `fun` is not finite.
      TypeError, ValueError: an argument is not one of the above, or nothing can be differentiated.
    """
    __tracebackhide__ = True  # the message is enough for pytest to show
    from jax.tree_util import keystr, tree_flatten_with_path, tree_leaves, tree_unflatten

    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    if not chosen or not set(chosen) <= MODES.keys():
        raise ValueError(f"`modes` is {chosen!r:.100}. Modes: {', '.join(MODES)}.")
    if not isinstance(args, tuple | list):
        raise TypeError(f"`args` is a {type(args).__name__}, but must be a tuple of the arguments: `(x,)` for one.")
    if type(order) is not int or order < 1:
        raise ValueError(f"`order` is {order!r:.100}, but must be 1 or more.")
    name = getattr(fun, "__qualname__", None) or described(fun)
    with_paths, tree = tree_flatten_with_path(tuple(args))
    everything = [leaf for _, leaf in with_paths]
    places = [n for n, leaf in enumerate(everything) if _exactness(leaf)]
    if not places:
        kinds = sorted({str(getattr(leaf, "dtype", type(leaf).__name__)) for leaf in everything})
        raise ValueError(
            f"`{name}` has no argument that can be differentiated: `args` holds {', '.join(kinds) or 'nothing'}."
        )

    def outputs(point: Sequence[Any]) -> list[Any]:
        leaves = list(everything)
        for place, leaf in zip(places, point, strict=True):
            leaves[place] = leaf
        return [leaf for leaf in tree_leaves(fun(*tree_unflatten(tree, leaves))) if _exactness(leaf)]

    point = [everything[n] for n in places]
    values = outputs(point)
    if not values:
        raise ValueError(f"`{name}` returns nothing that can be differentiated.")
    exactness = min(map(_exactness, (*point, *values)))
    added_up = _added_up(values)
    checker = {"atol": atol, "rtol": rtol, "eps": STEPS[exactness] if eps is None else eps}
    parameters = signature.parameter_names(fun)
    failures, right = [], []
    for number, (path, _) in enumerate(with_paths[n] for n in places):
        first = path[0].idx
        told = (parameters[first] if first < len(parameters) else f"args[{first}]") + keystr(path[1:])

        def alone(leaf: Any, number: int = number) -> tuple[Any, ...]:
            return added_up(outputs([*point[:number], leaf, *point[number + 1 :]]))

        wrong = [
            f"  `{told}`, {MODES[m]}: {text}"
            for m in chosen
            if (text := _wrong(alone, point[number], order, m, checker))
        ]
        failures += wrong
        if not wrong:
            right.append(f"`{told}`")
    if not failures:
        together = _disagreement(lambda *leaves: added_up(outputs(leaves)), point, order, chosen, checker)
        if not together:
            return
        failures, right = [f"  each argument agrees by itself, but all together do not: {together}"], []
    raise GradientMismatchError(
        f"The derivatives of `{name}` are not what numerical differences say (step {checker['eps']:g}):\n"
        + "\n".join(_at_most(failures))
        + (f"\nThese agree: {', '.join(_at_most(right))}." if right else "")
        + (
            "\nSome numbers have less than 64 bits, so rounding may be to blame: to see whether it is, repeat the "
            "check with `jax_enable_x64` and float64 arguments."
            if exactness < 8
            else ""
        )
    )


def _at_most(told: list[str]) -> list[str]:
    return told if len(told) <= MOST_SHOWN else [*told[:MOST_SHOWN], f"  and {len(told) - MOST_SHOWN} more"]


def _exactness(number: Any) -> int:
    """Returns the bytes of one real number of what can be differentiated; 0 for all else."""
    import jax
    import jax.numpy as jnp

    if not isinstance(number, float | complex | np.ndarray | np.generic | jax.Array):
        return 0
    dtype = jnp.result_type(number)
    if not jnp.issubdtype(dtype, jnp.inexact):
        return 0
    return int(dtype.itemsize // (2 if jnp.issubdtype(dtype, jnp.complexfloating) else 1))


def _added_up(values: Sequence[Any]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Returns a function of outputs like these: their weighted sum, one number for each dtype."""
    import jax.numpy as jnp

    random = np.random.RandomState(1)
    single = len(values) == np.size(values[0]) == 1
    weights = [np.ones(()) if single else np.asarray(random.uniform(0.5, 1.5, np.shape(value))) for value in values]

    def added_up(outputs: Sequence[Any]) -> tuple[Any, ...]:
        sums: dict[Any, Any] = {}
        for weight, array in zip(weights, map(jnp.asarray, outputs), strict=True):
            sums[array.dtype] = sums.get(array.dtype, 0) + jnp.sum(array * weight.astype(array.dtype))
        return tuple(sums.values())

    return added_up


def _wrong(fun: Callable[..., Any], at: Any, order: int, mode: str, checker: dict[str, Any]) -> str:
    """Returns what disagrees of one leaf in one mode, with the lowest order that does; empty if nothing."""
    import jax
    import jax.numpy as jnp

    found: Any
    if mode == "fwd":
        found = jax.jvp(fun, (at,), (np.ones(np.shape(at), jnp.result_type(at)),))
    else:
        values, pull_back = jax.vjp(fun, at)
        found = values, pull_back(tuple(jnp.ones_like(value) for value in values))
    if not all(bool(jnp.isfinite(array).all()) for array in jax.tree_util.tree_leaves(found)):
        return "the value or the derivative is not finite"  # JAX's checker takes nan for equal to nan
    for lower in range(1, order + 1):
        if text := _disagreement(fun, (at,), lower, (mode,), checker):
            return (f"order {lower}: " if lower > 1 else "") + text
    return ""


def _disagreement(
    fun: Callable[..., Any], point: Sequence[Any], order: int, modes: Sequence[str], checker: dict[str, Any]
) -> str:
    """Returns the differences that JAX's checker finds, on one line; empty if none."""
    from jax.test_util import check_grads

    try:
        check_grads(fun, tuple(point), order=order, modes=modes, **checker)
    except AssertionError as error:
        found = ", ".join(f"{value} ({which})" for which, value in dict(_LARGEST.findall(str(error))).items())
        return f"off by {found}" if found else signature.shortened(str(error))
    return ""
