"""Devices without hardware: as many as wanted, on any host, with whatever statistics, or none, or an error.

gpu = FakeDevice(0, statistics={"bytes_in_use": 3 * 2**30, "bytes_limit": 80 * 2**30})
with backends(FakeClient([gpu])):
    ...  # jaxobs samples this device instead of those of JAX
    gpu.statistics = RuntimeError("the device is lost")
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jaxobs import internals


@dataclass(frozen=True)
class FakeMemory:
    """A memory of a device."""

    kind: str


@dataclass(eq=False, kw_only=True)
class FakeDevice:
    """A JAX device, as far as jaxobs reads it."""

    id: int = field(kw_only=False)
    platform: str = "gpu"
    device_kind: str = "Fake GPU"
    process_index: int = 0
    pci_bus_id: str | None = None
    local_hardware_id: int | None = None
    """CUDA's number of the device in this process, or the number of the TPU chip on its host."""
    coords: tuple[int, ...] | None = None
    """Place of a TPU's chip; equal for the cores of one chip."""
    core_on_chip: int | None = None
    statistics: Mapping[str, int | None] | Exception | None = None
    """The answer of `memory_stats()`: some or all of JAX's keys, None as on the CPU, or an error that it raises."""
    memory_kind: str = "device"
    """Kind of the device's own memory."""

    def default_memory(self) -> FakeMemory:
        """Returns the device's own memory."""
        return FakeMemory(self.memory_kind)

    def memory_stats(self) -> Mapping[str, int | None] | None:
        """As a JAX device answers; devices of other hosts raise."""
        if isinstance(self.statistics, Exception):
            raise self.statistics
        return self.statistics


@dataclass(frozen=True)
class _Sharding:
    addressable_devices: frozenset[FakeDevice]
    parts: int
    memory_kind: str | None = None

    @property
    def device_set(self) -> frozenset[FakeDevice]:
        return self.addressable_devices

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        first, *rest = shape
        return (first // self.parts, *rest)


@dataclass(frozen=True)
class _Dtype:
    itemsize: int


@dataclass(frozen=True)
class _Abstract:
    shape: tuple[int, ...]
    dtype: _Dtype


class FakeArray:
    """A live array: whole on each of its devices, or cut along its first axis into as many parts as there are."""

    def __init__(
        self,
        shape: Sequence[int],
        devices: Sequence[FakeDevice],
        *,
        itemsize: int = 4,
        cut: bool = False,
        memory_kind: str | None = None,
        shares: FakeArray | None = None,
    ):
        """`shares`: an array whose buffer, or a shard of it, this one shows; `memory_kind`: None for the own memory."""
        self.shape, self.dtype = tuple(shape), _Dtype(itemsize)
        self.aval = _Abstract(self.shape, self.dtype)
        self.sharding = _Sharding(frozenset(devices), len(devices) if cut else 1, memory_kind)
        self.traceback: object = object() if shares is None else shares.traceback
        self._address: int = id(self) if shares is None else shares._address
        self._deleted = False

    def is_ready(self) -> bool:
        """Fakes are computed at once."""
        return True

    def block_until_ready(self) -> FakeArray:
        """Fakes are computed at once."""
        return self

    def unsafe_buffer_pointer(self) -> int:
        """Returns the buffer's address: equal for arrays that share a buffer."""
        if len(self.sharding.device_set) > 1:
            raise ValueError("unsafe_buffer_pointer() is supported only for unsharded arrays.")
        return self._address

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array, counted once."""
        return math.prod(self.aval.shape) * self.aval.dtype.itemsize

    def delete(self) -> None:
        """As if the program had deleted or donated it."""
        self._deleted = True

    def is_deleted(self) -> bool:
        """Returns whether the array was deleted."""
        return self._deleted


@dataclass(eq=False, kw_only=True)
class FakeClient:
    """A JAX backend, as far as jaxobs reads it. Devices of another `process_index` than its own are another host's."""

    all_devices: Sequence[FakeDevice] = field(kw_only=False)
    arrays: list[FakeArray] = field(default_factory=list)
    executables: list[Any] = field(default_factory=list)
    platform: str = "gpu"
    platform_version: str = "fake runtime"
    index: int = 0

    def devices(self) -> list[FakeDevice]:
        """Returns the devices of every host."""
        return list(self.all_devices)

    def local_devices(self) -> list[FakeDevice]:
        """Returns the devices that this process can address."""
        return [each for each in self.all_devices if each.process_index == self.index]

    def live_executables(self) -> list[Any]:
        """Compiled programs that are loaded."""
        return list(self.executables)

    def live_arrays(self) -> list[FakeArray]:
        """Returns all arrays that were made, deleted ones included: JAX, too, may list one that is going away."""
        return list(self.arrays)

    def process_index(self) -> int:
        """Returns the index of this host."""
        return self.index


@contextmanager
def backends(*clients: FakeClient) -> Iterator[None]:
    """Has jaxobs see these backends, awake, instead of JAX's own."""
    # Bound here: at the interpreter's exit, where an open block is closed, this module's names may be gone.
    looked_at = internals
    real = looked_at.clients
    seen: list[Any] = list(clients)
    # Whoever asks looks the function up in its module, so one place is enough.
    looked_at.clients = lambda: seen
    try:
        yield
    finally:
        looked_at.clients = real
