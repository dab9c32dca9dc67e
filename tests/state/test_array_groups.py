"""Live arrays by group and device: figures by hand on eight devices, each buffer once, none kept alive."""

import gc
import itertools
import time
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxobs.facts.memory import ArrayGroup
from jaxobs.state import array_groups
from jaxobs.state.array_groups import groups
from jaxobs.testing import FakeArray, FakeClient, FakeDevice

pytestmark = pytest.mark.usefixtures("fresh")

WIDTH = 4


@pytest.fixture
def mine() -> Iterator[Any]:
    """The groups of shapes that no other test uses: sizes with a factor of 131."""
    gc.collect()

    def of_mine() -> dict[tuple[int, ...], ArrayGroup]:
        found = [each for each in groups(jax.devices()[0].client) if 131 in each.shape]
        assert len({(each.shape, each.sharding) for each in found}) == len(found)
        return {each.shape: each for each in found}

    assert of_mine() == {}
    yield of_mine


def _sharding(*spec: str | None) -> NamedSharding:
    return NamedSharding(Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model")), PartitionSpec(*spec))


def test_sharded_and_replicated_arrays_as_by_hand(mine: Any) -> None:
    """Cut along one axis of the mesh, along both, or whole on each device; and nothing once they are deleted."""
    kept = [
        jax.device_put(np.zeros((8, 131), np.float32), _sharding("data")),
        jax.device_put(np.ones((8, 131), np.float32), _sharding("data")),
        jax.device_put(np.zeros((131, 16), np.float16), _sharding(None, ("data", "model"))),
        jax.device_put(np.zeros((3, 131), np.int8), _sharding()),
    ]
    found = mine()
    names = [f"cpu:{number}" for number in range(8)]
    assert found[8, 131].count == 2
    assert found[8, 131].bytes_per_device == dict.fromkeys(names, 2 * 2 * 131 * WIDTH)
    assert found[131, 16].bytes_per_device == dict.fromkeys(names, 131 * 2 * 2)
    assert found[3, 131].bytes_per_device == dict.fromkeys(names, 3 * 131)
    assert found[3, 131].bytes == 8 * 3 * 131
    assert found[8, 131].sharding == "P('data') over data=4, model=2"
    assert found[131, 16].sharding == "P(None, ('data', 'model')) over data=4, model=2"
    assert found[131, 16].dtype == "float16"
    kept[0].delete()
    assert mine()[8, 131].bytes_per_device == dict.fromkeys(names, 2 * 131 * WIDTH)
    del kept
    assert mine() == {}


def test_a_donated_array_does_not_count(mine: Any) -> None:
    given = jax.device_put(np.zeros((8, 131), np.float32), _sharding("data"))
    taken = jax.jit(lambda x: x + 1, donate_argnums=0)(given)
    assert given.is_deleted()
    assert mine()[8, 131].count == 1
    assert taken.shape == (8, 131)


@pytest.mark.parametrize("spec", [("data",), (), (("data", "model"),)], ids=["cut", "replicated", "all"])
def test_a_buffer_counts_once_however_often_it_was_read(mine: Any, spec: tuple[Any, ...]) -> None:
    array = jax.device_put(np.zeros((8, 131), np.float32), _sharding(*spec))
    before = mine()
    np.asarray(array)
    shards = [shard.data for shard in array.addressable_shards]
    shards.append(array.addressable_data(3))
    again = shards[0].addressable_shards[0].data
    assert len(jax.devices()[0].client.live_arrays()) >= 9
    assert mine() == before
    assert again.shape == shards[0].shape
    del array
    held = [each for each in groups(jax.devices()[0].client) if 131 in each.shape]
    assert sum(each.bytes for each in held) == sum(each.bytes for each in before.values())
    assert sum(each.count for each in held) == len(held) == 8


def test_an_array_on_one_device_that_shows_itself_again_counts_once(mine: Any) -> None:
    one, two = jax.device_put([make((2, 131), np.float32) for make in (np.zeros, np.ones)], jax.devices()[1])
    again = [each.addressable_shards[0].data for each in (one, two, one)]
    assert again[0] is not one
    jax.block_until_ready(again)
    assert mine()[2, 131].count == 2
    assert mine()[2, 131].bytes_per_device == {"cpu:1": 2 * 2 * 131 * WIDTH}
    one.delete()
    del again
    assert mine()[2, 131].count == 1


def test_arrays_of_one_call_are_not_taken_for_shards(mine: Any) -> None:
    kept = jax.device_put(
        [np.zeros((8, 131), np.float32), np.zeros((2, 131), np.float32)], [_sharding("data"), jax.devices()[0]]
    )
    assert mine()[2, 131].count == 1
    assert mine()[8, 131].count == 1
    assert len(kept) == 2


def test_kinds_of_memory_are_told_apart(mine: Any) -> None:
    device = jax.devices()[0]
    kinds = [each.kind for each in device.addressable_memories()]
    if "pinned_host" not in kinds:
        pytest.skip(f"this backend has only {kinds}")
    host = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    kept = jax.device_put(np.zeros((5, 131), np.float32), host)
    assert mine()[5, 131].memory_kind == "pinned_host"
    found = array_groups.read(device.client).per_device[device]
    assert found["pinned_host"] == (1, 5 * 131 * WIDTH)
    assert kept.shape == (5, 131)


def test_fakes_share_buffers_like_real_arrays() -> None:
    """A shard of a cut array, and one array shown twice; an own memory that is not named is the device's."""
    one, two = FakeDevice(0), FakeDevice(1)
    cut, plain = FakeArray((8, 2), [one, two], cut=True), FakeArray((3,), [one])
    shown = [
        FakeArray((4, 2), [one], shares=cut),
        FakeArray((4, 2), [two], shares=cut),
        FakeArray((3,), [one], shares=plain),
    ]
    host = FakeArray((7,), [two], memory_kind="pinned_host")
    client = FakeClient([one, two], arrays=[*shown, cut, plain, host])
    assert [(each.shape, each.count, dict(each.bytes_per_device), each.memory_kind) for each in groups(client)] == [
        ((8, 2), 1, {"gpu:0": 32, "gpu:1": 32}, "device"),
        ((7,), 1, {"gpu:1": 28}, "pinned_host"),
        ((3,), 1, {"gpu:0": 12}, "device"),
    ]
    client.arrays = shown
    assert [each.count for each in groups(client)] == [1, 1, 1]


def test_groups_keep_no_array_alive() -> None:
    array = jax.device_put(np.zeros((8, 131), np.float32), _sharding("data"))
    client = jax.devices()[0].client
    before = len(client.live_arrays())
    found = groups(client)
    assert len(client.live_arrays()) == before
    gone = weakref.ref(array)
    del array
    assert gone() is None
    assert found


def test_what_is_still_computed_is_not_waited_for() -> None:
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 1000, lambda _, y: y @ y, x))
    start = jnp.eye(131) * 0.5
    slow(start).block_until_ready()
    result = slow(start)
    waiting = not result.is_ready()
    found = {each.shape: each for each in groups(jax.devices()[0].client)}
    assert found[131, 131].count >= 2
    assert waiting
    result.block_until_ready()


