"""The process on its host, by the names of Prometheus' own clients, and what its container allows."""

from collections.abc import Callable

from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.wall import HostWork
from jaxobs.metrics.metric import Labels, Metric, Value


def _figure(name: str) -> Callable[[Snapshot], list[tuple[Labels, Value]]]:
    return lambda s: [((), s.host[name])] if name in s.host else []


def _work(s: Snapshot) -> HostWork:
    return HostWork() if s.wall is None else s.wall.host or HostWork()


def _callbacks(figure: str) -> Callable[[Snapshot], list[tuple[Labels, Value]]]:
    def read(s: Snapshot) -> list[tuple[Labels, Value]]:
        found: dict[Labels, float] = {}
        for each in _work(s).callbacks:
            found[(each.function,)] = found.get((each.function,), 0) + getattr(each, figure)
        return [*found.items()]

    return read


_GENERATIONS = (("generation", ("0", "1", "2")),)

METRICS = (
    *(Metric(name, help, _figure(name))
    for name, help in {
        "process_resident_memory_bytes": "Resident memory of the process on its host.",
        "process_virtual_memory_bytes": "Address space of the process.",
        "process_virtual_memory_max_bytes": "Limit of the address space of the process; absent without a limit.",
        "process_cpu_seconds_total": "CPU time that the process has used, in user and kernel mode.",
        "process_start_time_seconds": "Start time of the process since 1970.",
        "process_open_fds": "Number of open file descriptors.",
        "process_max_fds": "Number of file descriptors that the process may open; absent without a limit.",
        "jax_host_memory_total_bytes": "Memory of the machine.",
        "jax_host_memory_available_bytes": "Memory of the machine that programs can get without swapping.",
        "jax_container_spec_memory_limit_bytes":
            "Memory that the container may use, the lowest limit of its control groups; absent without a limit.",
        "jax_container_memory_usage_bytes": "Memory in use of the control group with that limit, page cache included.",
        "jax_container_memory_reclaimable_bytes":
            "Page cache of files in that memory, which the kernel reclaims before it kills a process.",
        "jax_container_cpu_cfs_periods_total": "Periods of the CPU quota; absent without a quota.",
        "jax_container_cpu_cfs_throttled_periods_total": "Periods in which the container had used up its quota.",
        "jax_container_cpu_cfs_throttled_seconds_total":
            "Time for which threads were halted because the quota was used up, summed over processors.",
        "jaxobs_event_log_left_bytes": "Bytes that the event log's disk had left when it was last written to.",
    }.items()),
    Metric("python_gc_collections_total", "Collections of Python's garbage collector since jaxobs was installed.",
           lambda s: [((name,), count) for name, count in _work(s).pauses.items()], ("generation",),
           values=_GENERATIONS),
    Metric("jax_gc_pause_seconds_total", "Time for which Python's garbage collector halted the program.",
           lambda s: [((name,), took) for name, took in _work(s).pause_seconds.items()], ("generation",),
           values=_GENERATIONS),
    Metric("jax_host_callbacks_total", "Calls of a Python function by compiled programs, as by `jax.pure_callback`; "
           "absent on Python 3.11.", _callbacks("calls"), ("function",)),
    Metric("jax_host_callback_seconds_total", "Time of Python functions that compiled programs call, on any thread.",
           _callbacks("seconds"), ("function",)),
)  # fmt: skip
