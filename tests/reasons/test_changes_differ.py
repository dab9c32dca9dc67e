"""Two calls that JAX tells apart are told apart in words, however alike their texts are."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from jaxobs import internals
from jaxobs.internals import Call, Miss
from jaxobs.reasons import cures, differences, signature
from jaxobs.reasons.signature import Signature

X = np.zeros((8, 8), np.float32)
P = PartitionSpec


def f(x: Any, mode: Any = None, **rest: Any) -> None:
    """Something to name arguments after."""


def taken(*args: Any, static: tuple[int, ...] = (), **options: Any) -> Signature:
    """Returns the signature of a call of a function that was jitted with these options."""
    info = SimpleNamespace(static_argnums=static, static_argnames=(), **options)
    called = internals.called(Miss(fun=f, jit_info=info, args=args, kwargs={}))
    found = signature.take(called, context=internals.context.read())
    assert found is not None
    return found


def told(old: Signature, new: Signature) -> list[Any]:
    """Returns the changes, each of which has to be one."""
    assert old != new, "JAX takes these for one"
    changes = differences.changes(f, old, new)
    assert changes, "nothing is told"
    for change in changes:
        assert change.before != change.after, change
    return changes


def mesh(*order: int, shape: tuple[int, ...] = (), names: tuple[str, ...] = ("data", "model"), **options: Any) -> Mesh:
    devices = np.array([jax.devices()[number] for number in order])
    shape = shape or (len(order),)
    return Mesh(devices.reshape(shape), names[: len(shape)], **options)


def struct(sharding: Any) -> Any:
    return jax.ShapeDtypeStruct((8, 8), np.float32, sharding=sharding)


def spec(*axes: Any, over: Any) -> NamedSharding:
    return NamedSharding(over, P(*axes))


def rows(*order: int, **options: Any) -> NamedSharding:
    """Returns a sharding of rows over devices in this order."""
    return spec("data", over=mesh(*order, **options))


def gspmd(*order: int) -> Any:
    """Replicated, as a compiler says it."""
    from jax._src.sharding_impls import GSPMDSharding

    return GSPMDSharding.get_replicated([jax.devices()[number] for number in order])


def positional(*order: int) -> Any:
    """Removed in JAX 0.7."""
    if (kind := getattr(jax.sharding, "PositionalSharding", None)) is None:
        pytest.skip("this JAX has none")
    return kind([jax.devices()[number] for number in order])


def abstract(*sizes: int) -> Any:
    """Returns a mesh without devices; its arguments changed in JAX 0.6.1."""
    names = ("data", "model")[: len(sizes)]
    try:
        return jax.sharding.AbstractMesh(sizes, names)
    except TypeError:
        return jax.sharding.AbstractMesh(tuple(zip(names, sizes, strict=True)))


def alone(number: int) -> Any:
    return SingleDeviceSharding(jax.devices()[number])


EXPLICIT = {"axis_types": (jax.sharding.AxisType.Explicit,)}
SHARDINGS: dict[str, tuple[Callable[[], tuple[Any, Any]], str, str]] = {
    "order of devices": (lambda: (rows(0, 1, 2, 3), rows(3, 2, 1, 0)), "devices 0,1,2,3", "devices 3,2,1,0"),
    "order of axes": (
        lambda: (rows(*range(8), shape=(4, 2)), rows(*range(8), shape=(2, 4), names=("model", "data"))),
        "{'data': 4, 'model': 2}", "{'model': 2, 'data': 4}",
    ),
    "spec and order": (lambda: (rows(0, 1), spec(over=mesh(1, 0))), "P('data') devices 0,1", "P() devices 1,0"),
    "other devices": (lambda: (rows(0, 1), rows(2, 3)), "cpu:0, cpu:1", "cpu:2, cpu:3"),
    "types of axes": (lambda: (rows(0, 1), rows(0, 1, **EXPLICIT)), "axis types (Auto)", "axis types (Explicit)"),
    "abstract": (lambda: (rows(0, 1), spec("data", over=abstract(2))), "on cpu:0, cpu:1", "over an abstract mesh"),
    "abstract meshes": (
        lambda: (spec("data", over=abstract(2)), spec("data", over=abstract(4))), "{'data': 2}", "{'data': 4}",
    ),
    "uncommitted, then abstract": (lambda: (None, spec("data", over=abstract(2))), "uncommitted", "P('data')"),
    "memory": (lambda: (rows(0, 1), rows(0, 1).with_memory_kind("unpinned_host")), "", "in unpinned_host"),
    "unreduced": (
        lambda: [NamedSharding(mesh(0, 1, **EXPLICIT), each) for each in (P(None), P(None, unreduced={"data"}))],
        "P(None)", "unreduced={'data'}",
    ),
    "one device": (lambda: (alone(0), alone(1)), "cpu:0", "cpu:1"),
    "of the compiler": (lambda: (gspmd(0, 1, 2), gspmd(2, 1, 0)), "devices 0,1,2", "devices 2,1,0"),
    "by position": (lambda: (positional(0, 1, 2), positional(2, 1, 0)), "", ""),
    "of two types": (lambda: (alone(0), gspmd(0)), "SingleDeviceSharding", "GSPMDSharding"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARDINGS)
def test_shardings_whose_texts_are_alike(name: str) -> None:
    make, before, after = SHARDINGS[name]
    try:
        old, new = make()
    except (TypeError, AttributeError) as error:
        pytest.skip(f"this JAX has none: {error}")
    (change,) = told(taken(struct(old)), taken(struct(new)))
    assert before in change.before and after in change.after, change
    assert change.what in ("sharding", "placement")


@pytest.mark.parametrize("leaves", [1, 300])
def test_options_whose_texts_are_alike(leaves: int) -> None:
    """The order of devices in `in_shardings`; in a long list the one that differs is told."""
    rest = (spec(None, "data", over=mesh(*range(8))),) * (leaves - 1)
    shardings = (rows(*range(8)), rows(*range(8)[::-1]), spec(over=mesh(*range(8))))
    first, second, plain = (taken(X, in_shardings_leaves=(*rest, each)) for each in shardings)
    (change,) = told(first, second)
    assert (change.path, change.what) == ("in_shardings", "jit_options")
    if leaves == 1:
        assert "devices 0,1,2,3,4,5,6,7" in change.before and "devices 7,6,5,4,3,2,1,0" in change.after
    (change,) = told(first, plain)
    assert leaves > 1 or (change.before, change.after) == ("(P('data'))", "(P())")


@pytest.mark.filterwarnings("ignore:.with mesh:DeprecationWarning")
def test_meshes_in_use_whose_texts_are_alike() -> None:
    """`with mesh:` of the same devices in another order."""
    internals.context.first_look()
    with mesh(0, 1, 2):
        before = taken(X)
    with mesh(2, 1, 0):
        changes = told(before, taken(X))
    assert any("devices 2,1,0" in change.after and change.what == "context" for change in changes), changes


class Alike:
    """Prints as any other."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return "Alike()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and other.number == self.number

    def __hash__(self) -> int:
        return self.number


