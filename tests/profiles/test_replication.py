"""Operations that all devices compute alike, and those in float64 by accident, in programs that XLA has compiled."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxobs.facts.profiles import PRODUCTS, OperationTime
from jaxobs.internals.xplane.modules import Computation, Instruction, Module
from jaxobs.profiles import reading, replication
from jaxobs.profiles.replication import replicated

shard_map: Any = getattr(jax, "shard_map", None)
if not callable(shard_map):
    from jax.experimental.shard_map import shard_map
enable_x64: Any = getattr(jax, "enable_x64", None)
if not callable(enable_x64):
    from jax.experimental import enable_x64

MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
WHOLE = PartitionSpec()


def put(x: Any, *axes: Any) -> jax.Array:
    return jax.device_put(x, NamedSharding(MESH, PartitionSpec(*axes)))


def operations(folder: Path, fun: Callable[..., Any], *arguments: Any) -> tuple[OperationTime, ...]:
    step = jax.jit(fun)
    jax.block_until_ready(step(*arguments))
    jax.profiler.start_trace(folder)
    jax.block_until_ready(step(*arguments))
    jax.profiler.stop_trace()
    return reading.read(folder).profile.operations


def alike(found: tuple[OperationTime, ...]) -> set[bool | None]:
    products = {each.replicated for each in found if each.category in PRODUCTS}
    assert products, [(each.operation, each.category) for each in found]
    return products


W, X = np.full((128, 128), 0.01, np.float32), np.ones((128, 128), np.float32)


def product(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


def looped(w: jax.Array, x: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda carry, _: (jnp.tanh(carry @ w), None), x, None, length=4)[0]


def mixed(w: jax.Array, x: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda carry, _: (jnp.tanh(carry @ w) + x, None), jnp.ones((128, 128)), None, length=4)[0]


def chosen(w: jax.Array, x: jax.Array) -> jax.Array:
    return jax.lax.cond(x[0, 0] > 0, lambda: jnp.tanh(x @ w), lambda: x * 2)


def whitened(w: jax.Array, x: jax.Array) -> jax.Array:
    whole = jax.lax.with_sharding_constraint(x.reshape(8, 16, 128).sum(0), NamedSharding(MESH, WHOLE))
    return jnp.tanh(whole @ w)


CASES: dict[str, tuple[bool, Callable[..., Any], tuple[Any, ...]]] = {
    "nothing is divided": (True, product, ((), ())),
    "the batch is divided": (False, product, ((), ("data",))),
    "the weights are divided": (False, product, ((None, "model"), ())),
    "a loop of whole arrays": (True, looped, ((), ())),
    "a loop of a divided one": (False, looped, ((), ("data",))),
    "a loop that becomes divided": (False, mixed, ((), ("data",))),
    "a branch of whole arrays": (True, chosen, ((), ())),
    "a product of a sum over all": (True, whitened, ((), (("data", "model"),))),
}


@pytest.mark.parametrize("case", CASES)
def test_products_that_all_devices_compute_alike(case: str, tmp_path: Path) -> None:
    expected, fun, axes = CASES[case]
    assert alike(operations(tmp_path, fun, put(W, *axes[0]), put(X, *axes[1]))) == {expected}


def test_one_device_computes_nothing_twice(tmp_path: Path) -> None:
    assert alike(operations(tmp_path, product, W, X)) == {False}


@pytest.mark.parametrize(("axes", "same"), [(("data", "model"), True), (("data",), False), (("model",), False)])
def test_only_a_sum_over_all_devices_is_whole(axes: tuple[str, ...], same: bool, tmp_path: Path) -> None:
    def each(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(jax.lax.psum(x, axes) @ w)[None]

    split = PartitionSpec("data", "model")
    fun = shard_map(each, mesh=MESH, in_specs=(WHOLE, split), out_specs=PartitionSpec(("data", "model")))
    found = operations(tmp_path, fun, put(W[:64, :64]), put(X, "data", "model"))
    assert alike(found) == {same}


def instruction(name: str, opcode: str, number: int, *operands: int, **more: Any) -> Instruction:
    return Instruction(name, opcode, number=number, operands=operands, **more)


def made(*instructions: Instruction, partitions: int = 8) -> set[str]:
    entry = Computation("main", {each.number: each for each in instructions}, instructions[-1].number)
    return replicated(Module("jit_f", {1: entry}, 1, partitions, (False, True)))


def test_a_sum_over_some_devices_is_not_the_same_on_all() -> None:
    """Unless what is summed is; nor is what a device makes of its own number."""
    part = instruction("part", "parameter", 1)
    whole = instruction("whole", "parameter", 2, parameter=1)
    own = instruction("own", "partition-id", 3)
    some = instruction("some", "all-reduce", 4, 1)
    every = instruction("every", "all-reduce", 5, 1, whole=True)
    same = instruction("same", "all-reduce", 6, 2)
    sliced = instruction("sliced", "dynamic-slice", 7, 2, 3)
    called = instruction("called", "custom-call", 8)
    both = instruction("both", "tuple", 9, 1, 2)
    first, second = (instruction(f"of{place}", "get-tuple-element", 10 + place, 9, element=place) for place in (0, 1))
    shifted = instruction("shifted", "collective-permute", 12, 2)
    found = made(part, whole, own, some, every, same, sliced, called, both, first, second, shifted)
    assert found == {"whole", "every", "same", "of1"}
    assert made(whole, every, partitions=1) == set()


def test_a_program_that_is_damaged_is_not_the_same() -> None:
    lost = instruction("lost", "add", 1, 99)
    loop = instruction("loop", "while", 2, 99, called=(98,))
    call = instruction("call", "call", 3, called=(97,))
    taken = instruction("taken", "get-tuple-element", 4)
    circle = instruction("circle", "add", 5, 5)
    assert made(lost, loop, call, taken, circle) == set()
    itself = instruction("itself", "call", 6, called=(1,))
    assert made(itself) == set()


def test_a_program_that_calls_itself_over_and_over_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each computation calls the next twice: that doubles forty times."""
    monkeypatch.setattr(replication, "_MOST_LOOKS", 1000)
    computations = {41: Computation("last", {1: instruction("same", "iota", 1)}, 1)}
    for number in range(1, 41):
        twice = {at: instruction(f"c{number}.{at}", "call", at, called=(number + 1,)) for at in (1, 2)}
        computations[number] = Computation(f"c{number}", twice, 2)
    assert replicated(Module("jit_f", computations, 1, 8)) == set()
    small = {number: computations[number] for number in (39, 40, 41)}
    assert "same" in replicated(Module("jit_f", small, 39, 8))


@pytest.mark.parametrize("first", ["float64", "float32"])
def test_float64_that_nobody_gave(first: str, tmp_path: Path) -> None:
    """A loop whose first value brings it in; not where the inputs are in float64, too."""
    start = np.zeros((32, 64), first)

    def scanned(weights: jax.Array) -> jax.Array:
        def body(carry: jax.Array, _: None) -> tuple[jax.Array, None]:
            return jnp.tanh(carry @ weights).astype(first), None

        return jax.lax.scan(body, start, None, length=4)[0].sum()

    with enable_x64(True):
        given = operations(tmp_path / "narrow", scanned, jnp.asarray(W[:64, :64]))
        wanted = operations(tmp_path / "wide", scanned, jnp.asarray(W[:64, :64], jnp.float64))
    products = [each for each in given if each.category == "matmul"]
    assert products
    assert {each.widened for each in products} == {first == "float64"}
    assert {each.widened for each in wanted} == {False}
