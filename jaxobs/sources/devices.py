"""Devices: their memory as JAX's allocator tells it, and the live arrays on each. Sampled, never on a scrape.

Only backends that the program has woken are read. A live array counts on every device that holds a shard of it,
with the bytes of that shard; deleted and donated ones do not count, and a buffer counts once (`jaxobs.array_groups`).
"""

from __future__ import annotations

import dataclasses
import heapq
import time
from collections import deque
from typing import Any

from jaxobs import array_groups, internals
from jaxobs.facts import Account, ArrayGroup, DeviceMemory, DeviceState
from jaxobs.guard import guarded
from jaxobs.store import Store

QUIET_SECONDS = 60.0
"""A device whose memory does not change is told of again after this time."""

HIGH_WATER_SECONDS = 60.0
"""For how long a high-water mark is told: a scrape a minute misses none."""

MOST_GROUPS = 50


class _HighWater:
    """The most that is known to have been in use on one device within the last minute."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()
        self._peak: int | None = None

    def take(self, now: float, in_use: int | None, peak: int | None) -> int | None:
        """Of two samples with another peak of the allocator the later's peak was reached between them."""
        marks = [in_use]
        if peak is not None:
            if self._peak is not None and peak > self._peak:
                marks.append(peak)
            self._peak = peak
        known = [each for each in marks if each is not None]
        if known:
            mark = max(known)
            while self._marks and self._marks[-1][1] <= mark:
                self._marks.pop()
            self._marks.append((now, mark))
        while self._marks and now - self._marks[0][0] > HIGH_WATER_SECONDS:
            self._marks.popleft()
        return self._marks[0][1] if self._marks else None


class Devices:
    """The source: samples in; device states, and `memory` events where something changed, out."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.after_fork()

    def start(self) -> None:
        """Nothing to prepare."""

    def stop(self) -> None:
        """Nothing to undo."""

    def after_fork(self) -> None:
        """The child tells of its devices anew."""
        self._told: dict[str, DeviceMemory] = {}
        self._high_water: dict[str, _HighWater] = {}

    def sample(self) -> None:
        """Reads every device that this process can address, if its backend is awake."""
        now = time.time()
        clients = internals.clients()
        largest: list[ArrayGroup] = []
        number = None
        for client in clients:
            live: array_groups.Live | None = None
            with guarded("live_arrays"):
                live = array_groups.read(client)
                largest += live.groups()
            code: dict[Any, int] | None = None
            with guarded("executables"):
                count, code = internals.executables.loaded(client)
                number = count + (number or 0)
            for device in client.local_devices():
                with guarded("device"):
                    self._sample_device(device, live, code, now)
        if clients:
            largest = heapq.nlargest(MOST_GROUPS, largest, key=lambda group: group.bytes)
            self._store.set_holdings(tuple(largest), number)

    def _sample_device(
        self, device: Any, live: array_groups.Live | None, code: dict[Any, int] | None, now: float
    ) -> None:
        state = describe(device)
        memory = DeviceMemory(time=now, device=state.device)
        if live is not None:
            memory = dataclasses.replace(memory, **_arrays(device, live))
        with guarded("memory_stats"):
            memory = dataclasses.replace(memory, **internals.allocator(device))
        high_water = self._high_water.setdefault(state.device, _HighWater())
        memory = dataclasses.replace(
            memory, high_water_bytes=high_water.take(now, memory.in_use_bytes, memory.peak_bytes)
        )
        state = dataclasses.replace(state, account=account(memory, (code or {}).get(device, 0)))
        self._store.set_device(state, memory)
        told = self._told.get(state.device)
        if told is None or now - told.time >= QUIET_SECONDS or dataclasses.replace(memory, time=told.time) != told:
            self._told[state.device] = memory
            self._store.record(memory)


def _arrays(device: Any, live: array_groups.Live) -> dict[str, Any]:
    kinds = dict(live.per_device.get(device, {}))
    count, size = kinds.pop(array_groups.own_memory(device) or "", (0, 0))
    return {
        "live_arrays": count,
        "live_array_bytes": size,
        "other_space_bytes": {kind: nbytes for kind, (_, nbytes) in sorted(kinds.items())},
    }


def account(memory: DeviceMemory, code_bytes: int) -> Account | None:
    """What a device's memory is in use for; None where the allocator or the live arrays are not known."""
    if memory.in_use_bytes is None or memory.live_array_bytes is None:
        return None
    return Account(
        in_use_bytes=memory.in_use_bytes,
        array_bytes=memory.live_array_bytes,
        code_bytes=code_bytes,
        gap_bytes=memory.in_use_bytes - memory.live_array_bytes - code_bytes,
    )


def describe(device: Any) -> DeviceState:
    """What a JAX device says of itself."""
    return DeviceState(
        device=internals.device_name(device),
        id=device.id,
        platform=device.platform,
        device_kind=device.device_kind,
        process_index=device.process_index,
        pci_bus_id=getattr(device, "pci_bus_id", None),
    )


def live_arrays(client: Any) -> dict[Any, tuple[int, int]]:
    """Number and bytes of the shards of live arrays on each device of a backend, in its own memory."""
    found = array_groups.read(client).per_device
    own = {device: kinds.get(array_groups.own_memory(device) or "") for device, kinds in found.items()}
    return {device: shards for device, shards in own.items() if shards is not None}


def source(store: Store) -> Devices:
    """What the folder's discovery asks every source for."""
    return Devices(store)
