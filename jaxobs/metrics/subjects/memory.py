"""Memory of devices, and the arrays in it."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from jaxobs.facts.memory import DeviceMemory, DeviceState
from jaxobs.metrics.metric import Labels, Metric, per, per_function


def _gauge(name: str, read: Callable[[DeviceMemory], int | None], help: str) -> Metric:
    """Returns the gauge of a figure of each device's memory."""

    def of_device(device: DeviceState) -> list[tuple[Labels, int | None]]:
        return [((), None if device.memory is None else read(device.memory))]

    read_all = per(attrgetter("devices"), attrgetter("device"), of_device)
    return Metric(name, help, read_all, ("device",))


METRICS = (
    _gauge("jax_device_memory_in_use_bytes", lambda m: m.in_use_bytes, "Bytes in use according to JAX's allocator."),
    _gauge("jax_device_memory_peak_bytes", lambda m: m.peak_bytes, "Peak bytes in use according to JAX's allocator."),
    _gauge("jax_device_memory_limit_bytes", lambda m: m.limit_bytes, "Bytes that JAX's allocator may use at most."),
    _gauge("jax_device_memory_reserved_bytes", lambda m: m.reserved_bytes, "Bytes that JAX's allocator has reserved."),
    _gauge("jax_device_memory_largest_free_block_bytes", lambda m: m.largest_free_block_bytes,
           "Largest piece that JAX's allocator could allocate without growing."),
    Metric("jax_device_info", "Devices that this process can address.",
           lambda s: [
               ((each.device, each.platform, each.device_kind, str(each.process_index), each.pci_bus_id or ""), 1)
               for each in s.devices
           ],
           ("device", "platform", "kind", "process_index", "pci_bus_id")),
    _gauge("jax_live_arrays", lambda m: m.live_arrays,
           "Arrays of this process that have a shard on the device and are not deleted."),
    _gauge("jax_live_array_bytes", lambda m: m.live_array_bytes, "Bytes of the shards of live arrays on the device."),
    Metric("jax_out_of_memory_total", "Calls that ran out of memory; device is empty if the error does not name it.",
           per_function(lambda f: [((device,), n) for device, n in f.out_of_memory.items()]), ("function", "device")),
    _gauge("jax_device_memory_high_water_bytes", lambda m: m.high_water_bytes,
           "Highest known bytes in use within the last minute."),
    Metric("jax_live_array_space_bytes", "Bytes of live arrays in a device's other memory spaces, such as pinned_host.",
           lambda s: [
               ((device.device, space), size) for device in s.devices if device.memory is not None
               for space, size in device.memory.other_space_bytes.items()
           ],
           ("device", "space")),
)  # fmt: skip
