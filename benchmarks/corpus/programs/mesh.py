"""Shardings, placements and layouts: several devices, `pmap` and `shard_map`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from benchmarks.corpus.judging import case
from benchmarks.corpus.programs.plain import array, both

try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map


def mesh(*sizes: int, names: tuple[str, ...] = ("data", "model")) -> Mesh:
    devices = np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes)
    return Mesh(devices, names[: len(sizes)])


def placed(spec: P, *shape: int, over: Mesh | None = None) -> Any:
    return jax.device_put(np.zeros(shape, np.float32), NamedSharding(over or mesh(4, 2), spec))


@both("sharding", "x", says=("P('data')", "P()"), devices=8)
def another_spec(jit: Any) -> Iterator[None]:
    """An automatic mesh."""
    f = jit(lambda x: x * 2)
    f(placed(P("data"), 8))
    x = placed(P(), 8)
    yield
    f(x)


@both("sharding", "params['w']", says=("P('model')", "P('data')", "device_put"), devices=8)
def one_leaf_of_many(jit: Any) -> Iterator[None]:
    """The leaf by its path."""
    f = jit(lambda params: params["w"].sum() + params["b"].sum())
    f({"w": placed(P("model"), 8), "b": placed(P(), 4)})
    params = {"w": placed(P("data"), 8), "b": placed(P(), 4)}
    yield
    f(params)


@both("sharding", "x", devices=8)
def another_mesh(jit: Any) -> Iterator[None]:
    f = jit(lambda x: x * 3)
    f(placed(P("data"), 8, over=mesh(4, 2)))
    x = placed(P("data"), 8, over=mesh(2, 4))
    yield
    f(x)


@both("sharding", "x", says=("devices 0,1,2,3,4,5,6,7", "devices 7,6,5,4,3,2,1,0"), devices=8)
def another_order_of_devices(jit: Any) -> Iterator[None]:
    f = jit(lambda x: x * 15)
    f(placed(P("data"), 8, over=mesh(8)))
    x = placed(P("data"), 8, over=Mesh(np.array(jax.devices()[7::-1]), ("data",)))
    yield
    f(x)


@both("jit_options", "in_shardings", says=("devices 0,1,2,3,4,5,6,7", "devices 7,6,5,4,3,2,1,0"), devices=8)
def another_order_of_devices_in_shardings(jit: Any) -> Iterator[None]:
    def spread(x: Any) -> Any:
        return x * 16

    over, back = mesh(8), Mesh(np.array(jax.devices()[7::-1]), ("data",))
    jit(spread, in_shardings=NamedSharding(over, P("data")))(np.zeros(8, np.float32))
    x = np.zeros(8, np.float32)
    yield
    jit(spread, in_shardings=NamedSharding(back, P("data")))(x)


@both("sharding", "x", devices=8)
def other_names_of_axes(jit: Any) -> Iterator[None]:
    """A mesh with other names."""
    f = jit(lambda x: x * 4)
    f(placed(P("data"), 8, over=mesh(8, names=("data",))))
    x = placed(P("batch"), 8, over=mesh(8, names=("batch",)))
    yield
    f(x)


@both("sharding", "x", devices=8, needs=lambda: hasattr(jax.sharding, "AxisType") and hasattr(jax, "make_mesh"))
def an_explicit_mesh(jit: Any) -> Iterator[None]:
    """The sharding is part of the type."""
    kind: Any = jax.sharding.AxisType.Explicit
    explicit = jax.make_mesh((4, 2), ("data", "model"), axis_types=(kind, kind))
    f = jit(lambda x: x * 5)
    f(jax.device_put(np.zeros((8, 8), np.float32), NamedSharding(explicit, P("data", None))))
    x = jax.device_put(np.zeros((8, 8), np.float32), NamedSharding(explicit, P(None, "model")))
    yield
    f(x)


@both("placement", "x", says=("uncommitted", "committed"))
def committed_to_the_same_device(jit: Any) -> Iterator[None]:
    f = jit(lambda x: x * 6)
    f(array(4))
    x = jax.device_put(array(4), jax.devices()[0])
    yield
    f(x)


@both("placement", "x", devices=2)
def another_device(jit: Any) -> Iterator[None]:
    f = jit(lambda x: x * 7)
    f(jax.device_put(array(4), jax.devices()[0]))
    x = jax.device_put(array(4), jax.devices()[1])
    yield
    f(x)


@both("placement", "state['w']", devices=8)
def one_device_then_many(jit: Any) -> Iterator[None]:
    """Restored onto a mesh."""
    f = jit(lambda state: state["w"] * 8)
    f({"w": jax.device_put(array(8), jax.devices()[0])})
    state = {"w": placed(P("data"), 8)}
    yield
    f(state)


@both("placement", "x", devices=8)
def fewer_devices(jit: Any) -> Iterator[None]:
    """A mesh of half of them."""
    f = jit(lambda x: x * 9)
    f(placed(P("data"), 8, over=mesh(8)))
    x = placed(P("data"), 8, over=mesh(4))
    yield
    f(x)


@both("placement", "x", says=("device", "pinned_host"), needs=lambda: _has_memory_kinds())
def another_kind_of_memory(jit: Any) -> Iterator[None]:
    """Offloaded to the host."""
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    f = jit(lambda x: x * 10)
    f(jax.device_put(array(4), sharding))
    x = jax.device_put(array(4), sharding.with_memory_kind("pinned_host"))
    yield
    f(x)


def _has_memory_kinds() -> bool:
    kinds = {memory.kind for memory in jax.devices()[0].addressable_memories()}
    return {"device", "pinned_host"} <= kinds


def _layout(order: tuple[int, ...]) -> Any:
    """A layout on the first device, by the names of this JAX."""
    from jax.experimental import layout

    by_order = getattr(layout, "DeviceLocalLayout", None) or layout.Layout
    placed_so: Any = getattr(layout, "Format", None) or layout.Layout
    return placed_so(by_order(order), jax.sharding.SingleDeviceSharding(jax.devices()[0]))


@both("layout", "x", says=("major_to_minor", "(1, 0)"))
def another_layout(jit: Any) -> Iterator[None]:
    """An array laid out by columns."""
    f = jit(lambda x: x * 11)
    f(jax.device_put(np.zeros((4, 8), np.float32), _layout((0, 1))))
    x = jax.device_put(np.zeros((4, 8), np.float32), _layout((1, 0)))
    yield
    f(x)


@both("jit_options", says="in_shardings", devices=8)
def other_shardings_of_the_arguments(jit: Any) -> Iterator[None]:
    def spread(x: Any) -> Any:
        return x * 12

    over = mesh(8)
    jit(spread, in_shardings=NamedSharding(over, P("data")))(np.zeros(8, np.float32))
    x = np.zeros(8, np.float32)
    yield
    jit(spread, in_shardings=NamedSharding(over, P()))(x)


@both("sharding", "params['w']", devices=8)
def what_the_step_returned(jit: Any) -> Iterator[None]:
    """The first result comes back with a sharding that the compiler chose."""
    over = mesh(4, 2)

    def step(params: Any, batch: Any) -> Any:
        w = jax.lax.with_sharding_constraint(params["w"] + batch.sum(), NamedSharding(over, P("model")))
        return {"w": w}

    f = jit(step)
    batch = placed(P("data"), 8, over=over)
    params = f({"w": placed(P(), 8, over=over)}, batch)
    yield
    f(params, batch)


@case("AOT", "sharding", "x", devices=8)
def lowered_for_another_sharding() -> Iterator[None]:
    """`f.lower(...)` with arrays that are placed otherwise."""
    f = jax.jit(lambda x: x * 13)
    f.lower(placed(P("data"), 8)).compile()
    x = placed(P(), 8)
    yield
    f.lower(x).compile()


@case("AOT", "sharding", "x", devices=8)
def lowered_for_a_struct_with_another_sharding() -> Iterator[None]:
    """Without arrays."""
    over = mesh(8)
    f = jax.jit(lambda x: x * 14)
    f.lower(jax.ShapeDtypeStruct((8,), np.float32, sharding=NamedSharding(over, P("data")))).compile()
    yield
    f.lower(jax.ShapeDtypeStruct((8,), np.float32, sharding=NamedSharding(over, P()))).compile()


# ------------------------------------------------------------------------------------------------ pmap, shard_map


@case("pmap", "shape", "x", says="float32[2,5]", devices=2)
def pmapped_over_another_shape() -> Iterator[None]:
    """The leading axis is the devices'."""
    f = jax.pmap(lambda x: x * 2)
    f(np.zeros((2, 4), np.float32))
    yield
    f(np.zeros((2, 5), np.float32))


