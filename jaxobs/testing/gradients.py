"""Derivatives held against numerical differences by JAX's own checker, with the argument that disagrees by name.

JAX's checker compares along one random direction, with a tolerance that it multiplies by the size of what it compares:
an output of a thousand numbers may be off by a factor. Here the outputs are first added up to one number of each
dtype, with random weights, and each argument is checked by itself as well as all together.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jaxobs.reasons import signature
from jaxobs.testing.derivatives import (
    argument_paths,
    compared,
    differentiable,
    exactness,
    first_not_finite,
    in_short,
    kind,
    not_finite,
    number_type,
    widened,
)

MODES = {"fwd": "forward mode (jvp)", "rev": "reverse mode (vjp)"}
MOST_SHOWN = 20
STEPS = {8: 1e-4, 4: 1e-3, 2: 1e-1, 1: 0.5}
"""Step of the numerical difference by the size in bytes of the least exact real number: rounding is divided by it."""

Function = Callable[..., Any]


class GradientMismatchError(AssertionError):
    """A derivative is not what numerical differences say. The text names the argument, the mode and both values."""


def assert_gradients_match(
    fun: Function,
    args: Sequence[Any],
    *,
    order: int = 1,
    modes: Iterable[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Checks the derivatives of `fun` at `args` against numerical differences.

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
      TypeError, ValueError: an argument is none of the above, or nothing can be differentiated.
    """
    __tracebackhide__ = True  # the message is enough for pytest to show
    modes = _checked_modes(modes)
    if not isinstance(args, tuple | list):
        raise TypeError(f"`args` is a {type(args).__name__}, but must be a tuple of the arguments: `(x,)` for one.")
    if type(order) is not int or order < 1:
        raise ValueError(f"`order` is {order!r:.100}, but must be 1 or more.")
    problem = _Problem(fun, tuple(args), atol, rtol, eps)
    problem.assert_finite()
    failures = [each for mode in modes for n in range(len(problem.names)) if (each := problem.check(n, mode, order))]
    together = None if failures else problem.together(modes, order)
    if failures or together is not None:
        raise GradientMismatchError(problem.told(failures, together, order, modes))


def _checked_modes(modes: Iterable[str]) -> tuple[str, ...]:
    found = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = [each for each in found if each not in MODES]
    if unknown or not found:
        raise ValueError(f"`modes` is {found!r:.100}. Modes: {', '.join(MODES)}.")
    return found


@dataclass(frozen=True, slots=True)
class _Failure:
    """One argument in one mode."""

    argument: str
    mode: str
    order: int
    text: str
    """By how much."""


