"""Devices: their memory as JAX's allocator tells it, and the live arrays on each. Sampled, never on a scrape.

Only backends that the program has woken are read. A live array counts on every device that holds a shard of it,
with the bytes of that shard; deleted and donated ones do not count.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from jaxobs import internals
from jaxobs.facts import DeviceMemory, DeviceState
from jaxobs.guard import guarded
from jaxobs.store import Store

QUIET_SECONDS = 60.0
"""A device whose memory does not change is told of again after this time."""


class Devices:
    """The source: samples in; device states, and `memory` events where something changed, out."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._told: dict[str, DeviceMemory] = {}

    def start(self) -> None:
        """Nothing to prepare."""

    def stop(self) -> None:
        """Nothing to undo."""

    def after_fork(self) -> None:
        """The child tells of its devices anew."""
        self._told = {}

    def sample(self) -> None:
        """Reads every device that this process can address, if its backend is awake."""
        now = time.time()
        for client in internals.clients():
            arrays: dict[Any, tuple[int, int]] | None = None
            with guarded("live_arrays"):
                arrays = live_arrays(client)
            for device in client.local_devices():
                with guarded("device"):
                    self._sample_device(device, arrays, now)

    def _sample_device(self, device: Any, arrays: dict[Any, tuple[int, int]] | None, now: float) -> None:
        state = describe(device)
        memory = DeviceMemory(time=now, device=state.device)
        if arrays is not None:
            count, size = arrays.get(device, (0, 0))
            memory = dataclasses.replace(memory, live_arrays=count, live_array_bytes=size)
        with guarded("memory_stats"):
            memory = dataclasses.replace(memory, **allocator(device))
        self._store.set_device(state, memory)
        told = self._told.get(state.device)
        if told is None or now - told.time >= QUIET_SECONDS or dataclasses.replace(memory, time=told.time) != told:
            self._told[state.device] = memory
            self._store.record(memory)


def describe(device: Any) -> DeviceState:
    """What a JAX device says of itself."""
    return DeviceState(
        device=f"{device.platform}:{device.id}",
        id=device.id,
        platform=device.platform,
        device_kind=device.device_kind,
        process_index=device.process_index,
        pci_bus_id=getattr(device, "pci_bus_id", None),
    )


_KEYS = {
    "in_use_bytes": "bytes_in_use",
    "peak_bytes": "peak_bytes_in_use",
    "limit_bytes": "bytes_limit",
    "reserved_bytes": "bytes_reserved",
    "largest_free_block_bytes": "largest_free_block_bytes",
}


def allocator(device: Any) -> dict[str, Any]:
    """What JAX's allocator tells of a device, in bytes; every key is optional, and the CPU tells nothing."""
    statistics = device.memory_stats() or {}
    return {ours: int(statistics[theirs]) for ours, theirs in _KEYS.items() if statistics.get(theirs) is not None}


def live_arrays(client: Any) -> dict[Any, tuple[int, int]]:
    """Number and bytes of the shards of live arrays on each device of a backend."""
    count: dict[Any, int] = defaultdict(int)
    size: dict[Any, int] = defaultdict(int)
    for sharding, abstract, number in _alike(client.live_arrays()):
        nbytes = math.prod(sharding.shard_shape(abstract.shape)) * abstract.dtype.itemsize
        for device in sharding.addressable_devices:
            count[device] += number
            size[device] += number * nbytes
    return {device: (count[device], size[device]) for device in count}


def _alike(arrays: list[Any]) -> Iterable[tuple[Any, Any, int]]:
    """Shardings and abstract values, and how many of the arrays have them; takes the arrays out of the list."""
    found: dict[tuple[Any, int], tuple[Any, Any, int]] = {}
    while arrays:
        # One by one: what the program lets go of meanwhile is not kept alive for longer than needed.
        array = arrays.pop()
        try:
            if array.is_deleted():
                continue
            sharding, abstract = array.sharding, array.aval
        except RuntimeError:  # deleted by another thread while we looked at it
            continue
        # By id, which is quick, and unique because what is found is kept.
        key = (sharding, id(abstract))
        known = found.get(key)
        found[key] = (sharding, abstract, 1 if known is None else known[2] + 1)
    return found.values()


def source(store: Store) -> Devices:
    """What the folder's discovery asks every source for."""
    return Devices(store)
