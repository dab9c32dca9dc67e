"""Devices and live arrays: what JAX tells of them, and bytes per device against the same sum by hand."""

import threading
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxobs import internals
from jaxobs.base import guard
from jaxobs.facts.memory import Account, DeviceMemory, Headroom
from jaxobs.sources.devices import QUIET_SECONDS, Devices, live_arrays
from jaxobs.state.store import Store
from jaxobs.testing import FakeArray, FakeClient, FakeDevice, backends

pytestmark = pytest.mark.usefixtures("fresh")

ALL = {
    "bytes_in_use": 3,
    "peak_bytes_in_use": 5,
    "bytes_limit": 9,
    "bytes_reserved": 1,
    "largest_free_block_bytes": 4,
    "num_allocs": 77,
}


def _sampled(*devices: FakeDevice, arrays: tuple[FakeArray, ...] = (), index: int = 0) -> dict[str, DeviceMemory]:
    store = Store()
    with backends(FakeClient(list(devices), arrays=list(arrays), index=index)):
        Devices(store).sample()
    return {state.device: state.memory for state in store.snapshot().devices if state.memory is not None}


# --------------------------------------------------------------------------------------- allocator statistics


def test_all_statistics() -> None:
    """Each of JAX's keys under our name; those that we do not know are left out."""
    memory = _sampled(FakeDevice(0, statistics=ALL))["gpu:0"]
    assert (memory.in_use_bytes, memory.peak_bytes, memory.limit_bytes) == (3, 5, 9)
    assert (memory.reserved_bytes, memory.largest_free_block_bytes) == (1, 4)


@pytest.mark.parametrize(
    ("statistics", "in_use", "peak"),
    [
        (None, None, None),
        ({}, None, None),
        ({"bytes_in_use": 3}, 3, None),
        ({"peak_bytes_in_use": 5}, None, 5),
        ({"bytes_in_use": 0, "peak_bytes_in_use": None}, 0, None),
        ({"bytes_in_use": np.int64(3)}, 3, None),
    ],
)
def test_every_key_is_optional(statistics: Any, in_use: int | None, peak: int | None) -> None:
    """A figure that the backend does not tell is not known, which is not zero."""
    memory = _sampled(FakeDevice(0, statistics=statistics))["gpu:0"]
    assert (memory.in_use_bytes, memory.peak_bytes) == (in_use, peak)
    assert type(memory.in_use_bytes) is type(in_use)


def test_a_device_that_raises_is_counted_and_the_rest_is_read(caplog: pytest.LogCaptureFixture) -> None:
    """The live arrays of the failing device are told of all the same, and so are the devices after it."""
    guard.raise_internal_errors(False)
    lost, well = FakeDevice(0, statistics=RuntimeError("device lost")), FakeDevice(1, statistics=ALL)
    memory = _sampled(lost, well, arrays=(FakeArray((4,), [lost, well]),))
    assert (memory["gpu:0"].in_use_bytes, memory["gpu:0"].live_array_bytes) == (None, 16)
    assert (memory["gpu:1"].in_use_bytes, memory["gpu:1"].live_array_bytes) == (3, 16)
    assert guard.internal_errors() == {"memory_stats": 1}
    assert "device lost" in caplog.text


def test_devices_of_other_hosts_are_not_read() -> None:
    here = FakeDevice(4, process_index=1, statistics=ALL)
    there = FakeDevice(0, process_index=0, statistics=RuntimeError("not addressable"))
    assert list(_sampled(there, here, index=1)) == ["gpu:4"]


def test_where_live_arrays_cannot_be_had_they_are_not_known() -> None:
    guard.raise_internal_errors(False)
    client = FakeClient([FakeDevice(0, statistics=ALL)])
    client.live_arrays = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    store = Store()
    with backends(client):
        Devices(store).sample()
    [state] = store.snapshot().devices
    assert state.memory is not None
    assert (state.memory.live_arrays, state.memory.live_array_bytes, state.memory.in_use_bytes) == (None, None, 3)
    assert guard.internal_errors() == {"live_arrays": 1}


