"""Conditions of which `jax.vmap` makes selections, in programs that JAX lowers."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxobs.internals.branches import Selected, selected

CHOSEN, X = jnp.array([True, False, False, False]), jnp.ones((4, 8, 8))


def cheap(x: Any) -> Any:
    return x + 1


def expensive(x: Any) -> Any:
    return jax.lax.fori_loop(0, 50, lambda _, y: jnp.tanh(y @ y), x)


def solved(x: Any) -> Any:
    return jax.lax.while_loop(lambda y: y.sum() < 100, lambda y: y + y @ y, x)


def mapped(chosen: Any, x: Any) -> Any:
    return jax.lax.cond(chosen, expensive, cheap, x)


def without_operands(chosen: Any, x: Any) -> Any:
    return jax.lax.cond(chosen, lambda: expensive(x), lambda: cheap(x))


def kept(chosen: Any, x: Any) -> Any:
    return jax.lax.cond(chosen, expensive, lambda y: y, x)


def one_of_three(chosen: Any, x: Any) -> Any:
    return jax.lax.switch(chosen.astype(int), [cheap, expensive, lambda y: jnp.sin(y @ y)], x)


def differentiated(chosen: Any, x: Any) -> Any:
    return jax.grad(lambda y: mapped(chosen, y).sum())(x)


def in_a_loop(chosen: Any, x: Any) -> Any:
    return jax.lax.fori_loop(0, chosen.astype(int) + 5, lambda _, y: mapped(chosen, y), x)


def with_an_unknown_loop(chosen: Any, x: Any) -> Any:
    return jax.lax.cond(chosen, solved, cheap, x)


def alike(chosen: Any, x: Any) -> Any:
    return jax.lax.cond(chosen, lambda y: y @ y, lambda y: y @ y @ y, x)


def beside_as_much(chosen: Any, x: Any) -> Any:
    return expensive(mapped(chosen, x))


def beside_a_convolution(chosen: Any, x: Any) -> Any:
    image = x[None, None] * jnp.ones((1, 64, 1, 1))
    many = jax.lax.conv_general_dilated(image, jnp.ones((64, 64, 3, 3)), (1, 1), "SAME")
    return mapped(chosen, many.sum((0, 1)))


def beside_a_decomposition(chosen: Any, x: Any) -> Any:
    return mapped(chosen, jnp.linalg.cholesky(jnp.eye(256) + x.sum())[:8, :8])


def beside_an_unknown_loop(chosen: Any, x: Any) -> Any:
    return mapped(chosen, solved(x))


def selected_by_hand(chosen: Any, x: Any) -> Any:
    return jnp.where(chosen, expensive(x), cheap(x))


def lowered(fun: Callable[..., Any], *args: Any) -> Any:
    return jax.jit(fun).lower(*args).compiler_ir()


def line_of(fun: Callable[..., Any], text: str) -> int:
    lines, first = inspect.getsourcelines(fun)
    return first + next(number for number, line in enumerate(lines) if text in line)


@pytest.mark.parametrize(
    ("fun", "least", "most"),
    [
        (mapped, 0.99, 1.0), (without_operands, 0.99, 1.0), (kept, 0.99, 1.0), (one_of_three, 0.99, 1.0),
        (differentiated, 0.9, 1.0), (in_a_loop, 0.9, 1.0), (with_an_unknown_loop, 0.8, 1.0), (alike, 0.5, 0.75),
        (beside_as_much, 0.45, 0.55), (beside_a_convolution, 0.0, 0.1), (beside_a_decomposition, 0.0, 0.1),
        (beside_an_unknown_loop, 0.01, 0.5),
    ],
)  # fmt: skip
def test_the_share_of_what_an_element_may_not_need(fun: Callable[..., Any], least: float, most: float) -> None:
    """The least share where loops have an unknown number of turns."""
    found = selected(lowered(jax.vmap(fun), CHOSEN, X))
    assert least <= found.select_share <= most, found


@pytest.mark.parametrize("fun", [mapped, without_operands, kept, one_of_three])
def test_the_lines_of_the_condition_and_of_its_most_expensive_branch(fun: Callable[..., Any]) -> None:
    found = selected(lowered(jax.vmap(fun), CHOSEN, X))
    assert found.select_site == f"{__file__}:{line_of(fun, 'jax.lax.')}"
    assert found.select_branch == f"`expensive` at {__file__}:{line_of(expensive, 'fori_loop')}"


def test_a_condition_for_all_elements_and_a_selection_by_hand_compute_what_they_say() -> None:
    for module in (
        lowered(mapped, True, X[0]), lowered(jax.vmap(mapped, in_axes=(None, 0)), True, X),
        lowered(jax.vmap(selected_by_hand), CHOSEN, X),
        lowered(lambda chosen, x: jax.lax.map(lambda each: mapped(*each), (chosen, x)), CHOSEN, X), None,
    ):  # fmt: skip
        assert selected(module) == Selected()


def test_a_very_large_program_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxobs.internals.branches.MOST_OPERATIONS", 10)
    assert selected(lowered(jax.vmap(mapped), CHOSEN, X)) == Selected()
