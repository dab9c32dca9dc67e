"""Derivatives held against numerical differences by JAX's own checker, with the argument that disagrees by name.

JAX's checker compares along one random direction, with a tolerance that it multiplies by the size of what it compares:
an output of a thousand numbers may be off by a factor. Here the outputs are first added up to one number of each
dtype, with random weights, and each argument is checked by itself as well as all together.
"""

from __future__ import annotations

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
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    if not chosen or not set(chosen) <= MODES.keys():
        raise ValueError(f"`modes` is {chosen!r:.100}. Modes: {', '.join(MODES)}.")
    if not isinstance(args, tuple | list):
        raise TypeError(f"`args` is a {type(args).__name__}, but must be a tuple of the arguments: `(x,)` for one.")
    if type(order) is not int or order < 1:
        raise ValueError(f"`order` is {order!r:.100}, but must be 1 or more.")
    problem = _Problem(fun, tuple(args))
    step = problem.step() if eps is None else eps
    tolerances = {"atol": atol, "rtol": rtol, "eps": step}
    failures = {
        (name, mode): text
        for mode in chosen
        for number, name in enumerate(problem.names)
        if (text := _wrong(problem.alone(number), problem.point[number : number + 1], order, mode, tolerances))
    }
    together = None if failures else _jax_says(problem.added_up, problem.point, order=order, modes=chosen, **tolerances)
    if failures or together:
        raise GradientMismatchError(_text(problem, failures, together, step))


class _Problem:
    """A function of the leaves that can be differentiated, at a point."""

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        import jax

        self._fun = fun
        self.name = getattr(fun, "__qualname__", None) or described(fun)
        with_paths, self._tree = jax.tree_util.tree_flatten_with_path(args)
        self._leaves = [leaf for _, leaf in with_paths]
        self._places = [n for n, leaf in enumerate(self._leaves) if _differentiable(leaf)]
        self.names = [_path(with_paths[n][0], signature.parameter_names(fun)) for n in self._places]
        """Paths of the leaves as the user wrote them: `params['w']`."""
        if not self.names:
            kinds = {str(getattr(leaf, "dtype", type(leaf).__name__)) for leaf in self._leaves}
            raise ValueError(
                f"`{self.name}` has no argument that can be differentiated: `args` holds "
                f"{', '.join(sorted(kinds)) or 'nothing'}."
            )
        self.point = tuple(self._leaves[n] for n in self._places)
        outputs = self._outputs(*self.point)
        if not outputs:
            raise ValueError(f"`{self.name}` returns nothing that can be differentiated.")
        self._exactness = min(_exactness(number) for number in (*self.point, *outputs))
        random = np.random.RandomState(1)
        single = len(outputs) == np.size(outputs[0]) == 1
        self._weights = [np.ones(()) if single else np.asarray(random.uniform(0.5, 1.5, np.shape(o))) for o in outputs]

    def _outputs(self, *point: Any) -> list[Any]:
        """Returns the outputs that have a derivative, as a function of the leaves that have one."""
        import jax

        leaves = list(self._leaves)
        for place, leaf in zip(self._places, point, strict=True):
            leaves[place] = leaf
        value = self._fun(*jax.tree_util.tree_unflatten(self._tree, leaves))
        return [leaf for leaf in jax.tree_util.tree_leaves(value) if _differentiable(leaf)]

    def added_up(self, *point: Any) -> tuple[Any, ...]:
        """Returns the weighted sum of the outputs, one number for each dtype."""
        import jax.numpy as jnp

        sums: dict[Any, Any] = {}
        for weights, output in zip(self._weights, self._outputs(*point), strict=True):
            array = jnp.asarray(output)
            part = jnp.sum(array * weights.astype(array.dtype))
            sums[array.dtype] = sums[array.dtype] + part if array.dtype in sums else part
        return tuple(sums.values())

    def alone(self, number: int) -> Callable[[Any], tuple[Any, ...]]:
        """Returns the sums as a function of one leaf."""
        return lambda leaf: self.added_up(*self.point[:number], leaf, *self.point[number + 1 :])

    def step(self) -> float:
        """Returns the step that suits the least exact number which goes in or comes out."""
        return STEPS[self._exactness]

    @property
    def rounded(self) -> bool:
        """Whether a number has less than 64 bits."""
        return self._exactness < 8


