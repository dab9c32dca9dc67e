"""How memory is at this moment: devices, live arrays by kind, and what came before. For reports only.

Read at once, and not as the slow tick left it.
"""

import itertools
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jaxobs import internals
from jaxobs.base.guard import guarded
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import timestamp
from jaxobs.facts.findings import Finding
from jaxobs.facts.memory import ArrayGroup, DeviceMemory
from jaxobs.recorder.oom_texts import human
from jaxobs.state import array_groups
from jaxobs.state.store import Store

MOST_GROUPS = 12
MOST_COMPILATIONS = 10
MOST_SAMPLES = 12

FLAGS = (
    "XLA_FLAGS",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_CLIENT_MEM_FRACTION",
    "TF_GPU_ALLOCATOR",
)
"""The variables that a report shows: no others leave the process."""


def arrays() -> list[ArrayGroup]:
    """The groups of live arrays of all backends, the largest first."""
    found: list[ArrayGroup] = []
    for client in internals.clients():
        with guarded("moment.arrays"):
            found += array_groups.groups(client)
    return sorted(found, key=lambda group: -group.bytes)


def held(groups: Iterable[ArrayGroup]) -> dict[str, tuple[int, int]]:
    """Number and bytes of the arrays in each device's own memory."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for group in groups:
        for device, size in group.bytes_per_device.items():
            if device.startswith("cpu") or "host" not in (group.memory_kind or ""):
                count, before = found[device]
                found[device] = (count + group.count, before + size)
    return dict(found)


def shares(groups: Iterable[ArrayGroup], on_devices: Mapping[str, tuple[int, int]]) -> tuple[float, ...]:
    """Each group's part of the live arrays on the device of which it takes the largest part."""
    return tuple(
        max(
            (min(1.0, size / on_devices[name][1]) for name, size in group.bytes_per_device.items()
             if on_devices.get(name, (0, 0))[1]),
            default=0.0,
        )
        for group in groups
    )  # fmt: skip


def devices(on_devices: Mapping[str, tuple[int, int]]) -> Iterator[DeviceMemory]:
    """Every device that this process can address, with the arrays that `arrays` found on each."""
    now = time.time()
    for client in internals.clients():
        for device in client.local_devices():
            told: dict[str, Any] = {}
            with guarded("moment.memory_stats"):
                told = internals.allocator(device)
            count, size = on_devices.get(internals.device_name(device), (0, 0))
            yield DeviceMemory(
                time=now, device=internals.device_name(device), live_arrays=count, live_array_bytes=size, **told
            )  # fmt: skip


def flags(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that govern memory, where they are set."""
    environment = os.environ if environment is None else environment
    return {name: environment[name] for name in FLAGS if environment.get(name)}


def compilations(events: Iterable[Any]) -> tuple[str, ...]:
    """The last compilations, the latest first, a line each."""
    seen = [each for each in events if isinstance(each, Compilation) and not each.eager][-MOST_COMPILATIONS:]
    return tuple(_compilation(each) for each in reversed(seen))


def _compilation(event: Compilation) -> str:
    needs = "".join(f", {name} {human(event.memory[name])}" for name in ("argument", "temp") if event.memory.get(name))
    place = f" at {event.where}" if event.where else ""
    seconds = sum(event.phases.values())
    return f"{timestamp(event.time)[11:19]} {event.function} ({event.cause}, {seconds:.2f} s{needs}){place}"


def samples(store: Store) -> tuple[str, ...]:
    """The last samples of the fullest devices before this moment, the latest first, a line each."""
    lines = []
    for device in store.snapshot_devices():
        for moment, in_use, live in device.history:
            parts = [f"{name} {human(size)}" for name, size in (("in use", in_use), ("live", live)) if size is not None]
            lines.append((moment, f"{timestamp(moment)[11:19]} {device.device} {', '.join(parts)}"))
    lines.sort(key=lambda each: -each[0])
    return tuple(line for _, line in lines[:MOST_SAMPLES])


def leaks(store: Store) -> list[Finding]:
    """The findings of arrays that accumulate and have not stopped to."""
    return [each for each in store.snapshot_findings() if each.finding == "array_leak" and each.ended is None]


def growing(store: Store) -> bool:
    """Returns whether the live arrays of some device grew over the last samples, never fell, and at least by a half."""
    return any(
        _grew([live for _, _, live in device.history if live is not None][-MOST_SAMPLES:])
        for device in store.snapshot_devices()
    )


def _grew(sizes: list[int]) -> bool:
    steps = [after - before for before, after in itertools.pairwise(sizes)]
    if len(steps) < 3 or min(steps) < 0 or sizes[-1] < 1.5 * max(1, sizes[0]):
        return False
    return sum(step > 0 for step in steps) >= len(steps) / 2
