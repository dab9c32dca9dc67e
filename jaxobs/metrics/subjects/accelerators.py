"""Accelerators, as their driver sees them."""

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter

from jaxobs.facts.accelerators import THROTTLE_REASONS, AcceleratorState
from jaxobs.metrics.metric import Labels, Metric, Read, per


def _accelerators(read: Callable[[AcceleratorState], Iterable[tuple[Labels, float | None]]]) -> Read:
    return per(attrgetter("accelerators"), attrgetter("device"), read)


def _gauge(name: str, read: Callable[[AcceleratorState], float | None], help: str) -> Metric:
    """Returns the gauge of a figure that each device has."""
    return Metric(name, help, _accelerators(lambda a: [((), read(a))]), ("device",))


def _throttled(state: AcceleratorState) -> Iterator[tuple[Labels, float]]:
    if state.throttle_reasons is not None:
        for reason in THROTTLE_REASONS:
            yield (reason,), float(reason in state.throttle_reasons)


def _clocks(state: AcceleratorState) -> Iterator[tuple[Labels, float | None]]:
    yield ("sm",), state.sm_clock_hertz
    yield ("memory",), state.memory_clock_hertz


def _ecc_errors(state: AcceleratorState) -> Iterator[tuple[Labels, float]]:
    for error, by_counter in state.ecc_errors.items():
        for counter, count in by_counter.items():
            yield (error, counter), count


def _nvlink_bytes(state: AcceleratorState) -> Iterator[tuple[Labels, float]]:
    for direction in ("transmit", "receive"):
        counts = [link[direction] for link in state.nvlink_bytes.values() if direction in link]
        if counts:
            yield (direction,), sum(counts)


def _process_memory(state: AcceleratorState) -> Iterator[tuple[Labels, float]]:
    """Only where each process can be reported to be this one or another, and each says what it holds."""
    processes = state.processes or ()
    if all(each.ours is not None and each.bytes is not None for each in processes):
        for label, ours in (("self", True), ("others", False)) if processes else ():
            yield (label,), sum(each.bytes or 0 for each in processes if each.ours is ours)


METRICS = (
    Metric("accelerator_info",
           "Devices as their driver sees them; `mig_parent` is the UUID of the device that an instance belongs to.",
           _accelerators(lambda a: [
               ((a.uuid, a.model or "", a.pci_bus_id or "", a.driver_version or "", a.parent or ""), 1)
           ]),
           ("device", "uuid", "model", "pci_bus_id", "driver_version", "mig_parent")),
    Metric("accelerator_up",
           "Whether the device responds to its driver: 0 if it is lost or hangs, and then its gauges are absent.",
           _accelerators(lambda a: [((), float(a.up))]), ("device",)),
    _gauge("accelerator_utilization_ratio", lambda a: a.utilization,
           "Share of the driver's sample period in which any program ran on the device."),
    _gauge("accelerator_tensorcore_utilization_ratio", lambda a: a.tensorcore_utilization,
           "Utilization of a TPU's matrix units, as a share of their capacity."),
    _gauge("accelerator_memory_controller_utilization_ratio", lambda a: a.memory_controller_utilization,
           "Share of the driver's sample period in which the device's memory was read or written."),
    _gauge("accelerator_memory_bandwidth_utilization_ratio", lambda a: a.memory_bandwidth_utilization,
           "Share of a TPU's memory bandwidth in use."),
    _gauge("accelerator_memory_used_bytes", lambda a: a.memory_used_bytes,
           "Memory in use by all processes together, including unused memory that JAX preallocated."),
    _gauge("accelerator_memory_total_bytes", lambda a: a.memory_total_bytes, "Total memory of the device."),
    Metric("accelerator_process_memory_bytes",
           "Memory in use by this process and by others; absent if they cannot be distinguished.",
           _accelerators(_process_memory), ("device", "process"), values=(("process", ("self", "others")),)),
    Metric("accelerator_processes", "Number of processes that compute on the device.",
           _accelerators(lambda a: [] if a.processes is None else [((), len(a.processes))]), ("device",)),
    _gauge("accelerator_power_watts", lambda a: a.power_watts, "Power draw of the whole board."),
    _gauge("accelerator_power_limit_watts", lambda a: a.power_limit_watts,
           "Power limit that the driver enforces for the board."),
    Metric("accelerator_energy_joules_total", "Energy used by the board since its driver was loaded.",
           _accelerators(lambda a: [((), a.energy_joules)]), ("device",)),
    _gauge("accelerator_temperature_celsius", lambda a: a.temperature_celsius, "Temperature of the chip."),
    Metric("accelerator_clock_hertz", "Clock of the multiprocessors and of the memory.", _accelerators(_clocks),
           ("device", "clock"), values=(("clock", ("sm", "memory")),)),
    Metric("accelerator_throttled", "Whether the device is throttled now, by reason.", _accelerators(_throttled),
           ("device", "reason"), values=(("reason", THROTTLE_REASONS),)),
    _gauge("accelerator_slowdown_ratio", lambda a: a.slowdown,
           "How much a TPU is throttled: 0 means not at all."),
    Metric("accelerator_ecc_errors_total",
           "Memory errors: `volatile` since the driver was loaded, `aggregate` over the device's lifetime.",
           _accelerators(_ecc_errors), ("device", "error", "counter"),
           values=(("error", ("corrected", "uncorrected")), ("counter", ("volatile", "aggregate")))),
    Metric("accelerator_xid_errors_total", "Errors that the driver reported while jaxobs was running, by Xid code.",
           _accelerators(lambda a: [((xid,), n) for xid, n in (a.xid_errors or {}).items()]), ("device", "xid")),
    Metric("accelerator_pcie_bytes_total", "Bytes over PCI Express according to the device, seen from the device.",
           _accelerators(lambda a: [((direction,), n) for direction, n in a.pcie_bytes.items()]),
           ("device", "direction"), values=(("direction", ("transmit", "receive")),)),
    Metric("accelerator_nvlink_bytes_total",
           "Bytes over all NVLinks of the device, without protocol overhead; absent while one of them does not count.",
           _accelerators(_nvlink_bytes), ("device", "direction"), values=(("direction", ("transmit", "receive")),)),
    _gauge("accelerator_nvlink_links", lambda a: a.nvlink_links, "Number of working NVLinks of the device."),
    Metric("accelerator_link_fault_level",
           "Links between TPU chips: 0 healthy, 1 to 5 a transient fault, 6 to 9 a persistent one, 10 unusable.",
           _accelerators(lambda a: [((link,), level) for link, level in a.link_faults.items()]), ("device", "link")),
)  # fmt: skip