def test_other_threads_run_while_many_arrays_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk offers the interpreter whenever it has kept it for a stretch."""
    device = FakeDevice(0)
    client = FakeClient([device], arrays=[FakeArray((n % 50,), [device]) for n in range(20_000)])
    offers: list[float] = []
    passing = itertools.count(0.0, array_groups.STRETCH / 10)  # so much passes from one look at the clock to the next
    monkeypatch.setattr(
        array_groups, "time", SimpleNamespace(perf_counter=lambda: next(passing), sleep=offers.append, time=time.time)
    )
    found = groups(client)
    assert sum(each.count for each in found) == 20_000
    assert set(offers) == {0}
    assert len(offers) == pytest.approx(next(passing) / array_groups.STRETCH, rel=0.3)


def test_a_walk_sets_off_no_garbage_collection() -> None:
    """A full one stops the program for 50 ms in a process with JAX: 3,000 arrays make too few objects for any."""
    device = jax.devices()[0]
    kept = [jax.device_put(np.zeros((1 + number % 9, 131), np.float32), device) for number in range(3_000)]
    array_groups.read(device.client)
    collections: list[str] = []

    def collected(phase: str, info: dict[str, int]) -> None:
        collections.append(phase)

    gc.collect()
    gc.callbacks.append(collected)
    try:
        found = array_groups.read(device.client)
    finally:
        gc.callbacks.remove(collected)
    assert sum(row.number for row in found.rows) >= len(kept)
    assert collections == []


def test_an_array_that_found_no_memory_does_not_count() -> None:
    @jax.jit
    def too_large(x: Any) -> Any:
        result = jnp.broadcast_to(x[0, 0], (2**44,)) + 1
        return result, result * 2

    # Its argument is not there yet, so that it fails later and not where it is called.
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 5_000, lambda _, y: y @ y, x))
    jax.block_until_ready(slow(jnp.eye(131)))
    too_large.lower(jnp.eye(131)).compile()
    failed, beside = too_large(slow(jnp.eye(131)))
    with pytest.raises(RuntimeError, match=r"[Oo]ut of memory"):
        failed.block_until_ready()
    with pytest.raises(RuntimeError, match=r"[Oo]ut of memory"):
        beside.block_until_ready()
    assert not [each for each in groups(jax.devices()[0].client) if each.shape == (2**44,)]
