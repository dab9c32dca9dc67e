"""Every metric once: its name, kind, labels, sentence, and how it is read from a snapshot.

Exporters, the reference page and, later, dashboards and alerts are derived from `METRICS`; nothing else
names a metric. `read` gives the samples: pairs of label values, in the order of `labels`, and a value. It
yields nothing for what is not known: absent, never zero.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from jaxobs.facts import (
    CACHE_RESULTS,
    CAUSES,
    CHECKPOINT_OPERATIONS,
    DIRECTIONS,
    EAGER,
    INSTRUCTION_KINDS,
    MEMORY_SECTIONS,
    PHASES,
    REQUEST_COLD,
    REQUEST_OUTCOMES,
    THROTTLE_REASONS,
    TIME_CATEGORIES,
    UNSAVED,
    AcceleratorState,
    DeviceMemory,
    DeviceState,
    FunctionState,
    Histogram,
    ProgramState,
    RouteState,
    Snapshot,
)

Labels = tuple[str, ...]
Value = float | Histogram | tuple[int, float]
"""A number; a histogram; or, for a summary without quantiles, count and sum."""

KINDS = ("counter", "gauge", "histogram", "summary", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric family. `jax_*` tells of the workload, `accelerator_*` of the devices, `jaxobs_*` of the observer."""

    name: str
    """As in the exposition: counters end in `_total`, the unit is part of the name."""
    kind: str
    help: str
    read: Callable[[Snapshot], Iterable[tuple[Labels, Value]]]
    labels: Labels = ()
    unit: str = ""
    """`seconds`, `bytes`, `ratio`, `joules`, ...; empty for what is merely counted."""
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Labels whose values are a closed set, with the set."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Metric `{self.name}` has kind {self.kind!r}. Kinds: {', '.join(KINDS)}.")
        if (self.kind == "counter") != self.name.endswith("_total"):
            raise ValueError(f"Metric `{self.name}`: counters, and only they, end in `_total`.")
        if not self.help.endswith("."):
            raise ValueError(f"Metric `{self.name}`: its help is no sentence.")


