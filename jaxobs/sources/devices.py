"""Devices: their memory as JAX's allocator says it, and the live arrays on each. Sampled, never on a scrape.

Only backends that the program has woken are read. A live array counts on every device that holds a shard of it,
with the bytes of that shard; deleted and donated ones do not count, and a buffer counts once (`state.array_groups`).
"""

import dataclasses
import functools
import itertools
import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any

from jaxobs import internals
from jaxobs.base.guard import guarded
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.memory import ArrayGroup, DeviceMemory, DeviceState, account
from jaxobs.findings.leaks import HOST, Leaks
from jaxobs.findings.leaks import Sample as LeakSample
from jaxobs.loops.found_loops import FoundLoops
from jaxobs.recorder import host
from jaxobs.sources.support.source import Source, keep
from jaxobs.state import array_groups

QUIET_SECONDS = 60.0
"""A device whose memory does not change is reported again after this time."""

HIGH_WATER_SECONDS = 60.0
"""Seconds for which a high-water mark is reported: a scrape a minute misses none."""

MOST_GROUPS = 50
MOST_TOLD_GROUPS = 10
"""Groups of one device in a `memory` event."""


class _HighWater:
    """The most that is known to have been in use on one device within the last minute."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()
        self._peak: int | None = None

    def take(self, now: float, in_use: int | None, peak: int | None) -> int | None:
        """Takes in a sample: if the allocator's peak has changed, the new one was reached since the sample before."""
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


class Devices(Source):
    """The source: samples in; device states, and `memory` events where something changed, out."""

    def _begin(self) -> None:
        self._ending = False
        self._told: dict[str, DeviceMemory] = {}
        self._groups_told = -math.inf
        self._latest: tuple[list[DeviceMemory], list[ArrayGroup]] = [], []
        self._high_water: dict[str, _HighWater] = {}
        self._leaks = Leaks()

    def sample(self) -> None:
        """Reads every device that this process can address, if its backend is initialized."""
        now, clients = time.time(), internals.clients()
        with guarded("host"):
            left = self._store.log_left()
            self._store.host = host.figures() | ({} if left is None else {"jaxobs_event_log_left_bytes": left})
        lives: list[array_groups.Live] = []
        groups: list[ArrayGroup] = []
        memories: list[DeviceMemory] = []
        number = None
        for client in clients:
            live: array_groups.Live | None = None
            with guarded("live_arrays"):
                live = array_groups.read(client)
                groups += live.groups(sites=self._store.settings.array_call_sites)
                lives.append(live)
            code: dict[Any, int] | None = None
            with guarded("executables"):
                count, code = internals.executables.loaded(client)
                number = count + (number or 0)
            for device in client.local_devices():
                with guarded("device"):
                    memories.append(self._sample_device(device, live, code, now))
        if clients:
            groups.sort(key=lambda group: -group.bytes)
            with guarded("leaks"):
                self._find_leaks(lives, groups, memories, number, now)
            self._store.set_holdings(tuple(self._shown(groups, lives)), number)
            self._tell(memories, groups, now)

    def ending(self) -> None:
        """Tells the groups of arrays as of the last sample: now that the program has ended, the arrays may be gone."""
        self._ending = True
        memories, groups = self._latest
        for memory in memories if memories and memories[0].time > self._groups_told else ():
            self._store.record(dataclasses.replace(memory, groups=_on(memory.device, groups)))

    def concluding(self) -> None:
        """Reports growth if no last sample could be taken, and releases devices and arrays.

        JAX waits for the work in flight when the last reference to its client goes, as the interpreter ends. A client
        that is kept alive does not wait, and XLA's threads then run in memory that the exit frees.
        """
        keep(self._store, self._leaks.at_end())
        self._leaks, self._latest = Leaks(), ([], [])

    def _sample_device(
        self, device: Any, live: array_groups.Live | None, code: dict[Any, int] | None, now: float
    ) -> DeviceMemory:
        state = describe(device)
        memory = DeviceMemory(time=now, device=state.device, code_bytes=None if code is None else code.get(device, 0))
        if live is not None:
            memory = dataclasses.replace(memory, **_arrays(device, live))
        with guarded("memory_stats"):
            memory = dataclasses.replace(memory, **internals.allocator(device))
        high_water = self._high_water.setdefault(state.device, _HighWater())
        memory = dataclasses.replace(
            memory, high_water_bytes=high_water.take(now, memory.in_use_bytes, memory.peak_bytes)
        )
        state = dataclasses.replace(state, account=account(memory))
        self._store.set_device(state, memory)
        return memory

    def _tell(self, memories: list[DeviceMemory], groups: list[ArrayGroup], now: float) -> None:
        """Records `memory` events of the devices where something changed; the largest groups once a minute."""
        self._latest = memories, groups
        with_groups = now - self._groups_told >= QUIET_SECONDS
        if with_groups:
            self._groups_told = now
        for memory in memories:
            told = self._told.get(memory.device)
            if (
                told is not None
                and now - told.time < QUIET_SECONDS
                and told == dataclasses.replace(memory, time=told.time)
            ):
                continue
            self._told[memory.device] = memory
            self._store.record(
                dataclasses.replace(memory, groups=_on(memory.device, groups)) if with_groups else memory
            )

    # ------------------------------------------------------------------------------------------------ leaks

    def _find_leaks(
        self,
        lives: list[array_groups.Live],
        groups: list[ArrayGroup],
        memories: list[DeviceMemory],
        executables: int | None,
        now: float,
    ) -> None:
        store = self._store
        memory = host.memory(store.host)
        resident = memory.get("resident")
        free = [memory[name] - taken for name, taken in (("available", 0), ("limit", resident or 0)) if name in memory]
        left = {HOST: max(0, min(free))} if free else {}
        on_host = sum(each.live_array_bytes or 0 for each in memories if each.device.startswith("cpu:"))

        watch = self._leaks.at_end if self._ending else self._leaks.see
        keep(
            self._store,
            watch(
                LeakSample(
                    time=now,
                    calls=store.calls() or {each.name: each.steps for each in store.part(FoundLoops).frozen()},
                    groups=groups,
                    call_sites=functools.partial(_call_sites, lives),
                    left=left
                    | {
                        each.device: each.limit_bytes - each.in_use_bytes
                        for each in memories
                        if each.limit_bytes is not None and each.in_use_bytes is not None
                    },
                    executables=executables,
                    # A compiler takes memory for as long as it works, and gives most of it back.
                    resident=None if resident is None or store.in_progress() else max(0, resident - on_host),
                    compilations=lambda: [
                        each for each in store.events(kind="compilation")[0] if isinstance(each, Compilation)
                    ],
                    outputs=lambda: {
                        row.name: row.program.memory["output"]
                        for row in store.snapshot(fresh=False).functions
                        if row.program is not None and "output" in row.program.memory
                    },
                )
            ),
        )

    def _shown(self, groups: list[ArrayGroup], lives: list[array_groups.Live]) -> Iterator[ArrayGroup]:
        """The largest groups, those that accumulate with the lines that make them."""
        for group in groups[:MOST_GROUPS]:
            if not group.call_sites and self._leaks.tells(group.key):
                group = dataclasses.replace(group, call_sites=_call_sites(lives, group.key))
            yield group