def test_a_device_describes_itself() -> None:
    store = Store()
    device = FakeDevice(3, platform="tpu", device_kind="TPU v5e", process_index=2, pci_bus_id="0000:65:00.0")
    with backends(FakeClient([device], index=2)):
        Devices(store).sample()
    [state] = store.snapshot().devices
    assert (state.device, state.id, state.platform, state.device_kind) == ("tpu:3", 3, "tpu", "TPU v5e")
    assert (state.process_index, state.pci_bus_id) == (2, "0000:65:00.0")


# ------------------------------------------------------------------------ high water, account, headroom


def test_a_peak_between_two_samples_is_kept_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The allocator's peak where it grew since the last sample; else the largest sample of the last minute."""
    now = [1000.0]
    monkeypatch.setattr("jaxobs.sources.devices.time.time", lambda: now[0])
    store, device = Store(), FakeDevice(0)
    source = Devices(store)
    marks = []
    with backends(FakeClient([device])):
        for seconds, in_use, peak in (
            (0, 5, 90), (5, 6, 90), (5, 6, 95), (5, 40, 95), (5, 7, 95), (50, 8, 95), (10, 9, 95), (61, 3, None),
            (5, None, None),
        ):  # fmt: skip
            now[0] += seconds
            device.statistics = {"bytes_in_use": in_use, "peak_bytes_in_use": peak}
            source.sample()
            memory = store.snapshot_devices()[0].memory
            assert memory is not None
            marks.append(memory.high_water_bytes)
    assert marks == [5, 6, 95, 95, 95, 95, 9, 3, 3]


def test_the_account_of_a_device_adds_up() -> None:
    """Arrays in its own memory, code and the rest; what lies in the host's memory is told apart."""
    one, two, silent = (
        FakeDevice(0, statistics=ALL | {"bytes_in_use": 1000}),
        FakeDevice(1, statistics=ALL),
        FakeDevice(2),
    )
    arrays = [FakeArray((25,), [one]), FakeArray((7,), [one], memory_kind="pinned_host"), FakeArray((3,), [silent])]
    client = FakeClient([one, two, silent], arrays=arrays, executables=[_Program(200, one), _Program(0, two)])
    store = Store()
    with backends(client):
        Devices(store).sample()
    snapshot = store.snapshot()
    first, second, third = snapshot.devices
    assert first.account == Account(in_use_bytes=1000, array_bytes=100, code_bytes=200, gap_bytes=700)
    assert second.account == Account(in_use_bytes=3, array_bytes=0, code_bytes=0, gap_bytes=3)
    assert third.account is None
    assert first.memory is not None and first.memory.other_space_bytes == {"pinned_host": 28}
    assert (first.memory.live_arrays, first.memory.live_array_bytes) == (1, 100)
    assert snapshot.executables == 2
    assert snapshot.headroom == Headroom("gpu:0", 9 - 1000)
    assert [group.shape for group in snapshot.array_groups] == [(25,), (7,), (3,)]


def test_the_largest_groups_are_kept() -> None:
    device = FakeDevice(0)
    store = Store()
    with backends(FakeClient([device], arrays=[FakeArray((n,), [device]) for n in range(1, 80)])):
        Devices(store).sample()
    assert [group.shape for group in store.snapshot().array_groups] == [(n,) for n in range(79, 29, -1)]


class _Program:
    def __init__(self, size: int, *devices: FakeDevice) -> None:
        self._size, self._devices = size, devices

    def size_of_generated_code_in_bytes(self) -> int:
        return self._size

    def local_devices(self) -> list[FakeDevice]:
        return list(self._devices)


# ------------------------------------------------------------------------------------------------- events