def _compilations(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    for function in snapshot.functions:
        for cause, by_cache in function.compilations.items():
            for cache, count in by_cache.items():
                yield (function.name, cause, cache), count


def _oldest_start(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    if snapshot.in_progress:
        yield (), min(each.started for each in snapshot.in_progress)


def _compile_seconds(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    for function in snapshot.functions:
        for phase, seconds in function.phase_seconds.items():
            yield (function.name, phase), (function.phase_counts[phase], seconds)


def _per_function(
    read: Callable[[FunctionState], Iterable[tuple[Labels, Value]]],
) -> Callable[[Snapshot], Iterator[tuple[Labels, Value]]]:
    def samples(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
        for function in snapshot.functions:
            for labels, value in read(function):
                yield (function.name, *labels), value

    return samples


MOST_PROGRAMS = 8
"""Functions whose program has series, at most ten each: those that take most memory. The snapshot has all."""


def _programs(
    read: Callable[[ProgramState], Iterable[tuple[Labels, Value]]],
) -> Callable[[Snapshot], Iterator[tuple[Labels, Value]]]:
    def size(function: FunctionState) -> float:
        memory = {} if function.program is None else function.program.memory
        return sum(memory.get(section, 0) for section in ("argument", "output", "temp"))

    def samples(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
        known = [function for function in snapshot.functions if function.program is not None]
        for function in heapq.nlargest(MOST_PROGRAMS, known, key=size):
            assert function.program is not None
            for labels, value in read(function.program):
                yield (function.name, *labels), value

    return samples


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


def _accelerators(
    read: Callable[[AcceleratorState], Iterable[tuple[Labels, float | None]]],
) -> Callable[[Snapshot], Iterator[tuple[Labels, Value]]]:
    def samples(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
        for state in snapshot.accelerators:
            for labels, value in read(state):
                if value is not None:
                    yield (state.device, *labels), value

    return samples


def _routes(
    read: Callable[[RouteState], Iterable[tuple[Labels, Value]]],
) -> Callable[[Snapshot], Iterator[tuple[Labels, Value]]]:
    def samples(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
        for route in snapshot.routes:
            for labels, value in read(route):
                yield (route.route, *labels), value

    return samples


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
    """Only where each process can be told to be this one or another, and each says what it holds."""
    processes = state.processes or ()
    if all(each.ours is not None and each.bytes is not None for each in processes):
        for label, ours in (("self", True), ("others", False)) if processes else ():
            yield (label,), sum(each.bytes or 0 for each in processes if each.ours is ours)


RUN_LOSSES = ("down", "redone", "at_risk")


def _goodput(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    if snapshot.wall is not None and snapshot.wall.goodput is not None:
        yield ("process",), snapshot.wall.goodput
    if snapshot.wall is not None and snapshot.wall.run is not None and snapshot.wall.run.goodput is not None:
        yield ("run",), snapshot.wall.run.goodput


def _run_losses(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    run = None if snapshot.wall is None else snapshot.wall.run
    if run is not None:
        yield ("down",), run.down_seconds
        if run.redone_seconds is not None:
            yield ("redone",), run.redone_seconds
            yield ("at_risk",), run.unsaved_seconds


def _findings(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    standing = dict.fromkeys((each.finding for each in snapshot.findings), 0)
    for each in snapshot.findings:
        standing[each.finding] += each.ended is None
    for finding, count in standing.items():
        yield (finding,), count


_VERSIONS = ("jaxobs", "python", "jax", "jaxlib", "plugin", "driver", "runtime")

METRICS: tuple[Metric, ...] = (
    Metric(
        name="jax_compilations_total", kind="counter", labels=("function", "cause", "cache"),
        values=(("cause", CAUSES), ("cache", CACHE_RESULTS)), read=_compilations,
        help="Executables that a cache miss brought, compiled or loaded from the persistent cache.",
    ),
    Metric(
        name="jax_compilations_in_progress", kind="gauge",
        read=lambda s: [((), len({each.thread for each in s.in_progress}))],
        help="Threads that are tracing, lowering or compiling now.",
    ),
    Metric(
        name="jax_compilation_oldest_start_timestamp_seconds", kind="gauge", unit="seconds", read=_oldest_start,
        help="When the oldest phase in progress began; absent while none is.",
    ),
    Metric(
        name="jax_compile_phase_seconds", kind="histogram", labels=("phase",), unit="seconds",
        values=(("phase", PHASES),), read=lambda s: [((phase,), h) for phase, h in s.phases.items()],
        help="Time of each phase of a cache miss, over all functions.",
    ),
    Metric(
        name="jax_function_compile_seconds", kind="summary", labels=("function", "phase"), unit="seconds",
        values=(("phase", PHASES),), read=_compile_seconds,
        help="Time of each phase of a cache miss, by function.",
    ),
    Metric(
        name="jax_function_calls_total", kind="counter", labels=("function",),
        read=_per_function(lambda f: [] if f.calls is None else [((), f.calls)]),
        help="Calls of instrumented functions; those made while tracing another do not count.",
    ),
    Metric(
        name="jax_function_dispatch_seconds", kind="histogram", labels=("function",), unit="seconds",
        read=_per_function(lambda f: [] if f.dispatch is None else [((), f.dispatch)]),
        help="Time from call to return of those calls of instrumented functions that were timed.",
    ),
    Metric(
        name="jax_function_device_seconds", kind="histogram", labels=("function",), unit="seconds",
        read=_per_function(lambda f: [] if f.device is None else [((), f.device)]),
        help="Time that the device took at most for sampled calls of instrumented functions, found without waiting.",
    ),
    Metric(
        name="jax_function_errors_total", kind="counter", labels=("function", "error"),
        read=_per_function(lambda f: [((error,), n) for error, n in f.errors.items()]),
        help="Calls of instrumented functions that raised, by the type of the exception.",
    ),
    Metric(
        name="jax_fastpath_misses_total", kind="counter", labels=("function",),
        read=_per_function(lambda f: [((), sum(f.fastpath_misses.values()))] if f.fastpath_watched else []),
        help="Calls of instrumented functions that JAX dispatched from Python although nothing compiled.",
    ),
    Metric(
        name="jax_persistent_cache_requests_total", kind="counter", labels=("function", "result"),
        values=(("result", CACHE_RESULTS),),
        read=_per_function(lambda f: [((result,), n) for result, n in f.cache.items()]),
        help="Programs looked up in the persistent compilation cache, or not because it is off.",
    ),
    Metric(
        name="jax_persistent_cache_unsaved_total", kind="counter", labels=("reason",),
        values=(("reason", tuple(reason for reason in UNSAVED if reason != "disabled")),),
        read=lambda s: [((reason,), n) for reason, n in s.cache.unsaved.items()],
        help="Compiled programs that were not stored in the persistent cache although it is on.",
    ),
    Metric(
        name="jax_persistent_cache_saved_seconds_total", kind="counter", unit="seconds",
        read=lambda s: [((), s.cache.saved_seconds)],
        help="Compile time that cache hits saved: by the compile that jaxobs saw, else by JAX's whole seconds.",
    ),
    Metric(
        name="jax_persistent_cache_bytes", kind="gauge", unit="bytes",
        read=lambda s: [] if s.cache.bytes is None else [((), s.cache.bytes)],
        help="Size of the persistent cache's entries on disk; absent where its directory is out of sight.",
    ),
    Metric(
        name="jax_persistent_cache_entries", kind="gauge",
        read=lambda s: [] if s.cache.entries is None else [((), s.cache.entries)],
        help="Compiled programs in the persistent cache's directory.",
    ),
    Metric(
        name="jax_device_memory_in_use_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.in_use_bytes), help="Bytes that JAX's allocator has handed out.",
    ),
    Metric(
        name="jax_device_memory_peak_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.peak_bytes), help="Most bytes that JAX's allocator had handed out at once.",
    ),
    Metric(
        name="jax_device_memory_limit_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.limit_bytes), help="Bytes that JAX's allocator may hand out.",
    ),
    Metric(
        name="jax_device_memory_reserved_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.reserved_bytes), help="Bytes that JAX's allocator keeps back.",
    ),
    Metric(
        name="jax_device_memory_largest_free_block_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.largest_free_block_bytes),
        help="Largest piece that JAX's allocator could hand out without growing.",
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
        read=_per_function(lambda f: [((device,), n) for device, n in f.out_of_memory.items()]),
        help="Calls that died of memory; device is empty where the error does not tell it.",
    ),
    Metric(
        name="jax_device_memory_high_water_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_memory(lambda m: m.high_water_bytes),
        help="Most bytes known to have been in use within the last minute.",
    ),
    Metric(
        name="jax_live_array_space_bytes", kind="gauge", labels=("device", "space"), unit="bytes",
        read=lambda s: [
            ((device.device, space), size)
            for device in s.devices if device.memory is not None
            for space, size in device.memory.other_space_bytes.items()
        ],
        help="Bytes of live arrays in the memories of a device that are not its own, such as pinned_host.",
    ),
    Metric(
        name="jax_program_memory_bytes", kind="gauge", labels=("function", "section"), unit="bytes",
        values=(("section", MEMORY_SECTIONS),), read=_programs(lambda p: [((k,), v) for k, v in p.memory.items()]),
        help="Bytes that the latest program of a function takes on one device, by the compiler's analysis.",
    ),
    Metric(
        name="jax_program_flops", kind="gauge", labels=("function",),
        read=_programs(lambda p: [] if p.flops is None else [((), p.flops)]),
        help="Floating-point operations of one execution of a function's latest program on one device.",
    ),
    Metric(
        name="jax_program_instructions", kind="gauge", labels=("function", "kind"),
        values=(("kind", INSTRUCTION_KINDS),),
        read=_programs(lambda p: [((k,), v) for k, v in (p.instructions or {}).items()]),
        help="Instructions of a function's latest program after optimisation; what is inside a fusion is part of it.",
    ),
    Metric(
        name="jax_executables", kind="gauge", read=lambda s: [] if s.executables is None else [((), s.executables)],
        help="Compiled programs that are loaded.",
    ),
    Metric(
        name="jax_requests_total", kind="counter", labels=("route", "cold", "outcome"),
        values=(("cold", REQUEST_COLD), ("outcome", REQUEST_OUTCOMES)),
        read=_routes(
            lambda r: [((c, o), n) for c, by_outcome in r.requests.items() for o, n in by_outcome.items()]
        ),
        help="Requests that ended; cold is whether something compiled, or was loaded from the cache, inside.",
    ),
    Metric(
        name="jax_request_seconds", kind="histogram", labels=("route", "cold"), unit="seconds",
        values=(("cold", REQUEST_COLD),), read=_routes(lambda r: [((c,), h) for c, h in r.seconds.items()]),
        help="Time from the begin of a request to its last byte.",
    ),
    Metric(
        name="jax_request_waited_seconds", kind="summary", labels=("route",), unit="seconds",
        read=_routes(lambda r: [((), (r.waited, r.waited_seconds))]),
        help="Those of the requests that are not cold but were held up by a compilation elsewhere in the process.",
    ),
    Metric(
        name="jax_request_queue_seconds", kind="summary", labels=("route",), unit="seconds",
        read=_routes(lambda r: [((), (r.queued, r.queue_seconds))] if r.queued else []),
        help="Time in a queue before requests began, of those that tell it; it is not part of jax_request_seconds.",
    ),
    Metric(
        name="jax_request_batch_rows_total", kind="counter", labels=("route", "rows"),
        values=(("rows", ("used", "padding")),),
        read=_routes(
            lambda r: [(("used",), r.batch_used), (("padding",), max(0, r.batch_size - r.batch_used))]
            if r.batches else []
        ),
        help="Rows of the batches of requests that tell them: those that held something, and the rest.",
    ),
    Metric(
        name="jax_requests_in_flight", kind="gauge",
        read=lambda s: [] if s.requests_in_flight is None else [((), s.requests_in_flight)],
        help="Requests that have begun and not ended.",
    ),
    Metric(
        name="jax_steps_total", kind="counter", labels=("loop",),
        read=lambda s: [((each.name,), each.steps) for each in s.loops if each.steps_counted],
        help="Steps that have ended, by loop; absent where only some of them were seen.",
    ),
    Metric(
        name="jax_step_seconds", kind="histogram", labels=("loop",), unit="seconds",
        read=lambda s: [((each.name,), each.seconds) for each in s.loops if each.seconds is not None],
        help="Time from the end of one step to the end of the next, without evaluations and checkpoints between them.",
    ),
    Metric(
        name="jax_step_items_total", kind="counter", labels=("loop",),
        read=lambda s: [((each.name,), each.items) for each in s.loops if each.items is not None],
        help="Samples or tokens in the steps that have ended, where the program tells how many.",
    ),
    Metric(
        name="jax_step_mfu_ratio", kind="gauge", labels=("loop",), unit="ratio",
        read=lambda s: [((each.name,), each.mfu) for each in s.loops if each.mfu is not None],
        help="Model FLOP utilization of the recent steps: what they compute against what the device could.",
    ),
    Metric(
        name="jax_time_seconds_total", kind="counter", labels=("category",), unit="seconds",
        values=(("category", TIME_CATEGORIES),),
        read=lambda s: [] if s.wall is None else [((name,), value) for name, value in s.wall.counted.items()],
        help="Time since the process was started, each second in exactly one category.",
    ),
    Metric(
        name="jax_goodput_ratio", kind="gauge", labels=("scope",), unit="ratio",
        values=(("scope", ("process", "run")),), read=_goodput,
        help="Share of the time that went into steps: of this process, and of its run without work that was lost.",
    ),
    Metric(
        name="jax_run_lost_seconds", kind="gauge", labels=("cause",), unit="seconds",
        values=(("cause", RUN_LOSSES),), read=_run_losses,
        help="Time of the run with a run_id in which no process ran, and of steps made again; at_risk is unsaved now.",
    ),
    Metric(
        name="jax_checkpoint_seconds", kind="histogram", labels=("operation",), unit="seconds",
        values=(("operation", CHECKPOINT_OPERATIONS),),
        read=lambda s: [] if s.wall is None else [((name,), each) for name, each in s.wall.checkpoints.items()],
        help="Time of checkpoints: save is what held the program up, save_async all of one in the background.",
    ),
    Metric(
        name="jax_input_wait_seconds_total", kind="counter", labels=("input",), unit="seconds",
        read=lambda s: [((each.name,), each.wait_seconds) for each in s.inputs],
        help="Time that the program's thread waited for batches of an input.",
    ),
    Metric(
        name="jax_input_batches_total", kind="counter", labels=("input",),
        read=lambda s: [((each.name,), each.batches) for each in s.inputs],
        help="Batches that an input gave, those included that another thread fetched.",
    ),
    Metric(
        name="jax_nonfinite_total", kind="counter", labels=("name",),
        read=lambda s: [((each.name,), each.nonfinite) for each in s.watched],
        help="Watched values that held a NaN or an infinity.",
    ),
    Metric(
        name="jax_host_transfers_total", kind="counter", labels=("site", "direction"),
        read=lambda s: [((each.site, each.direction), each.count) for each in s.transfers],
        values=(("direction", DIRECTIONS),),
        help="Arrays moved between host and devices, by the line that moves them; where the setting `transfers` is on.",
    ),
    Metric(
        name="jax_host_transfer_bytes_total", kind="counter", labels=("site", "direction"), unit="bytes",
        read=lambda s: [((each.site, each.direction), each.bytes) for each in s.transfers],
        values=(("direction", DIRECTIONS),),
        help="Size of the arrays moved between host and devices, by the line that moves them.",
    ),
    Metric(
        name="accelerator_info", kind="info",
        labels=("device", "uuid", "model", "pci_bus_id", "driver_version", "mig_parent"),
        read=_accelerators(
            lambda a: [((a.uuid, a.model or "", a.pci_bus_id or "", a.driver_version or "", a.parent or ""), 1)]
        ),
        help="Devices as their driver knows them; `mig_parent` is the UUID of the device that an instance is part of.",
    ),
    Metric(
        name="accelerator_up", kind="gauge", labels=("device",), read=_accelerators(lambda a: [((), float(a.up))]),
        help="Whether the device answers its driver: 0 where it is lost or hangs, and then its gauges are absent.",
    ),
    Metric(
        name="accelerator_utilization_ratio", kind="gauge", labels=("device",), unit="ratio",
        read=_accelerators(lambda a: [((), a.utilization)]),
        help="Share of the driver's sample period in which any program ran on the device.",
    ),
    Metric(
        name="accelerator_tensorcore_utilization_ratio", kind="gauge", labels=("device",), unit="ratio",
        read=_accelerators(lambda a: [((), a.tensorcore_utilization)]),
        help="Share of what a TPU's matrix units could do that they did.",
    ),
    Metric(
        name="accelerator_memory_controller_utilization_ratio", kind="gauge", labels=("device",), unit="ratio",
        read=_accelerators(lambda a: [((), a.memory_controller_utilization)]),
        help="Share of the driver's sample period in which the device's memory was read or written.",
    ),
    Metric(
        name="accelerator_memory_bandwidth_utilization_ratio", kind="gauge", labels=("device",), unit="ratio",
        read=_accelerators(lambda a: [((), a.memory_bandwidth_utilization)]),
        help="Share of the bandwidth of a TPU's memory that is used.",
    ),
    Metric(
        name="accelerator_memory_used_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_accelerators(lambda a: [((), a.memory_used_bytes)]),
        help="Memory that all processes together hold, the part that JAX preallocated and does not use included.",
    ),
    Metric(
        name="accelerator_memory_total_bytes", kind="gauge", labels=("device",), unit="bytes",
        read=_accelerators(lambda a: [((), a.memory_total_bytes)]), help="Memory that the device has.",
    ),
    Metric(
        name="accelerator_process_memory_bytes", kind="gauge", labels=("device", "process"), unit="bytes",
        values=(("process", ("self", "others")),), read=_accelerators(_process_memory),
        help="Memory that this process holds, and that others do; absent where they cannot be told apart.",
    ),
    Metric(
        name="accelerator_processes", kind="gauge", labels=("device",),
        read=_accelerators(lambda a: [] if a.processes is None else [((), len(a.processes))]),
        help="Processes that compute on the device.",
    ),
    Metric(
        name="accelerator_power_watts", kind="gauge", labels=("device",), unit="watts",
        read=_accelerators(lambda a: [((), a.power_watts)]), help="Power that the whole board draws.",
    ),
    Metric(
        name="accelerator_power_limit_watts", kind="gauge", labels=("device",), unit="watts",
        read=_accelerators(lambda a: [((), a.power_limit_watts)]), help="Power that the driver lets the board draw.",
    ),
    Metric(
        name="accelerator_energy_joules_total", kind="counter", labels=("device",), unit="joules",
        read=_accelerators(lambda a: [((), a.energy_joules)]),
        help="Energy that the board took since its driver was loaded.",
    ),
    Metric(
        name="accelerator_temperature_celsius", kind="gauge", labels=("device",), unit="celsius",
        read=_accelerators(lambda a: [((), a.temperature_celsius)]), help="Temperature of the chip.",
    ),
    Metric(
        name="accelerator_clock_hertz", kind="gauge", labels=("device", "clock"), unit="hertz",
        values=(("clock", ("sm", "memory")),), read=_accelerators(_clocks),
        help="Clock of the multiprocessors and of the memory.",
    ),
    Metric(
        name="accelerator_throttled", kind="gauge", labels=("device", "reason"),
        values=(("reason", THROTTLE_REASONS),), read=_accelerators(_throttled),
        help="Whether the device runs slower than it could, now, by reason.",
    ),
    Metric(
        name="accelerator_slowdown_ratio", kind="gauge", labels=("device",), unit="ratio",
        read=_accelerators(lambda a: [((), a.slowdown)]),
        help="By which share a TPU is throttled: 0 is not at all.",
    ),
    Metric(
        name="accelerator_ecc_errors_total", kind="counter", labels=("device", "error", "counter"),
        values=(("error", ("corrected", "uncorrected")), ("counter", ("volatile", "aggregate"))),
        read=_accelerators(_ecc_errors),
        help="Memory errors: `volatile` since the driver was loaded, `aggregate` in the device's life.",
    ),
    Metric(
        name="accelerator_xid_errors_total", kind="counter", labels=("device", "xid"),
        read=_accelerators(lambda a: [((xid,), n) for xid, n in (a.xid_errors or {}).items()]),
        help="Errors that the driver reported while jaxobs looked, by Xid code.",
    ),
    Metric(
        name="accelerator_pcie_bytes_total", kind="counter", labels=("device", "direction"), unit="bytes",
        values=(("direction", ("transmit", "receive")),),
        read=_accelerators(lambda a: [((direction,), n) for direction, n in a.pcie_bytes.items()]),
        help="Bytes over PCI Express as the device counts them, seen from the device.",
    ),
    Metric(
        name="accelerator_nvlink_bytes_total", kind="counter", labels=("device", "direction"), unit="bytes",
        values=(("direction", ("transmit", "receive")),), read=_accelerators(_nvlink_bytes),
        help="Bytes over all NVLinks of the device, without protocol; absent while one of them does not count.",
    ),
    Metric(
        name="accelerator_nvlink_links", kind="gauge", labels=("device",),
        read=_accelerators(lambda a: [((), a.nvlink_links)]), help="NVLinks of the device that count now.",
    ),
    Metric(
        name="accelerator_link_fault_level", kind="gauge", labels=("device", "link"),
        read=_accelerators(lambda a: [((link,), level) for link, level in a.link_faults.items()]),
        help="Links between TPU chips: 0 healthy, 1 to 5 a passing fault, 6 to 9 a lasting one, 10 unusable.",
    ),
    Metric(
        name="jax_findings", kind="gauge", labels=("finding",), read=_findings,
        help="Findings that stand now, by type; 0 for those that are over.",
    ),
    Metric(
        name="jax_process_start_timestamp_seconds", kind="gauge", unit="seconds",
        read=lambda s: [((), s.process.started if s.wall is None else s.wall.started)],
        help="When the process was started.",
    ),
    Metric(
        name="jax_build_info", kind="info", labels=_VERSIONS,
        read=lambda s: [(tuple(s.process.versions.get(name, "") for name in _VERSIONS), 1)],
        help="Versions of what runs here.",
    ),
    Metric(
        name="jax_process_info", kind="info", labels=("process_index", "process_count"),
        read=lambda s: [((str(s.process.process_index), str(s.process.process_count)), 1)],
        help="Place of this process in its job.",
    ),
    Metric(
        name="jax_processes", kind="gauge", read=lambda s: [((), s.process.process_count)],
        help="Processes of the job that this one belongs to, as JAX counts them.",
    ),
    Metric(
        name="jaxobs_internal_errors_total", kind="counter", labels=("where",),
        read=lambda s: [((where,), n) for where, n in s.observer.internal_errors.items()],
        help="Failures of jaxobs itself, which it swallowed.",
    ),
    Metric(
        name="jaxobs_dropped_series_total", kind="counter", labels=("reason",),
        read=lambda s: [((reason,), n) for reason, n in s.observer.dropped.items()],
        help="What a bound of jaxobs cut off.",
    ),
    Metric(
        name="jaxobs_collect_seconds", kind="gauge", unit="seconds",
        read=lambda s: [] if s.observer.collect_seconds is None else [((), s.observer.collect_seconds)],
        help="Time that the previous scrape took.",
    ),
    Metric(
        name="jaxobs_capability", kind="gauge", labels=("name",),
        read=lambda s: [((name,), float(on)) for name, on in s.observer.capabilities.items()],
        help="What jaxobs can see in this version of JAX: 1, or 0 where a release moved it.",
    ),
)  # fmt: skip

EAGER_HELP = f"{EAGER} stands for operations that JAX dispatched by themselves, outside any function."

CHECKPOINT_BOUNDS = (0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 150.0, 300.0, 600.0, 1800.0, 3600.0)
"""Buckets of checkpoint operations in seconds: 10 ms to 1 h."""

PHASE_BOUNDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 150.0, 300.0,
    600.0, 1200.0, 1800.0, 3600.0,
)  # fmt: skip
"""Buckets of compile phases in seconds: 1 ms to 1 h."""

REQUEST_BOUNDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0,
)  # fmt: skip
"""Buckets of requests in seconds: 1 ms, of a warm small model, to 5 min, of a cold large one."""

STEP_BOUNDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
"""Buckets of step times in seconds: 1 ms to 5 min."""

DISPATCH_BOUNDS = (
    5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1.0, 10.0,
)  # fmt: skip
"""Buckets of dispatch times in seconds: 5 µs to 10 s."""

DEVICE_BOUNDS = (
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
)  # fmt: skip
"""Buckets of device times in seconds: 100 µs to 1 min."""