@case("pmap", "dtype", "x", devices=2)
def pmapped_over_another_type() -> Iterator[None]:
    """As under `jit`."""
    f = jax.pmap(lambda x: x * 3)
    f(np.zeros((2, 4), np.float32))
    yield
    f(np.zeros((2, 4), np.int32))


@case("pmap", "structure", "batch['b']", devices=2)
def pmapped_over_another_structure() -> Iterator[None]:
    """As under `jit`."""
    f = jax.pmap(lambda batch: sum(each.sum() for each in batch.values()))
    f({"a": np.zeros((2, 4), np.float32)})
    batch = {"a": np.zeros((2, 4), np.float32), "b": np.zeros((2, 4), np.float32)}
    yield
    f(batch)


@case("pmap", "static_argument", "n", devices=2)
def pmapped_with_another_static_value() -> Iterator[None]:
    """`static_broadcasted_argnums`."""
    f = jax.pmap(lambda x, n: x * n, static_broadcasted_argnums=1)
    f(np.zeros((2, 4), np.float32), 2)
    yield
    f(np.zeros((2, 4), np.float32), 3)


@case("pmap", "new_function", devices=2)
def pmapped_anew() -> Iterator[None]:
    """A lambda made again."""

    def call() -> None:
        jax.pmap(lambda x: x * 4)(np.zeros((2, 4), np.float32))

    call()
    yield
    call()