class _Problem:
    """A function of the leaves that can be differentiated, at a point."""

    def __init__(
        self, fun: Function, args: tuple[Any, ...], atol: float | None, rtol: float | None, eps: float | None
    ) -> None:
        import jax

        self.fun = fun
        self.name = getattr(fun, "__qualname__", None) or signature.bounded_repr(fun)
        leaves, self.tree = jax.tree_util.tree_flatten(args)
        self.leaves = leaves
        self._places = [n for n, leaf in enumerate(leaves) if differentiable(leaf)]
        paths = argument_paths(fun, args)
        self.names = [paths[n] for n in self._places]
        if not self.names:
            kinds = ", ".join(sorted({kind(leaf) for leaf in leaves})) or "nothing"
            raise ValueError(f"`{self.name}` has no argument that can be differentiated: `args` holds {kinds}.")
        self.point = tuple(leaves[n] for n in self._places)
        self.atol, self.rtol = atol, rtol
        self._eps = eps

    # ------------------------------------------------------------------------------------------ the function

    def outputs(self, *point: Any) -> list[Any]:
        """The outputs that have a derivative, as a function of the leaves that have one."""
        import jax

        leaves = list(self.leaves)
        for place, leaf in zip(self._places, point, strict=True):
            leaves[place] = leaf
        value = self.fun(*jax.tree_util.tree_unflatten(self.tree, leaves))
        return [leaf for leaf in jax.tree_util.tree_leaves(value) if differentiable(leaf)]

    def added_up(self, *point: Any) -> tuple[Any, ...]:
        """The same as one number for each dtype: the output itself where it is one, else a weighted sum."""
        import jax.numpy as jnp

        sums: dict[Any, Any] = {}
        for weights, output in zip(self._weights, self.outputs(*point), strict=True):
            array = jnp.asarray(output)
            part = jnp.sum(array * weights.astype(array.dtype)) if weights is not None else array.reshape(())
            sums[array.dtype] = sums[array.dtype] + part if array.dtype in sums else part
        return tuple(sums.values())

    @cached_property
    def _weights(self) -> list[Any]:
        random = np.random.RandomState(1)
        shapes = [np.shape(each) for each in self.outputs(*self.point)]
        single = len(shapes) == 1 and np.prod(shapes[0]) == 1
        return [None if single else np.asarray(random.uniform(0.5, 1.5, shape)) for shape in shapes]

    @cached_property
    def eps(self) -> float:
        """The step: that of the least exact number which goes in or comes out."""
        if self._eps is not None:
            return self._eps
        return STEPS[min(exactness(leaf) for leaf in (*self.point, *self.outputs(*self.point)))]

    @property
    def weighted(self) -> bool:
        """Whether the numbers in the report are of a sum of outputs."""
        return any(each is not None for each in self._weights)

    def alone(self, number: int) -> tuple[Function, Any]:
        """The sums as a function of one leaf, and that leaf."""

        def of_one(leaf: Any) -> tuple[Any, ...]:
            return self.added_up(*self.point[:number], leaf, *self.point[number + 1 :])

        return of_one, self.point[number]

    # ------------------------------------------------------------------------------------------ the checks

    def assert_finite(self) -> None:
        """Not a number equals itself to JAX's checker."""
        outputs = self.outputs(*self.point)
        if not outputs:
            raise ValueError(f"`{self.name}` returns nothing that can be differentiated.")
        for output in outputs:
            wrong = first_not_finite(output)
            if wrong is not None:
                raise GradientMismatchError(
                    f"`{self.name}` returns {wrong} for these arguments, so it has no derivative there. "
                    "Give it arguments from inside its domain."
                )

    def check(self, number: int, mode: str, order: int) -> _Failure | None:
        """One leaf in one mode, the others fixed; the lowest order that fails."""
        fun, leaf = self.alone(number)
        for each in range(1, order + 1):
            text = self._jax_checks(fun, (leaf,), each, (mode,))
            if text is None and each == 1:
                text = not_finite(fun, leaf, mode)
            if text is not None:
                figures = compared(fun, leaf, mode, self.eps) if each == 1 else None
                return _Failure(self.names[number], mode, each, figures or in_short(text))
        return None

    def together(self, modes: tuple[str, ...], order: int) -> str | None:
        """All leaves at once: what JAX's checker says, or None."""
        if len(self.point) == 1 and (order == 1 or len(modes) == 1):
            return None
        return self._jax_checks(self.added_up, self.point, order, modes)

    def _jax_checks(self, fun: Function, point: tuple[Any, ...], order: int, modes: tuple[str, ...]) -> str | None:
        from jax.test_util import check_grads

        try:
            check_grads(fun, point, order, modes=modes, atol=self.atol, rtol=self.rtol, eps=self.eps)
        except AssertionError as error:
            return str(error)
        except (TypeError, ValueError, NotImplementedError) as error:
            other = [each for each in MODES if each not in modes]
            if other and order == 1:
                error.add_note(
                    f"jaxobs: `{self.name}` cannot be differentiated in {MODES[modes[0]]}. "
                    f"To check the other mode only, pass modes=({other[0]!r},)."
                )
            raise
        return None

    # ------------------------------------------------------------------------------------------ the report

    def told(self, failures: Sequence[_Failure], together: str | None, order: int, modes: tuple[str, ...]) -> str:
        """The whole message."""
        lines = [f"The derivatives of `{self.name}` are not what numerical differences say (step {self.eps:g}):"]
        for each in failures[:MOST_SHOWN]:
            what = MODES[each.mode] + (f", order {each.order}" if each.order > 1 else "")
            lines.append(f"  `{each.argument}`, {what}: {each.text}")
        if len(failures) > MOST_SHOWN:
            lines.append(f"  and {len(failures) - MOST_SHOWN} more")
        if together is not None:
            lines += ["  each argument agrees by itself, but all together do not: " + in_short(together)]
        if self.weighted:
            lines.append("The values are of the outputs' sum, weighted at random.")
        wrong = {each.argument for each in failures}
        right = [name for name in self.names if name not in wrong]
        if failures and right:
            more = f" and {len(right) - MOST_SHOWN} more" if len(right) > MOST_SHOWN else ""
            lines.append(f"These agree: {', '.join(f'`{name}`' for name in right[:MOST_SHOWN])}{more}.")
        if any(exactness(leaf) < 8 for leaf in self.point):
            lines.append(self._about_precision(order, modes))
        return "\n".join(lines)

    def _about_precision(self, order: int, modes: tuple[str, ...]) -> str:
        """Whether more digits make the difference go away."""
        narrow = ", ".join(sorted({str(number_type(leaf)) for leaf in self.point if exactness(leaf) < 8}))
        try:
            agrees = _agrees_in_float64(self, order, modes)
        except Exception as error:  # the function may refuse other dtypes
            return (
                f"The arguments are {narrow}. In float64 it raises {type(error).__name__}, so rounding may be to blame."
            )
        if agrees is None:
            return f"The arguments are {narrow}. With float64 the outputs are not float64, so rounding may be to blame."
        if agrees:
            return (
                f"The arguments are {narrow}. In float64 all derivatives agree, so rounding is to blame rather than a "
                "wrong rule: test with jax_enable_x64, or pass a larger `eps` or `rtol`."
            )
        return f"The arguments are {narrow}. In float64 they disagree too, so rounding is not to blame."


def _agrees_in_float64(problem: _Problem, order: int, modes: tuple[str, ...]) -> bool | None:
    """None where the function does not work in float64 though it is given it."""
    import jax

    # Before JAX 0.8 it is among what is experimental, and nowhere else.
    home: Any = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")
    with home.enable_x64(True):
        leaves = [widened(leaf) if differentiable(leaf) else leaf for leaf in problem.leaves]
        args = jax.tree_util.tree_unflatten(problem.tree, leaves)
        wide = _Problem(problem.fun, args, problem.atol, problem.rtol, None)
        if any(exactness(each) < 8 for each in wide.outputs(*wide.point)):
            return None
        if any(wide.check(n, mode, order) for mode in modes for n in range(len(wide.names))):
            return False
        return wide.together(modes, order) is None
