"""Signatures written down and made again: the same trees, types and placements, and never an array's value."""

import collections
import dataclasses
import enum
import functools
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax.core import FrozenDict
from flax.training.train_state import TrainState
from helpers.counting import calls
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from jaxobs import internals
from jaxobs.compile_cache.warming.rebuilding import OpaqueError, UnbuildableError, rebuild
from jaxobs.facts.events import plain
from jaxobs.internals import Call, Held
from jaxobs.reasons import literals, recorded, signature
from jaxobs.session import lifecycle
from jaxobs.state import store

Point = collections.namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1


@functools.partial(jax.tree_util.register_dataclass, data_fields=["value"], meta_fields=["scale"])
@dataclasses.dataclass
class Scaled:
    value: Any
    scale: Any


@dataclasses.dataclass(frozen=True)
class Config:
    width: int
    name: str


def step(state: Any, batch: Any = None) -> None:
    """The function that the signatures are for."""


def written(*args: Any, values: bool = True, **kwargs: Any) -> Any:
    """Returns the record of a call of `step`, as it comes out of a log."""
    taken = signature.take(Call(step, step, args, kwargs), static_values=values)
    record = recorded.record(step, taken, values=values)
    return None if record is None else json.loads(json.dumps(plain(record), allow_nan=False))


def made_again(*args: Any, **kwargs: Any) -> Any:
    return rebuild(written(*args, **kwargs), step)


def mesh() -> jax.sharding.Mesh:
    """Four by two of the eight devices, in an order of its own."""
    devices = np.array([*jax.devices()[4:], *jax.devices()[:4]]).reshape(4, 2)
    return jax.sharding.Mesh(devices, ("data", "model"))


MOST_CALLS = 5500
PARAMETERS = {"dense": {"kernel": np.ones((3, 4), np.float32), "bias": np.zeros(4, np.float32)}}

TREES = {
    "arrays": lambda: np.ones((2, 3), np.float32),
    "64 bits as JAX takes them": lambda: np.ones(3),
    "half precision": lambda: jnp.ones((2, 0), jnp.bfloat16),
    "a weak type": lambda: jnp.asarray(2.0) * 3,
    "numbers of Python": lambda: [1, 2.5, True, 3j],
    "random keys": lambda: (jax.random.key(7), jax.random.key(7, impl="rbg"), jax.random.PRNGKey(7)),
    "dictionaries": lambda: {"b": 1, "a": {"nested": (np.ones(2), [None, {}])}},
    "keys that are no texts": lambda: {(1, "a"): 1.0, (0, "b"): np.ones(3)},
    "an ordered dictionary": lambda: collections.OrderedDict(b=1, a=np.ones(2)),
    "a named tuple": lambda: Point(np.ones(2), (1,)),
    "a dataclass": lambda: Scaled({"w": np.ones(2)}, 3),
    "a dataclass with a function": lambda: Scaled(1.0, jax.nn.relu),
    "a frozen dictionary": lambda: FrozenDict(PARAMETERS),
    "an optimizer's state": lambda: optax.adamw(1e-3).init(PARAMETERS),
}


@pytest.mark.parametrize("make", TREES.values(), ids=TREES)
def test_a_tree_is_made_again(make: Any) -> None:
    tree = make()
    (again, other), kwargs = (found := made_again(tree, 1, batch={"image": tree})).args, found.kwargs
    assert jax.tree.structure((again, kwargs)) == jax.tree.structure((tree, {"batch": {"image": tree}}))
    assert other.shape == ()
    for leaf, specification in zip(jax.tree.leaves(tree), jax.tree.leaves(again), strict=True):
        lowered, expected = (jax.jit(lambda x: x).trace(each).jaxpr.in_avals for each in (specification, leaf))
        assert lowered == expected
        assert specification.sharding is None