@case("pmap", "shape", "x", devices=2, only=True)
def pmapped_over_a_shape_alone() -> Iterator[None]:
    f = jax.pmap(lambda x: x * 6)
    x = np.zeros((2, 4), np.float32)
    y = f(f(x))
    f(y)
    f(f(np.zeros((2, 4, 1), np.float32)))
    yield
    f(np.zeros((2, 5), np.float32))


@case("pmap", None, devices=2)
def pmapped_again() -> Iterator[None]:
    f = jax.pmap(lambda x: x * 5)
    x = f(f(np.zeros((2, 4), np.float32)))
    yield
    f(f(x))


@case("shard_map", "shape", "x", says="float32[16]", devices=8)
def mapped_over_shards_of_another_shape() -> Iterator[None]:
    """Jitted."""
    over = mesh(8)
    f = jax.jit(shard_map(lambda x: x * 2, mesh=over, in_specs=P("data"), out_specs=P("data")))
    f(placed(P("data"), 8, over=over))
    x = placed(P("data"), 16, over=over)
    yield
    f(x)


@case("shard_map", "sharding", "x", devices=8)
def mapped_over_shards_placed_otherwise() -> Iterator[None]:
    """The argument has to be moved first."""
    over = mesh(8)
    f = jax.jit(shard_map(lambda x: x * 3, mesh=over, in_specs=P("data"), out_specs=P("data")))
    f(placed(P("data"), 8, over=over))
    x = placed(P(), 8, over=over)
    yield
    f(x)


@case("shard_map", "new_function", devices=8)
def mapped_anew() -> Iterator[None]:
    """A map made again, jitted again."""
    over = mesh(8)
    x = placed(P("data"), 8, over=over)

    def call() -> None:
        jax.jit(shard_map(lambda x: x * 4, mesh=over, in_specs=P("data"), out_specs=P("data")))(x)

    call()
    yield
    call()
