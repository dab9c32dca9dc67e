"""The process on its host, as the kernel counts it: memory, processor, descriptors, and what its container allows.

Linux alone says most of it. A figure that is not known is absent.
"""

import contextlib
import functools
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from jaxobs.base import process

GROUPS, OWN = "/sys/fs/cgroup", "/proc/self/cgroup"
CONTAINER, HOST = "jax_container_", "jax_host_memory_"
_MEMORY = (
    ("memory.max", "memory.current", ("active_file", "inactive_file")),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file")),
)
"""Limit, usage, and the page cache in `memory.stat`, of control groups of version 2 and 1."""
_LIMITS_LAST = 60.0
"""Seconds after which limits are looked up again."""


def figures() -> dict[str, float]:
    """Returns what is known now, by the name of its metric."""
    found: dict[str, float] = {"process_start_time_seconds": process.started()}
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        found["process_cpu_seconds_total"] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        found["process_virtual_memory_bytes"] = int(fields[20])
        found["process_resident_memory_bytes"] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        found["process_open_fds"] = len(os.listdir("/proc/self/fd")) - 1  # less the one that lists them
    machine = _counts("/proc/meminfo")
    for name, field in (("total", "MemTotal:"), ("available", "MemAvailable:")):
        if field in machine:
            found[f"{HOST}{name}_bytes"] = machine[field] * 1024
    limits, own = _limits(os.getpid(), time.monotonic() // _LIMITS_LAST, found.get(f"{HOST}total_bytes", 2.0**60))
    return found | own | limits.figures()


def memory(known: Mapping[str, float] | None = None) -> dict[str, int]:
    """The host's memory and this process's part, in bytes, by `known` or as it is now: for reports."""
    if known is None:
        _limits.cache_clear()  # the program may have set one since
        known = figures()
    names = {
        "total": f"{HOST}total_bytes", "available": f"{HOST}available_bytes",
        "resident": "process_resident_memory_bytes",
    }  # fmt: skip
    found = {name: int(known[metric]) for name, metric in names.items() if metric in known}
    bounds = [known.get(each) for each in (f"{CONTAINER}spec_memory_limit_bytes", "process_virtual_memory_max_bytes")]
    limits = [int(each) for each in bounds if each is not None and each < known.get(f"{HOST}total_bytes", each + 1)]
    return found | ({"limit": min(limits)} if limits else {})


class Limits:
    """The control groups that bound this process: the one with the least memory, and the one with a quota of time."""

    def __init__(self, total: float, groups: str = GROUPS, own: str = OWN) -> None:
        self._memory: tuple[int, Path, str, tuple[str, ...]] | None = None
        self._processor: Path | None = None
        for folder in _folders(groups, own):
            for limit, usage, cache in _MEMORY:
                most = _number(folder / limit)
                if most is not None and most < min(total, self._memory[0] if self._memory else total):
                    self._memory = most, folder, usage, cache
            if self._processor is None and _counts(folder / "cpu.stat").get("nr_periods"):
                self._processor = folder

    def figures(self) -> dict[str, float]:
        """Returns what the container may use, and does; nothing without a limit."""
        found: dict[str, float] = {}
        if self._memory is not None:
            most, folder, usage, cache = self._memory
            used, parts = _number(folder / usage), _counts(folder / "memory.stat")
            found[f"{CONTAINER}spec_memory_limit_bytes"] = most
            if used is not None and all(each in parts for each in cache):
                found[f"{CONTAINER}memory_usage_bytes"] = used
                found[f"{CONTAINER}memory_reclaimable_bytes"] = sum(parts[each] for each in cache)
        times = {} if self._processor is None else _counts(self._processor / "cpu.stat")
        if "nr_periods" in times and "nr_throttled" in times:
            found[f"{CONTAINER}cpu_cfs_periods_total"] = times["nr_periods"]
            found[f"{CONTAINER}cpu_cfs_throttled_periods_total"] = times["nr_throttled"]
            found[f"{CONTAINER}cpu_cfs_throttled_seconds_total"] = (
                times["throttled_usec"] / 1e6 if "throttled_usec" in times else times.get("throttled_time", 0) / 1e9
            )
        return found


@functools.lru_cache(maxsize=1)
def _limits(pid: int, moment: float, total: float) -> tuple[Limits, dict[str, float]]:
    """Returns the limits of the control groups, and those of the process by metric."""
    own = {}
    with contextlib.suppress(OSError, ValueError):  # not by the module `resource`: a program may have one of that name
        text = Path("/proc/self/limits").read_text()
        for name, row in (("max_fds", "Max open files"), ("virtual_memory_max_bytes", "Max address space")):
            if (soft := text.partition(row)[2].split()[:1]) != ["unlimited"]:
                own[f"process_{name}"] = float("".join(soft))
    return Limits(total), own


def _folders(groups: str, own: str) -> Iterator[Path]:
    """Yields the folders of this process's control groups, the innermost first, as far as they are in sight."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(own).read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not {"memory", "cpu", ""}.isdisjoint(controllers.split(",")):
                root = Path(groups, controllers)
                inside = root / path.lstrip("/")
                yield from [each for each in (inside, *inside.parents) if each == root or root in each.parents]


def _number(path: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text())
    return None


def _counts(path: str | Path) -> dict[str, int]:
    """Returns what a file has in lines of a name and a number."""
    with contextlib.suppress(OSError, ValueError):
        lines = (line.split() for line in Path(path).read_text().splitlines())
        return {fields[0]: int(fields[1]) for fields in lines if len(fields) >= 2}
    return {}