def config() -> Any:
    """Returns an object of a class that is defined again, as in a notebook."""

    @dataclasses.dataclass(frozen=True)
    class Config:
        width: int = 3

    return Config()


def node(*, keys: bool = True) -> Any:
    """Returns a node of the user's, defined again."""

    @dataclasses.dataclass
    class Model:
        weights: Any
        name: Any = "m"

    if keys:
        return jax.tree_util.register_dataclass(Model, data_fields=["weights"], meta_fields=["name"])
    jax.tree_util.register_pytree_node(
        Model, lambda m: ((m.weights,), m.name), lambda name, children: Model(children[0], name)
    )
    return Model


LONG = "m" * 300
STATICS: dict[str, tuple[Any, Any, str]] = {
    "equal reprs": (Alike(1), Alike(2), "not equal"),
    "classes of one name": (config(), config(), "another class of the same name"),
    "functions of one name": ((lambda: lambda x: x)(), (lambda: lambda x: x + 1)(), "compares by identity"),
    "long texts": (LONG + "a", LONG + "b", "b"),
    "long texts far apart": (LONG * 20 + "a", LONG * 20 + "b", ""),
    "blanks": ("a b", "a  b", "a  b"),
    "lines": ("a\nb", "a b", "a b"),
    "numbers": (1, 1.0, "1.0"),
    "truth": (1, True, "True"),
    "not a number": (float("nan"), float("nan"), "never equals itself"),
    "zeros": (np.dtype("float32"), np.dtype("float64"), "float64"),
}  # fmt: skip


