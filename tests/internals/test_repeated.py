"""Blocks of operations that a lowered program repeats."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxobs.internals.programs import identify, is_small
from jaxobs.internals.repetitions import repeated

WEIGHTS, X = jnp.ones((24, 8, 8)), jnp.ones((4, 8))


@jax.jit
def layer(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w) + jnp.sin(x) * 2


def unrolled(weights: Any, x: Any) -> Any:
    for w in weights:
        x = jnp.tanh(x @ w) / (1 + x.sum())
    return x.sum()


def calling(weights: Any, x: Any) -> Any:
    for w in weights:
        x = layer(w, x)
    return x


def inside_another(weights: Any, x: Any) -> Any:
    return jax.jit(calling)(weights, jax.lax.fori_loop(0, 3, lambda _, y: y + 1.0, x))


def scanned(weights: Any, x: Any) -> Any:
    return jax.lax.scan(lambda y, w: (layer(w, y), None), x, weights)[0]


def each_different(weights: Any, x: Any) -> Any:
    for number, w in enumerate(weights):
        x = jnp.pad(x @ w[: x.shape[1]], ((0, 0), (0, number))) @ jnp.ones((8 + number, 8 - number % 3))
    return x


def a_short_loop_in_a_long_program(weights: Any, x: Any) -> Any:
    for w in weights[:4]:
        x = x @ w
    return each_different(weights, x)


@pytest.mark.parametrize(
    ("fun", "times"),
    [
        (unrolled, 24), (calling, 24), (inside_another, 24), (scanned, None), (each_different, None),
        (a_short_loop_in_a_long_program, None), (lambda weights, x: x, None),
    ],
)  # fmt: skip
def test_what_a_program_repeats(fun: Callable[..., Any], times: int | None) -> None:
    """Each iteration of an unrolled loop, wherever it is; and one of a loop that JAX knows."""
    weights = WEIGHTS if fun is scanned else list(WEIGHTS)
    assert repeated(jax.jit(fun).lower(weights, X).compiler_ir())[0].get("times") == times


def test_operations_of_functions_that_are_called_count() -> None:
    found, _ = repeated(jax.jit(calling).lower(list(WEIGHTS), X).compiler_ir())
    assert found == {"operations": 6, "times": 24}, "those of `layer`"


def nested(weights: Any, x: Any) -> Any:
    def body(x: Any) -> Any:
        for w in weights:
            x = x + 1
            x = layer(w, x)
        return x

    return body(x * 2)


def looping(weights: Any, x: Any) -> Any:
    number = 0
    while number < 24:
        for w in weights[:2]:
            x = jnp.tanh(x @ w) + 1
        number += 1
    return x


def listing(weights: Any, x: Any) -> Any:
    return sum([jnp.tanh(x @ w) * jnp.sin(x) for w in weights])


def recursive(weights: Any, x: Any) -> Any:
    return recursive(weights[1:], jnp.tanh(x @ weights[0]) + x.sum()) if weights else x


for _ in range(1):

    def made_in_a_loop(weights: Any, x: Any) -> Any:
        return made_in_a_loop(weights[1:], jnp.tanh(x @ weights[0]) + x.sum()) if weights else x


def made_of_text(weights: Any, x: Any) -> Any:
    scope: dict[str, Any] = {"tanh": jnp.tanh}
    exec("def loop(weights, x):\n    for w in weights:\n        x = tanh(x @ w) + 1\n    return x", scope)
    return scope["loop"](weights, x)


def lowered_in_a_loop(fun: Callable[..., Any]) -> Any:
    for _ in range(1):
        module = jax.jit(fun).lower(list(WEIGHTS), X).compiler_ir()
    return module


@pytest.mark.parametrize(
    ("fun", "lines"),
    [
        (unrolled, 1), (calling, 1), (nested, 2), (looping, 3), (listing, 1), (jax.grad(unrolled), 1),
        (recursive, None), (made_in_a_loop, None), (made_of_text, None),
    ],
)  # fmt: skip
def test_the_loop_of_a_repetition(fun: Callable[..., Any], lines: int | None) -> None:
    """The innermost loop in the source around the block, and none around the call of the program."""
    called_at = f"{__file__}:{first_line(lowered_in_a_loop) + 2}"
    found, loop = repeated(lowered_in_a_loop(fun), called_at)
    assert found
    assert loop == (None if lines is None else f"{__file__}:{first_line(getattr(fun, '__wrapped__', fun)) + lines}")


def first_line(fun: Callable[..., Any]) -> int:
    return inspect.getsourcelines(fun)[1]


def test_no_source_is_read_from_a_pipe(tmp_path: Path) -> None:
    """A program that came through a pipe, as `python <(generate)` passes it, is not waited for."""
    pipe = tmp_path / "program.py"
    os.mkfifo(pipe)
    scope: dict[str, Any] = {"tanh": jnp.tanh}
    exec(compile("def loop(ws, x):\n    for w in ws:\n        x = tanh(x @ w) + 1\n    return x", pipe, "exec"), scope)
    found, loop = repeated(jax.jit(scope["loop"]).lower(list(WEIGHTS), X).compiler_ir())
    assert found and loop is None


def test_forward_and_backward_passes_are_two_repetitions() -> None:
    found, _ = repeated(jax.jit(jax.grad(unrolled)).lower(list(WEIGHTS), X).compiler_ir())
    assert found["times"] >= 22


def test_constants_of_a_small_program() -> None:
    """Arrays that a function closes over are nearly all of its bytes, unless one value fills them."""
    table = np.arange(10_000, dtype=np.float32)

    def constants(fun: Callable[..., Any]) -> int:
        module = jax.jit(fun).lower(1.0).compiler_ir()
        return identify(module).size if is_small(module) else 0

    assert table.nbytes <= constants(lambda x: x + jnp.asarray(table)) <= 1.05 * table.nbytes
    assert constants(lambda x: x + jnp.ones(10_000)) < 2000
    assert constants(lambda x: sum(x * n + jnp.asarray(table) for n in range(700))) == 0


def test_without_a_program() -> None:
    assert repeated(None) == ({}, None) and identify(None).size == 0 and is_small(None)
