"""Memory of devices, and the arrays in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jaxobs.facts.memory import DeviceMemory, DeviceState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.metrics.metric import Labels, Metric, Value, per_function


def _memory(
    read: Callable[[DeviceMemory], int | None],
) -> Callable[[Snapshot], Iterator[tuple[Labels, Value]]]:
    def samples(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
        for device in snapshot.devices:
            value = None if device.memory is None else read(device.memory)
            if value is not None:
                yield (device.device,), value

    return samples


def _device_info(device: DeviceState) -> Labels:
    return (
        device.device,
        device.platform,
        device.device_kind,
        str(device.process_index),
        device.pci_bus_id or "",
    )


METRICS = (
    Metric(
        name="jax_device_memory_in_use_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.in_use_bytes), help="Bytes in use according to JAX's allocator.",
    ),
    Metric(
        name="jax_device_memory_peak_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.peak_bytes), help="Peak bytes in use according to JAX's allocator.",
    ),
    Metric(
        name="jax_device_memory_limit_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.limit_bytes), help="Bytes that JAX's allocator may use at most.",
    ),
    Metric(
        name="jax_device_memory_reserved_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.reserved_bytes), help="Bytes that JAX's allocator has reserved.",
    ),
    Metric(
        name="jax_device_memory_largest_free_block_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.largest_free_block_bytes),
        help="Largest piece that JAX's allocator could allocate without growing.",
    ),
    Metric(
        name="jax_device_info", kind="info", labels=("device", "platform", "kind", "process_index", "pci_bus_id"),
        read=lambda s: [(_device_info(device), 1) for device in s.devices],
        help="Devices that this process can address.",
    ),
    Metric(
        name="jax_live_arrays", kind="gauge", labels=("device",), read=_memory(lambda m: m.live_arrays),
        help="Arrays of this process that have a shard on the device and are not deleted.",
    ),
    Metric(
        name="jax_live_array_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.live_array_bytes), help="Bytes of the shards of live arrays on the device.",
    ),
    Metric(
        name="jax_out_of_memory_total", kind="counter", labels=("function", "device"),
        read=per_function(lambda f: [((device,), n) for device, n in f.out_of_memory.items()]),
        help="Calls that ran out of memory; device is empty if the error does not name it.",
    ),
    Metric(
        name="jax_device_memory_high_water_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.high_water_bytes),
        help="Highest known bytes in use within the last minute.",
    ),
    Metric(
        name="jax_live_array_space_bytes", kind="gauge", labels=("device", "space"), unit="bytes",
        read=lambda s: [
            ((device.device, space), size)
            for device in s.devices if device.memory is not None
            for space, size in device.memory.other_space_bytes.items()
        ],
        help="Bytes of live arrays in a device's other memory spaces, such as pinned_host.",
    ),
)  # fmt: skip