@pytest.mark.parametrize("name", STATICS)
def test_static_arguments_whose_texts_are_alike(name: str) -> None:
    old, new, after = STATICS[name]
    (change,) = told(taken(X, old, static=(1,)), taken(X, new, static=(1,)))
    assert (change.path, change.what) == ("mode", "static_argument")
    assert after in change.after, change


def test_functions_of_one_name_are_told_by_their_lines() -> None:
    old = lambda x: x  # noqa: E731
    new = lambda x: x  # noqa: E731
    (change,) = told(taken(X, old, static=(1,)), taken(X, new, static=(1,)))
    line = old.__code__.co_firstlineno
    assert f"test_changes_differ.py:{line + 1} instead of test_changes_differ.py:{line};" in change.after


@pytest.mark.parametrize("keys", [True, False])
def test_nodes_whose_texts_are_alike(keys: bool) -> None:
    (change,) = told(taken(node(keys=keys)(X)), taken(node(keys=keys)(X)))
    assert (change.path, change.what) == ("x", "structure") and "another class of the same name" in change.after
    model = node(keys=keys)
    for old, new, after in ((Alike(1), Alike(2), "not equal"), ("a b" + LONG, "a  b" + LONG, "")):
        (change,) = told(taken(model(X, old)), taken(model(X, new)))
        assert change.path == "x" and after in change.after


def test_keys_whose_texts_are_alike() -> None:
    told(taken({Key(1): X}), taken({Key(2): X}))
    told(taken({"1": X}), taken({1: X}))


@functools.total_ordering
class Key(Alike):
    """Can be sorted."""

    def __lt__(self, other: Any) -> bool:
        return self.number < other.number


def test_types_of_keys_whose_texts_are_alike() -> None:
    from jax.extend import random as extended

    def make(scale: int) -> Any:
        plain = extended.threefry_prng_impl
        return extended.define_prng_impl(
            key_shape=plain.key_shape, seed=lambda seed: plain.seed(seed) * scale, split=plain.split,
            random_bits=plain.random_bits, fold_in=plain.fold_in, tag="mine",
        )  # fmt: skip

    old, new = (jax.eval_shape(functools.partial(jax.random.key, impl=make(scale)), 0) for scale in (1, 2))
    (change,) = told(taken(old), taken(new))
    assert change.what == "dtype"


def test_layouts_whose_order_is_alike() -> None:
    class Layout:
        def __init__(self, tiling: Any) -> None:
            self.major_to_minor, self.tiling = (0, 1), tiling

    found = [
        internals.frames._layouts({"in_layouts": [Layout(tiling)], "kept_var_idx": {0}})
        for tiling in (((8, 128),), ((4, 128),))
    ]
    signatures = [signature.take(Call(f, f, (X,), {}, layouts=each)) for each in found]
    (change,) = told(signatures[0], signatures[1])
    assert change.what == "layout" and "(8, 128)" in change.before and "(4, 128)" in change.after


