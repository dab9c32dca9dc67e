"""The advice of findings, applied: what is to be done about a finding makes it go away, and saves what it says."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxobs.facts.compilations import EAGER, Compilation
from jaxobs.facts.findings import Finding
from jaxobs.findings import patterns
from jaxobs.testing import max_compiles

SECONDS = 3.0
"""Seconds of each compilation: a small network takes milliseconds, and findings begin at seconds."""

JOINS = {"concatenate": lambda a, b: jnp.concatenate([a, b]), "append": lambda a, b: jnp.append(a, b, 0)}


def compiled_by(program: Callable[[], None]) -> list[Compilation]:
    """The compilations of a program, each as long as that of a large network."""
    with max_compiles(10_000, eager=True) as found:
        program()
    return [
        dataclasses.replace(each, phases={name: SECONDS / len(each.phases) for name in each.phases}) for each in found
    ]


def findings_of(compilations: Iterable[Compilation]) -> list[Finding]:
    """The findings about them that are there when a program has ended."""
    watching = patterns.Patterns()
    for each in compilations:
        watching.see(each)
    watching.stood(math.inf)
    return watching.standing()


def rows(sizes: Iterable[int], *, to: int = 1) -> None:
    step = jax.jit(lambda x, mask: (x * mask[:, None]).sum() / mask.sum())
    for size in sizes:
        padded = math.ceil(size / to) * to
        x, mask = np.zeros((padded, 4), np.float32), np.arange(padded) < size
        x[:size] = 1.0
        assert step(x, mask.astype(np.float32)) == 4.0


def cache(*, allocated: bool) -> None:
    if allocated:
        step = jax.jit(lambda keys, new, at: jax.lax.dynamic_update_slice(keys, new[None], (at, 0)))
        keys = np.zeros((12, 4), np.float32)
    else:
        step = jax.jit(lambda keys, new, at: jnp.concatenate([keys, new[None]]))
        keys = np.zeros((0, 4), np.float32)
    for at in range(12):
        keys = step(keys, np.ones(4, np.float32), at)
    assert keys.sum() == 48


def states(*, padded: bool) -> None:
    step = jax.jit(lambda seen: sum(x.sum() for x in seen))
    room = np.zeros((12, 4), np.float32)
    for n in range(1, 13):
        room[n - 1] = 1.0
        assert step([room] if padded else [np.ones(4, np.float32)] * n) == 4 * n


def scaled(*, static: bool) -> None:
    step = jax.jit(lambda x, rate: x * rate, static_argnums=1 if static else None)
    for n in range(16):
        step(np.ones(3, np.float32), 0.9**n)


ByIdentity: Any = type("Config", (), {"width": 3})
ByValue: Any = dataclasses.make_dataclass("Config", [("width", int, 3)], frozen=True)


def configured(kind: Callable[[], Any]) -> None:
    step = jax.jit(lambda config, x: x * config.width, static_argnums=0)
    for _ in range(6):
        step(kind(), np.ones(3, np.float32))


def epochs(*, again: bool) -> None:
    made = jax.jit(lambda x, rate: x * rate)
    for n in range(10):
        if again:
            made = jax.jit(lambda x, rate: x * rate)
        made(np.ones(3, np.float32), 0.5**n)


def cleared(*, inside: bool, lengths: int) -> None:
    step, sums = jax.jit(lambda x: x * 2), 0.0
    for _ in range(8):
        for length in range(1, lengths + 1):
            sums += float(step(np.ones(length, np.float32)).sum())
        if inside:
            jax.clear_caches()
    assert sums == 8 * lengths * (lengths + 1)


def sharded(first: P) -> None:
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    split = NamedSharding(mesh, P("model"))
    step = jax.jit(lambda w: jax.lax.with_sharding_constraint(w + 1, split))
    w = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, first))
    step(step(w))


def counting(count: Callable[[int], Any]) -> None:
    step = jax.jit(lambda count: count + np.float32(1))
    step(step(count(0)))


def chain(*, how: str) -> None:
    write = jax.jit(lambda samples, n, x: samples.at[n].set(x))
    parts, samples = [], np.zeros((24 if how == "at" else 0, 2), np.float32)
    for n in range(24):
        x = np.ones((1, 2), np.float32)
        if how == "list":
            parts.append(x)
        else:
            samples = write(samples, n, x[0]) if how == "at" else JOINS[how](samples, x)
    assert (np.concatenate(parts) if how == "list" else samples).sum() == 48


def scans(*, named: bool) -> None:
    def total(carry: Any, x: Any) -> Any:
        return carry + x, x

    for _ in range(6):
        jax.lax.scan(total if named else lambda carry, x: (carry + x, x), 0.0, np.ones(5, np.float32))


def rolled(*, traced: bool) -> None:
    roll = jax.jit(jnp.roll) if traced else jnp.roll
    for n in range(24):
        roll(jnp.ones(200), 7 * n + 3)


MODEL = """
from flax import nnx
class Model(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([nnx.Linear(2**n, 2**n, rngs=rngs) for n in range(9)])
"""


def test_a_model_is_built_as_the_advice_writes_it(fresh: None) -> None:
    names: dict[str, Any] = {}
    exec(MODEL, names)
    jax.clear_caches()
    (found,) = findings_of(compiled_by(lambda: exec("model = Model(rngs=nnx.Rngs(0))", names)))
    assert found.finding == "eager_initialization"
    cure = found.advice.partition(" under one jit: ")[2].partition(". A persistent cache")[0]
    after = compiled_by(lambda: exec(cure, names))
    assert findings_of(after) == [] and len(after) < found.count / 4


ADVICE: list[tuple[str, str, Callable[..., None], dict[str, Any], tuple[dict[str, Any], ...]]] = [
    ("unbounded_shapes", "mask the padding", rows, {"sizes": range(20, 33)}, ({"to": 32},)),
    ("unbounded_shapes", "dynamic_update_slice", cache, {"allocated": False}, ({"allocated": True},)),
    ("unbounded_structures", "into one array", states, {"padded": False}, ({"padded": True},)),
    ("static_values", "as an array", scaled, {"static": True}, ({"static": False},)),
    ("identity_hashed_static", "(frozen=True)", configured, {"kind": ByIdentity}, ({"kind": ByValue},)),
    ("recreated_functions", "as arguments", epochs, {"again": True}, ({"again": False},)),
    ("forgotten_programs", "out of the loop", cleared, {"inside": True, "lengths": 1}, ({"inside": False},)),
    ("flip_flop", "out of the loop", cleared, {"inside": True, "lengths": 2}, ({"inside": False},)),
    ("two_shardings_at_start", "P('model')", sharded, {"first": P()}, ({"first": P("model")},)),
    ("weak_type_at_start", "jnp.asarray(value, jnp.float32)", counting, {"count": float}, ({"count": jnp.float32},)),
    ("costly_recompilations", "drop_remainder", rows, {"sizes": [64] * 9 + [40]}, ({"sizes": [64] * 9}, {"to": 64})),
    ("eager_recompiles", "in a list", chain, {"how": "concatenate"}, ({"how": "list"}, {"how": "at"})),
    ("eager_recompiles", "in a list", chain, {"how": "append"}, ({"how": "list"},)),
    ("eager_recompiles", "as an argument", rolled, {"traced": False}, ({"traced": True},)),
    ("eager_recompiles", "once, outside the loop", scans, {"named": False}, ({"named": True},)),
]
"""The finding, words of its advice, the program, and the program with each cure that the advice offers."""


@pytest.mark.parametrize(("kind", "words", "program", "mistake", "cures"), ADVICE)
def test_advice_about_compilations_works(
    kind: str, words: str, program: Callable[..., None], mistake: dict[str, Any], cures: tuple[dict[str, Any], ...],
    fresh: None,
) -> None:  # fmt: skip
    before = compiled_by(lambda: program(**mistake))
    (found,) = findings_of(before)
    assert (found.finding, words in found.advice) == (kind, True), found.advice
    eager = found.function == EAGER
    for cure in cures:
        after = compiled_by(functools.partial(program, **mistake | cure))
        assert findings_of(after) == []
        assert sum(each.eager == eager for each in after) < sum(each.eager == eager for each in before)