def test_placements_are_made_again() -> None:
    one = jax.device_put(np.ones(3), jax.devices()[3])
    split = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh(), P(("data", "model"))))
    partly = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh(), P(None, "model")))
    again = made_again(one, [split, partly, jnp.ones(3)]).args
    assert again[0].sharding == SingleDeviceSharding(jax.devices()[3])
    assert [each.sharding for each in again[1]] == [split.sharding, partly.sharding, None]
    explicit = jax.sharding.Mesh(mesh().devices, ("data", "model"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    kept = made_again(jax.device_put(np.ones(8), NamedSharding(explicit, P("data")))).args[0].sharding
    assert kept.mesh.axis_types == explicit.axis_types


@pytest.mark.filterwarnings("ignore:.with mesh.*:DeprecationWarning")
def test_the_context_is_put_in_force() -> None:
    usual = internals.scopes.options(), internals.scopes.mesh_in_use(), internals.scopes.default_device()
    contexts = (
        (lambda: jax.default_matmul_precision("float32"), lambda: jax.config.jax_default_matmul_precision),
        (mesh, internals.scopes.mesh_in_use),
        (lambda: (getattr(jax, "set_mesh", None) or jax.sharding.use_mesh)(mesh()), internals.scopes.mesh_in_use),
        (lambda: jax.default_device(jax.devices()[2]), internals.scopes.default_device),
    )
    for enter, look in contexts:
        with enter():
            again, inside = made_again(np.ones(2)), look()
        assert look() != inside
        with again.scope():
            assert look() == inside
    assert usual == (internals.scopes.options(), internals.scopes.mesh_in_use(), internals.scopes.default_device())


STATICS = {
    "primitives": (None, True, 3, 2.5, "same"),
    "a tuple": ((1, ("a", None)),),
    "types of data": (np.dtype("float32"), jnp.bfloat16, jnp.dtype("bfloat16")),
    "functions of JAX's": (jnp.tanh, jax.nn.relu),
    "an enumeration": (Colour.RED,),
    "a frozen dataclass": (Config(3, "small"),),
}


@pytest.mark.parametrize("values", STATICS.values(), ids=STATICS)
def test_a_static_argument_is_made_again(values: tuple[Any, ...]) -> None:
    for value in values:
        again = made_again(Held(value), batch=Held(value))
        assert (*again.args, *again.kwargs.values()) == (value, value)
        assert type(again.args[0]) is type(value)


def test_what_cannot_be_written_down_is_taken_from_an_example() -> None:
    state = TrainState.create(apply_fn=lambda: 0, params=PARAMETERS, tx=optax.adam(1e-3))
    record = written(state, Held(object()))
    with pytest.raises(OpaqueError, match=r"`state`: in the metadata of `flax.training.train_state.TrainState`, the"):
        rebuild(record, step)
    other = state.replace(params=jax.tree.map(lambda x: x[:2], PARAMETERS))
    mark = object()
    again, static = rebuild(record, step, like=((other, mark), {})).args
    assert static is mark
    assert jax.tree.structure(again) == jax.tree.structure(state)
    assert [each.shape for each in jax.tree.leaves(again)] == [np.shape(each) for each in jax.tree.leaves(state)]
    with pytest.raises(OpaqueError, match=r"argument `batch`: a builtins\.object is not recorded"):
        rebuild(record, step, like=((other,), {}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record.update(version=9), "version 9"),
        (lambda record: record.pop("nodes"), "damaged"),
        (lambda record: record["nodes"].clear(), "damaged"),
        (lambda record: record["shardings"][0].update(devices=[[8, 1]]), "1 device of .* has 8: there is no cpu:8"),
        (lambda record: record["shardings"][0].update(platform="tpu"), "there is no tpu:3"),
        (lambda record: record["nodes"][0].update(dtype="key<none>"), "key<none>"),
        (lambda record: record["nodes"][0].update(dtype="float7"), "no data type `float7`"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_again_is_told(change: Any, message: str) -> None:
    record = written(jax.device_put(np.ones(3), jax.devices()[3]))
    change(record)
    with pytest.raises(UnbuildableError, match=message):
        rebuild(record, step)


def test_equal_parts_are_written_once() -> None:
    state = {"params": PARAMETERS, "opt": optax.adam(1e-3).init(PARAMETERS)}
    assert sum("kernel" in node.get("dict", ()) for node in written(state)["nodes"]) == 1
    assert len(json.dumps(written({f"layer_{number}": PARAMETERS for number in range(3000)}))) < 80_000


def test_a_record_is_bounded() -> None:
    assert written([np.float32(0)] * (recorded.MOST_LEAVES - 1), 1) is not None
    assert written([np.float32(0)] * recorded.MOST_LEAVES, 1) is None
    assert written({"k" * 200 + str(number): np.float32(0) for number in range(2000)}) is None
    deep: Any = np.ones(2)
    for _ in range(150):
        deep = [deep]
    assert written(deep) is None
    for value in ("x" * 121, list(range(10_000)), {n: [n] * 10 for n in range(100)}, deep):
        assert literals.write(value) == {"opaque": f"a builtins.{type(value).__name__}"}


def test_a_record_does_little() -> None:
    """Calls for 199 arrays, with the JSON of it."""
    layers = {f"layer_{n}": {"kernel": np.ones((3, n + 1)), "bias": np.ones(n + 1)} for n in range(33)}
    taken = signature.take(Call(step, step, ((layers, optax.adam(1e-3).init(layers)),), {}))
    assert taken is not None
    assert len(taken.leaves) == 199
    assert calls(lambda: json.dumps(plain(recorded.record(step, taken)))).total() <= MOST_CALLS


@pytest.mark.usefixtures("fresh")
def test_the_log_has_signatures_and_no_values(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "events.jsonl"
    lifecycle.install(event_log=str(log))
    function = jax.jit(lambda x, scale, n: x * scale + n, static_argnums=2)
    function(jnp.full((3,), 1234.5678), 8765.4321, 1357)
    jax.grad(lambda x: function(x, 1.0, 2468).sum())(np.full(4, 2345.6789, np.float32))
    lifecycle.uninstall()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    with_signature = [each for each in events if each.get("signature")]
    assert [each["function"].rpartition(".")[2] for each in with_signature] == ["<lambda>"]
    assert all(each["signature"] is None for each in events if each.get("eager") or each.get("transform"))
    signatures = json.dumps([each["signature"] for each in with_signature])
    assert "1357" in signatures
    for value in ("1234", "8765", "2345"):
        assert value not in signatures
    kept = store.current().events(kind="compilation")[0]
    assert kept
    assert not any(getattr(event, "signature", None) for event in kept)


@pytest.mark.usefixtures("fresh")
def test_without_a_log_nothing_is_recorded() -> None:
    seen: list[Any] = []
    lifecycle.install()
    store.current().subscribe(seen.append)
    jax.jit(lambda x: x + 17)(1.0)
    assert [event.signature for event in seen if event.kind == "compilation" and not event.eager] == [None]


def test_values_can_be_kept_out() -> None:
    record = written(Held("secret"), {"w": Scaled(1.0, "secret too")}, values=False)
    assert "secret" not in json.dumps(record)
    assert "secret" in json.dumps(written(Held("secret")))
