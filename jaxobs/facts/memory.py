"""Memory of devices, and the arrays and programs in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from jaxobs.facts.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory(Event):
    """The memory of one device at a moment."""

    kind: ClassVar[str] = "memory"

    device: str
    in_use_bytes: int | None = None
    peak_bytes: int | None = None
    limit_bytes: int | None = None
    reserved_bytes: int | None = None
    largest_free_block_bytes: int | None = None
    live_arrays: int | None = None
    """Arrays with a shard in the device's own memory, each buffer counted once."""
    live_array_bytes: int | None = None
    """Bytes of these shards."""
    high_water_bytes: int | None = None
    """Highest known bytes in use within the last minute: the allocator's peak if it rose in that time, otherwise the
    largest sample. At least so many were in use; a short peak below an earlier one can be missed."""
    other_space_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of live arrays in the device's other memory spaces (`pinned_host`, ...), which use none of its own."""
    code_bytes: int | None = None
    """Bytes of the compiled programs loaded on the device; None if the backend does not report it."""
    groups: tuple[ArrayGroup, ...] = ()
    """The largest groups of live arrays on it, the largest first: in the event log, once a minute and at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayGroup:
    """Live arrays that are alike: one shape, type, sharding and kind of memory."""

    shape: tuple[int, ...]
    """Shape of the whole array."""
    dtype: str
    sharding: str
    """Device for an array on one, else the partition and the mesh: `P('data', None) over data=4, model=2`."""
    memory_kind: str | None
    """`device`, `pinned_host`, ...; None if JAX does not report it."""
    count: int
    """Arrays; those that only show a shard of another, or share its buffer, do not count."""
    bytes_per_device: Mapping[str, int]
    """Bytes of their shards by device that this process can address."""
    call_sites: Mapping[str, int] = field(default_factory=dict)
    """Lines of the user's code, `file:line`, that created them, and how many of the checked arrays each created;
    recorded for leaking groups, and for all if `array_call_sites` is set."""

    @property
    def key(self) -> tuple[tuple[int, ...], str, str, str | None]:
        """Key of the group: shape, dtype, sharding and memory kind."""
        return self.shape, self.dtype, self.sharding, self.memory_kind

    @property
    def bytes(self) -> int:
        """Bytes on all devices of this process together."""
        return sum(self.bytes_per_device.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The memory of a device by part; the parts add up to the allocator's bytes in use."""

    in_use_bytes: int
    array_bytes: int
    """Bytes of live arrays in the device's own memory."""
    code_bytes: int
    """Bytes of compiled programs; 0 if the backend does not report it."""
    gap_bytes: int
    """The rest: temporaries of running programs, the allocator's rounding, buffers that nobody lists. Negative if
    arrays or code are outside of what the allocator counts."""


def account(memory: DeviceMemory) -> Account | None:
    """Returns the memory of a device by part; None if the allocator or the live arrays are unknown."""
    if memory.in_use_bytes is None or memory.live_array_bytes is None:
        return None
    code_bytes = memory.code_bytes or 0
    return Account(
        in_use_bytes=memory.in_use_bytes,
        array_bytes=memory.live_array_bytes,
        code_bytes=code_bytes,
        gap_bytes=memory.in_use_bytes - memory.live_array_bytes - code_bytes,
    )


@dataclass(frozen=True, slots=True)
class Headroom:
    """Free memory of the fullest device."""

    device: str
    bytes: int
    """The allocator's limit minus the bytes in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """A device that this process can address, and the latest sample of its memory."""

    device: str
    """`platform:id`, unique in the job: `gpu:3`."""
    id: int
    platform: str
    device_kind: str
    process_index: int
    pci_bus_id: str | None = None
    memory: DeviceMemory | None = None
    account: Account | None = None
    """The device's memory by part; None if the allocator does not report the bytes in use."""
    history: tuple[tuple[float, int | None, int | None], ...] = ()
    """Samples, oldest first: time, bytes in use (allocator), bytes of live arrays."""


def headroom(devices: Iterable[DeviceState]) -> Headroom | None:
    """Returns the limit less what is in use on the device where that is least; None if no allocator reports both."""
    left = [
        Headroom(each.device, each.memory.limit_bytes - each.memory.in_use_bytes)
        for each in devices
        if each.memory is not None and each.memory.limit_bytes is not None and each.memory.in_use_bytes is not None
    ]
    return min(left, key=lambda each: each.bytes, default=None)