def _value(pick: random.Random) -> Any:
    """Returns an argument of any sort; two seeds give ones that are alike in most ways."""

    def placed() -> Any:
        order = pick.sample(range(8), pick.choice((2, 2, 4, 8)))
        over = mesh(*order, shape=(len(order) // 2, 2), names=tuple(pick.sample(("data", "model"), 2)))
        return struct(spec(*pick.sample(("data", "model", None), pick.randrange(3)), over=over))

    return pick.choice((
        lambda: np.zeros([pick.choice((1, 2, 3)) for _ in range(pick.randrange(3))], pick.choice(("f4", "i4", "i1"))),
        placed,
        lambda: struct(gspmd(*pick.sample(range(8), 3))),
        lambda: {pick.choice("ab"): _value(pick), "c": X},
        lambda: [_value(pick) for _ in range(pick.randrange(3))],
        lambda: pick.choice(NODES)(_value(pick), pick.choice(METADATA)),
        lambda: pick.choice((None, 1, 1.0, True, np.float32(1))),
        lambda: (_value(pick), _value(pick)),
        lambda: jax.ShapeDtypeStruct((2,), np.float32, sharding=alone(pick.randrange(8))),
    ))()  # fmt: skip


NODES = [node(), node(), node(keys=False), node(keys=False)]
METADATA = ["a b", "a  b", "a\nb", Alike(1), Alike(2), 1, True, 1.0, LONG + "a", LONG + "b", config(), config()]
STATIC_VALUES = [*METADATA, (Alike(1), LONG), (Alike(2), LONG), float("nan"), None, len, max, frozenset({1})]


def _mutated(value: Any, pick: random.Random) -> Any:
    leaves, tree = jax.tree_util.tree_flatten(value)
    if not leaves or pick.random() < 0.2:
        return _value(pick)
    leaves[pick.randrange(len(leaves))] = _value(pick)
    return jax.tree_util.tree_unflatten(tree, leaves)


def test_generated_pairs() -> None:
    """For all that is reported, before and after differ; and where JAX tells two calls apart something is reported."""
    pick, compared = random.Random(20261122), 0
    for _ in range(1500):
        value, static = _value(pick), pick.choice(STATIC_VALUES)
        try:
            old = taken(value, static, static=(1,))
            other = _mutated(value, pick) if pick.random() < 0.7 else value
            new = taken(other, pick.choice([static, *STATIC_VALUES]), static=(1,))
        except (TypeError, ValueError):  # leaves that a node of the user's does not take
            continue
        if old != new:
            told(old, new)
            told(new, old)
            compared += 1
    assert compared > 800


def test_every_pair_of_a_kind() -> None:
    shardings: list[Any] = [None]
    for make, *_ in SHARDINGS.values():
        with contextlib.suppress(TypeError, AttributeError, pytest.skip.Exception):
            shardings += make()
    for old, new in itertools.permutations(shardings, 2):
        if old != new:
            told(taken(struct(old)), taken(struct(new)))
    for old, new in itertools.permutations(STATIC_VALUES, 2):
        before, after = taken(X, old, static=(1,)), taken(X, new, static=(1,))
        if before != after:
            told(before, after)


def test_advice_for_what_looks_alike() -> None:
    """The advice names the mesh or the class, and code in it stays code."""

    def advice(old: Any, new: Any) -> str:
        change = told(taken(old), taken(new))[0]
        return cures.cure(change.what, [change])

    split, back = rows(0, 1, 2, 3), mesh(3, 2, 1, 0)
    assert "in different orders" in advice(struct(split), struct(spec("data", over=back)))
    assert "NamedSharding(mesh, P())" in advice(struct(split), struct(spec(over=back)))
    both = spec(("data", "model"), over=mesh(3, 2, 1, 0, shape=(2, 2)))
    assert "NamedSharding(mesh, P(('data', 'model')))" in advice(
        struct(rows(0, 1, 2, 3, shape=(2, 2))), struct(both)
    )  # fmt: skip
    assert "was defined again" in advice(node()(X), node()(X))