def test_an_event_for_each_change_and_one_a_minute_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle device does not fill the log; the chart has all samples."""
    now = [1000.0]
    monkeypatch.setattr("jaxobs.sources.devices.time.time", lambda: now[0])
    store, device = Store(), FakeDevice(0, statistics={"bytes_in_use": 1})
    with backends(FakeClient([device])):
        source = Devices(store)
        for _ in range(5):
            source.sample()
            now[0] += 5
        device.statistics = {"bytes_in_use": 2}
        source.sample()
        now[0] += QUIET_SECONDS
        source.sample()
    events = [event for event in store.events()[0] if isinstance(event, DeviceMemory)]
    assert [(event.time, event.in_use_bytes) for event in events] == [(1000.0, 1), (1025.0, 2), (1085.0, 2)]
    assert len(store.snapshot().devices[0].history) == 7


def test_a_forked_child_tells_of_its_devices_anew() -> None:
    store = Store()
    with backends(FakeClient([FakeDevice(0, statistics=ALL)])):
        source = Devices(store)
        source.sample()
        source.after_fork()
        source.sample()
    assert len(store.events(kind="memory")[0]) == 2


# --------------------------------------------------------------------------------------------- live arrays


@pytest.fixture
def live() -> Iterator[Any]:
    """Arrays and bytes on each of the eight devices beyond what was there before, as a pair of lists."""
    client = jax.devices()[0].client
    before = live_arrays(client)

    def difference() -> tuple[list[int], list[int]]:
        now = live_arrays(client)
        pairs = [
            tuple(n - b for n, b in zip(now.get(device, (0, 0)), before.get(device, (0, 0)), strict=True))
            for device in jax.devices()
        ]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    assert len(jax.devices()) == 8
    yield difference


def _mesh(*shape: int) -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(shape), ("x", "y")[: len(shape)])


def test_an_array_on_one_device(live: Any) -> None:
    kept = [jnp.zeros((10, 10), jnp.float32), jax.device_put(np.zeros(7, np.int8), jax.devices()[3])]
    assert live() == ([1, 0, 0, 1, 0, 0, 0, 0], [400, 0, 0, 7, 0, 0, 0, 0])
    assert len(kept) == 2


@pytest.mark.parametrize(
    ("array", "devices", "axes", "spec", "bytes_each"),
    [
        (np.zeros((16, 4), np.float32), range(8), (8,), ("x",), 32),  # cut into eight
        (np.zeros((16, 4), np.float16), range(8), (8,), (), 128),  # whole on each
        (np.zeros((8, 8), np.float32), range(8), (4, 2), ("x", None), 64),  # cut along one axis, whole along the other
        (np.zeros(8, np.int32), range(2, 4), (2,), ("x",), 16),  # on some of the devices
    ],
)
def test_an_array_on_several_devices_counts_on_each_with_its_shard(
    live: Any, array: Any, devices: range, axes: tuple[int, ...], spec: tuple[str | None, ...], bytes_each: int
) -> None:
    mesh = Mesh(np.array([jax.devices()[number] for number in devices]).reshape(axes), ("x", "y")[: len(axes)])
    kept = jax.device_put(array, NamedSharding(mesh, PartitionSpec(*spec)))
    there = [int(number in devices) for number in range(8)]
    assert live() == (there, [bytes_each * one for one in there])
    assert kept.nbytes == array.nbytes


@pytest.mark.parametrize(
    ("make", "nbytes"),
    [
        (lambda: jnp.zeros(()), 4),
        (lambda: jnp.zeros((0, 5)), 0),
        (lambda: jnp.zeros(6, jnp.bfloat16), 12),
        (lambda: jnp.zeros(6, bool), 6),
        (lambda: jnp.zeros(2, jnp.complex64), 16),
        (lambda: jax.random.key(0), 8),
        (lambda: jax.random.split(jax.random.PRNGKey(0), 3)[1:], 16),
    ],
    ids=["scalar", "empty", "bfloat16", "bool", "complex", "key", "keys"],
)
def test_arrays_of_all_types(live: Any, make: Any, nbytes: int) -> None:
    """Shape times the width of the type, of the array that is kept."""
    kept = make()
    jax.block_until_ready(kept)
    assert live() == ([1, 0, 0, 0, 0, 0, 0, 0], [nbytes, 0, 0, 0, 0, 0, 0, 0])


def test_what_is_deleted_or_given_away_does_not_count(live: Any) -> None:
    deleted, dropped, donated = jnp.ones(10), jnp.ones(20), jnp.ones(30)
    assert live()[0][0] == 3
    deleted.delete()
    del dropped
    result = jax.jit(lambda x: x + 1, donate_argnums=0)(donated)
    assert donated.is_deleted()
    assert live() == ([1, 0, 0, 0, 0, 0, 0, 0], [120, 0, 0, 0, 0, 0, 0, 0])
    assert result.shape == (30,)


def test_a_sample_while_arrays_come_and_go(live: Any) -> None:
    stop = threading.Event()
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    sharding = NamedSharding(_mesh(8), PartitionSpec("x"))

    def churn() -> None:
        while not stop.is_set():
            arrays = [jax.device_put(np.zeros(8 * n, np.float32), sharding) for n in range(1, 6)]
            arrays.append(add(jnp.ones(3)))
            for array in arrays:
                array.delete()

    threads = [threading.Thread(target=churn) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        store = Store()
        source = Devices(store)
        for _ in range(60):
            source.sample()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert guard.internal_errors() == {}
    assert live() == ([0] * 8, [0] * 8)


class _Vanishing:
    """An array that another thread deletes between two looks."""

    def is_deleted(self) -> bool:
        return False

    @property
    def sharding(self) -> object:
        raise RuntimeError("Array has been deleted.")


def test_an_array_that_is_deleted_while_it_is_looked_at_is_left_out() -> None:
    device = FakeDevice(0)
    client = FakeClient([device], arrays=[FakeArray((4,), [device]), _Vanishing()])  # type: ignore[list-item]
    assert live_arrays(client) == {device: (1, 16)}


def test_a_sample_keeps_no_array_alive() -> None:
    import weakref

    kept = jnp.ones(5)
    gone = weakref.ref(kept)
    Devices(Store()).sample()
    del kept
    assert gone() is None


def test_eight_devices_of_the_real_backend() -> None:
    kept = jax.device_put(np.zeros((8, 2), np.float32), NamedSharding(_mesh(8), PartitionSpec("x")))
    store = Store()
    Devices(store).sample()
    states = store.snapshot().devices
    assert [state.device for state in states] == [f"cpu:{number}" for number in range(8)]
    for state in states:
        assert state.memory is not None
        assert state.memory.in_use_bytes is None
        assert (state.memory.live_array_bytes or 0) >= kept.nbytes // 8


def test_fakes_are_like_the_real_ones() -> None:
    """Every attribute that jaxobs reads of a fake is there on a real device, backend and array as well."""
    real = jax.devices()[0]
    for name in ("id", "platform", "device_kind", "process_index", "memory_stats", "default_memory"):
        assert hasattr(real, name) and hasattr(FakeDevice(0), name)
    for name in [
        "devices",
        "local_devices",
        "live_arrays",
        "process_index",
        "platform",
        "platform_version",
        "live_executables",
    ]:
        assert hasattr(real.client, name) and hasattr(FakeClient([]), name)
    device = FakeDevice(0)
    for name in ("aval", "sharding", "is_deleted", "delete", "nbytes", "shape", "dtype", "traceback", "is_ready"):
        assert hasattr(jnp.zeros(1), name) and hasattr(FakeArray((1,), [device]), name)


def test_fakes_count_like_the_real_ones() -> None:
    one, two = FakeDevice(0), FakeDevice(1)
    whole, cut, deleted = FakeArray((8, 2), [one, two]), FakeArray((8, 2), [one, two], cut=True), FakeArray((9,), [one])
    deleted.delete()
    client = FakeClient([one, two], arrays=[whole, cut, deleted])
    assert live_arrays(client) == {one: (2, 96), two: (2, 96)}
    assert whole.nbytes == 64
    real = internals.clients
    with backends(client):
        assert internals.clients() == [client]
    assert internals.clients is real
