"""Measurement of a cell: recorded before it and while it runs, evaluated after it."""

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.guard import guarded
from jaxobs.facts.cells import Cell, CellMemory, Compiled, MemoryChange
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.facts.memory import ArrayGroup
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.verdicts import VerdictFinding
from jaxobs.state import array_groups
from jaxobs.state.store import Store
from jaxobs.state.wall import Wall

MOST_COMPILED = 500
"""Number of functions and causes that are distinguished in one cell."""
MOST_GROUPS = 8
SMALL = 0.01
"""Share of all new bytes below which a group is left out."""
MOST_WAIT = 60.0
"""Seconds for which a cell's end is waited for: devices may compute for hours."""
_LONGEST_PAUSE = 0.02


class Tally:
    """The compilations of a cell: one entry a function, cause and answer of the cache. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threads.Lock()
        self._found: dict[tuple[str, str, str], Compiled] = {}
        self._dropped = 0
        self._dropped_seconds = 0.0

    def add(self, event: Event) -> None:
        """Takes in an event, if it is a compilation."""
        if not isinstance(event, Compilation):
            return
        key, seconds = (event.function, event.cause, event.cache), sum(event.phases.values())
        with self._lock:
            known = self._found.get(key)
            if known is not None:
                costliest = event if seconds > sum(known.costliest.phases.values()) else known.costliest
                self._found[key] = Compiled(
                    count=known.count + 1, seconds=known.seconds + seconds, costliest=_slim(costliest)
                )
            elif len(self._found) < MOST_COMPILED:
                self._found[key] = Compiled(count=1, seconds=seconds, costliest=_slim(event))
            else:
                self._dropped += 1
                self._dropped_seconds += seconds

    def told(self) -> dict[str, Any]:
        """Returns the fields of a `Cell`."""
        with self._lock:
            found = sorted(self._found.values(), key=lambda each: -each.seconds)
            return {"compiled": tuple(found), "dropped": self._dropped, "dropped_seconds": self._dropped_seconds}


def _slim(event: Compilation) -> Compilation:
    return event if event.signature is None else dataclasses.replace(event, signature=None)


@dataclass(frozen=True)
class _Held:
    """Memory of all devices at a moment."""

    arrays: Mapping[str, int]
    """Bytes of live arrays by device."""
    allocators: Mapping[str, Mapping[str, int]]
    groups: tuple[ArrayGroup, ...]


def _held(*, sites: bool) -> _Held:
    arrays: dict[str, int] = {}
    allocators: dict[str, Mapping[str, int]] = {}
    groups: list[ArrayGroup] = []
    for client in internals.clients():
        live = array_groups.read(client)
        groups += live.groups(sites=sites)
        for device in client.local_devices():
            name = internals.device_name(device)
            kinds = live.per_device.get(device, {})
            arrays[name] = kinds.get(array_groups.own_memory(device) or "", (0, 0))[1]
            with guarded("memory_stats"):
                allocators[name] = internals.allocator(device)
    return _Held(arrays, allocators, tuple(groups))


class Measurement:
    """Run of one cell, from its first line to its last."""

    def __init__(self, store: Store, *, closely: bool, snapshot: Callable[[], Snapshot]) -> None:
        """Args:
        closely: whether memory, findings and what devices do afterwards are looked at, too.
        """
        self.closely = closely
        self._store = store
        self._snapshot = snapshot
        self.tally = Tally()
        self._held: _Held | None = None
        self._computing = False
        self._sequence = 0
        self._standing: frozenset[str] = frozenset()
        if closely:
            with guarded("notebook.findings"):
                before = snapshot()
                self._sequence, self._standing = before.last_sequence, frozenset(each.id for each in before.findings)
            with guarded("notebook.memory"):
                self._held = _held(sites=False)
                self._computing = bool(internals.computing())
        wall = store.part(Wall)
        self._spent = wall.seconds() if wall.thread == get_ident() else None
        self._began = time.perf_counter()

    def ended(self, number: int | None, *, failed: bool) -> Cell:
        """Takes down the state after the last line."""
        seconds = time.perf_counter() - self._began
        spent: dict[str, float] = {}
        if self._spent is not None:
            now = self._store.part(Wall).seconds()
            spent = {name: value - self._spent.get(name, 0.0) for name, value in now.items()}
        cell = Cell(number=number, seconds=seconds, time=spent, failed=failed, **self.tally.told())
        return self._more(cell) if self.closely else cell

    def _more(self, cell: Cell) -> Cell:
        with guarded("notebook.wait"):
            waited, unfinished = _wait()
            cell = dataclasses.replace(
                cell, still_computing=waited, unfinished=unfinished, computing_before=self._computing
            )
        with guarded("notebook.memory"):
            if self._held is not None:
                cell = dataclasses.replace(cell, memory=_difference(self._held, _held(sites=True)))
        with guarded("notebook.findings"):
            return dataclasses.replace(cell, findings=self._findings())
        return cell

    def _findings(self) -> tuple[VerdictFinding, ...]:
        """Returns findings that are new, or that compilations of this cell belong to."""
        after = self._snapshot()
        of_cell = {
            each.id
            for each in after.findings
            if each.id not in self._standing or max(each.sequences, default=0) > self._sequence
        }
        return tuple(each for each in (after.verdict.findings if after.verdict else ()) if each.id in of_cell)


def _wait() -> tuple[float, bool]:
    """Waits until no device computes; returns for how long, and whether some still do. Ctrl-C ends the wait."""
    began, pause = time.perf_counter(), 0.0005
    try:
        while internals.computing():
            if time.perf_counter() - began > MOST_WAIT:
                return time.perf_counter() - began, True
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
    except KeyboardInterrupt:
        return time.perf_counter() - began, True
    return time.perf_counter() - began, False


def _difference(before: _Held, after: _Held) -> CellMemory:
    devices = [
        MemoryChange(
            device=device, array_bytes=(before.arrays.get(device, 0), size),
            in_use_bytes=_in_use(before, after, device), peak_bytes=_new_peak(before, after, device),
        )
        for device, size in after.arrays.items()
    ]  # fmt: skip
    # Most machines have devices that nobody uses.
    told = [each for each in devices if any(each.array_bytes) or any(each.in_use_bytes or ())]
    known = {each.key: each for each in before.groups}
    grown = [found for each in after.groups if (found := _grown(each, known.get(each.key))) is not None]
    grown.sort(key=lambda each: -each.bytes)
    least = SMALL * sum(each.bytes for each in grown)
    return CellMemory(devices=tuple(told), grown=tuple(each for each in grown[:MOST_GROUPS] if each.bytes >= least))


def _in_use(before: _Held, after: _Held, device: str) -> tuple[int, int] | None:
    now = after.allocators.get(device, {}).get("in_use_bytes")
    return None if now is None else (before.allocators.get(device, {}).get("in_use_bytes", 0), now)


def _new_peak(before: _Held, after: _Held, device: str) -> int | None:
    peak = after.allocators.get(device, {}).get("peak_bytes")
    return peak if peak is not None and peak > before.allocators.get(device, {}).get("peak_bytes", 0) else None


def _grown(group: ArrayGroup, before: ArrayGroup | None) -> ArrayGroup | None:
    """Returns what a group has more than before; None if that is nothing."""
    if before is not None:
        more = {name: size - before.bytes_per_device.get(name, 0) for name, size in group.bytes_per_device.items()}
        group = dataclasses.replace(group, count=group.count - before.count, bytes_per_device=more)
    return group if group.bytes > 0 else None