def _on(device: str, groups: Iterable[ArrayGroup]) -> tuple[ArrayGroup, ...]:
    """The largest groups with a part on a device."""
    return tuple(itertools.islice((each for each in groups if device in each.bytes_per_device), MOST_TOLD_GROUPS))


def _call_sites(lives: Iterable[array_groups.Live], key: array_groups.Key) -> dict[str, int]:
    found: Counter[str] = Counter()
    for live in lives:
        found.update(live.call_sites(key))
    return dict(found)


def _arrays(device: Any, live: array_groups.Live) -> dict[str, Any]:
    kinds = dict(live.per_device.get(device, {}))
    count, size = kinds.pop(array_groups.own_memory(device) or "", (0, 0))
    return {
        "live_arrays": count,
        "live_array_bytes": size,
        "other_space_bytes": {kind: nbytes for kind, (_, nbytes) in sorted(kinds.items())},
    }


def describe(device: Any) -> DeviceState:
    """Returns what a JAX device says of itself."""
    return DeviceState(
        device=internals.device_name(device), id=device.id, platform=device.platform, device_kind=device.device_kind,
        process_index=device.process_index, pci_bus_id=getattr(device, "pci_bus_id", None),
    )  # fmt: skip


def live_arrays(client: Any) -> dict[Any, tuple[int, int]]:
    """Number and bytes of the shards of live arrays on each device of a backend, in its own memory."""
    found = array_groups.read(client).per_device
    own = {device: kinds.get(array_groups.own_memory(device) or "") for device, kinds in found.items()}
    return {device: shards for device, shards in own.items() if shards is not None}


source = Devices
