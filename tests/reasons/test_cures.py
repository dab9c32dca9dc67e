"""The advice is worth its words: what is told to do about a recompilation makes it go away."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxobs
from jaxobs.facts.compilations import Change
from jaxobs.reasons import cures
from jaxobs.testing import max_compiles

ROWS = 8


def batches(*, drop_remainder: bool = False, pad: bool = False) -> Iterator[Any]:
    """Three batches of 20 rows, the last one of which is short."""
    for start in range(0, 20, ROWS):
        batch = np.ones((min(ROWS, 20 - start), 3), np.float32)
        if pad:
            batch = np.pad(batch, ((0, ROWS - len(batch)), (0, 0)))
        if len(batch) == ROWS or not drop_remainder:
            yield batch


def ragged(**options: Any) -> None:
    step = jax.jit(lambda batch: batch * 2)
    for batch in batches(**options):
        step(batch)


def scalar_state(count: Any) -> None:
    """A state that is replaced by what the step returns."""
    step = jax.jit(lambda count: count + np.float32(1))
    for _ in range(3):
        count = step(count)


def rates(*values: Any) -> None:
    step = jax.jit(lambda rate: rate * np.float32(2))
    for value in values:
        step(value)


def lambdas(*, hoisted: bool) -> None:
    x = np.ones(3, np.float32)
    made = jax.jit(lambda x: x * 3)
    for _ in range(3):
        (made if hoisted else jax.jit(lambda x: x * 4))(x)


def counted(*static: int) -> None:
    step = jax.jit(lambda x, n: x * n, static_argnums=static)
    for n in range(3):
        step(np.ones(3, np.float32), n)


class ByIdentity:
    """A configuration that compares by identity."""


@dataclass(frozen=True)
class ByValue:
    width: int = 3


def configured(kind: type) -> None:
    step = jax.jit(lambda config, x: x * 5, static_argnums=0)
    for _ in range(3):
        step(kind(), np.ones(3, np.float32))


def sharded(first: P) -> None:
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    split = NamedSharding(mesh, P("model"))
    step = jax.jit(lambda w: jax.lax.with_sharding_constraint(w + 1, split))
    w = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, first))
    for _ in range(3):
        w = step(w)


def committed(*, first: bool) -> None:
    step = jax.jit(lambda x: x * 6)
    x = jnp.asarray(np.ones(3, np.float32))
    for number in range(3):
        if number or first:
            x = jax.device_put(x, jax.devices()[0])
        step(x)


def masked(*, always: bool) -> None:
    step = jax.jit(lambda x, mask: x if mask is None else x * mask)
    x = np.ones(3, np.float32)
    for mask in (np.ones(3, np.float32) if always else None, np.ones(3, np.float32)):
        step(x, mask)


def precise(*, always: bool) -> None:
    step = jax.jit(lambda x: x @ x)
    x = np.ones((3, 3), np.float32)
    for number in range(3):
        with jax.default_matmul_precision("float32" if number or always else None):
            step(x)


TROUBLES: dict[str, tuple[str, Callable[[], None], tuple[Callable[[], None], ...]]] = {
    "ragged last batch": (
        "drop_remainder=True", ragged, (lambda: ragged(drop_remainder=True), lambda: ragged(pad=True)),
    ),
    "scalar in the state": (
        "jnp.asarray(value, jnp.float32)", lambda: scalar_state(0.0),
        (lambda: scalar_state(jnp.asarray(np.float32(0), jnp.float32)),),
    ),
    "scalar that changes type": (
        "the same type in every call", lambda: rates(1, 0.5),
        (lambda: rates(*np.asarray([1, 0.5], np.float32)), lambda: rates(1.0, 0.5)),
    ),
    "lambda in a loop": ("outside the loop", lambda: lambdas(hoisted=False), (lambda: lambdas(hoisted=True),)),
    "static number": ("pass it as an array", lambda: counted(1), (lambda: counted(),)),
    "static object": ("a frozen dataclass", lambda: configured(ByIdentity), (lambda: configured(ByValue),)),
    "sharding that comes back": (
        "NamedSharding(mesh, P('model'))", lambda: sharded(P()), (lambda: sharded(P("model")),),
    ),
    "committed later": (
        "Commit `x` before the first call", lambda: committed(first=False), (lambda: committed(first=True),),
    ),
    "None at first": ("Pass an array for `mask`", lambda: masked(always=False), (lambda: masked(always=True),)),
    "context at times": ("in every call", lambda: precise(always=False), (lambda: precise(always=True),)),
}  # fmt: skip
"""By name: advice that the reason must hold, the mistake, and the same loop with the cure applied."""


@pytest.mark.parametrize("name", TROUBLES)
def test_the_cure_works(name: str, fresh: None) -> None:
    advice, mistaken, mended = TROUBLES[name]
    with max_compiles(100) as found:
        mistaken()
    again = next(each for each in found if each.cause != "first_call")
    assert advice in again.reason
    for cured in mended:
        with max_compiles(1):
            cured()


def test_the_demo_is_cured(fresh: None) -> None:
    pytest.importorskip("sklearn", exc_type=ImportError)
    from jaxobs.ops.demo import training

    digits, _ = training.load()
    train_step = training.train_step
    scores = jax.jit(lambda scores: scores.argmax(axis=-1))

    def epochs(*, cured: bool) -> None:
        model, optimizer = training.new_model()
        for epoch in range(2):
            for number, (images, labels) in enumerate(digits.batches(epoch, keep_rest=not cured)):
                if number in (0, 1, 11):
                    rate = (1.0 if cured else 1) if epoch == 0 else 0.5
                    train_step(model, optimizer, images, labels, rate)
            model.eval()
            found = training.predict(model, digits.images[:8])
            (scores if cured else jax.jit(lambda scores: scores.argmax(axis=-1)))(found)
            if cured:
                model.train()

    with max_compiles(100) as found:
        epochs(cured=False)
    told = {each.cause for each in found} | {change.what for each in found for change in each.changes}
    assert {"shape", "structure", "dtype", "new_function"} <= told
    with max_compiles(3) as found:
        epochs(cured=True)
    assert {each.function.rpartition(".")[2] for each in found} <= {"train_step", "predict", "<lambda>"}


@pytest.mark.parametrize("cause", sorted(cures._GENERAL))
def test_every_cause_has_a_cure(cause: str) -> None:
    """A cause has a cure where no change is listed, too, and where its texts cannot be read."""
    assert cures.cure(cause, ()).endswith(".")
    assert cures.cure(cause, [Change("x", cause, "?", "!")]).endswith(".")


def test_names_are_bounded() -> None:
    changes = [Change(f"x[{n}]", "shape", "float32[8]", "float32[7]") for n in range(1000)]
    assert "997 more" in cures.cure("shape", changes)
    assert len(cures.cure("shape", changes)) < 400


def plus(number: Any, x: Any) -> Any:
    return x + number


def test_the_partial_of_functools_is_named(fresh: None) -> None:
    with max_compiles(10) as found:
        for _ in range(2):
            jax.jit(functools.partial(plus, 1))(np.ones(3, np.float32))
    assert any("partial object number 2" in each.reason for each in found)


def test_a_request_has_no_last_batch(fresh: None) -> None:
    jaxobs.install()
    for scope, expected in ((contextlib.nullcontext(), True), (jaxobs.request("/predict"), False)):
        predict = jaxobs.jit(lambda rows: rows * 2.0)
        with max_compiles(2) as found, scope:
            for size in (297, 5):
                predict(np.ones((size, 3), np.float32))
        assert found[-1].cause == "shape" and ("last batch" in found[-1].reason) is expected