def _wrong(fun: Callable[..., Any], point: tuple[Any], order: int, mode: str, tolerances: dict[str, Any]) -> str:
    """Returns what disagrees of one leaf in one mode, with the lowest order that does; empty if nothing."""
    if not _finite(fun, point[0], mode):
        return "the value or the derivative is not finite"
    for lower in range(1, order + 1):
        if text := _jax_says(fun, point, order=lower, modes=(mode,), **tolerances):
            return (f"order {lower}: " if lower > 1 else "") + text
    return ""


def _jax_says(fun: Callable[..., Any], point: tuple[Any, ...], **options: Any) -> str:
    """Returns the differences that JAX's checker finds, on one line; empty if none."""
    from jax.test_util import check_grads

    try:
        check_grads(fun, point, **options)
    except AssertionError as error:
        found = dict(_LARGEST.findall(str(error)))
        differences = ", ".join(f"{value} ({which})" for which, value in found.items())
        return f"off by {differences}" if differences else signature.shortened(str(error))
    return ""


def _finite(fun: Callable[..., Any], leaf: Any, mode: str) -> bool:
    """Returns whether value and derivative are finite: JAX's checker takes nan for equal to nan."""
    import jax
    import jax.numpy as jnp

    found: Any
    if mode == "fwd":
        found = jax.jvp(fun, (leaf,), (np.ones(np.shape(leaf), jnp.result_type(leaf)),))
    else:
        values, pull_back = jax.vjp(fun, leaf)
        found = values, pull_back(tuple(jnp.ones_like(value) for value in values))
    return all(bool(jnp.isfinite(array).all()) for array in jax.tree_util.tree_leaves(found))


def _text(problem: _Problem, failures: dict[tuple[str, str], str], together: str | None, step: float) -> str:
    lines = [f"The derivatives of `{problem.name}` are not what numerical differences say (step {step:g}):"]
    lines += [f"  `{name}`, {MODES[mode]}: {text}" for (name, mode), text in list(failures.items())[:MOST_SHOWN]]
    if len(failures) > MOST_SHOWN:
        lines.append(f"  and {len(failures) - MOST_SHOWN} more")
    if together:
        lines.append(f"  each argument agrees by itself, but all together do not: {together}")
    wrong = {name for name, _ in failures}
    right = [f"`{name}`" for name in problem.names if name not in wrong]
    if failures and right:
        more = f" and {len(right) - MOST_SHOWN} more" if len(right) > MOST_SHOWN else ""
        lines.append(f"These agree: {', '.join(right[:MOST_SHOWN])}{more}.")
    if problem.rounded:
        lines.append(
            "Some numbers have less than 64 bits, so rounding may be to blame: to see whether it is, repeat the check "
            "with `jax_enable_x64` and float64 arguments."
        )
    return "\n".join(lines)


def _path(keys: tuple[Any, ...], parameters: Sequence[str]) -> str:
    from jax import tree_util

    number = keys[0].idx
    head = parameters[number] if number < len(parameters) else f"args[{number}]"
    return head + str(tree_util.keystr(keys[1:]))


def _differentiable(leaf: Any) -> bool:
    import jax
    import jax.numpy as jnp

    if not isinstance(leaf, float | complex | np.ndarray | np.generic | jax.Array):
        return False
    return bool(jnp.issubdtype(jnp.result_type(leaf), jnp.inexact))


def _exactness(number: Any) -> int:
    """Returns the bytes of one real number."""
    import jax.numpy as jnp

    dtype = jnp.result_type(number)
    return int(dtype.itemsize // (2 if jnp.issubdtype(dtype, jnp.complexfloating) else 1))
