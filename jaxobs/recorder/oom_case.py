"""An out-of-memory report in the figures that the rules of `oom_causes` compare, and the sentences they share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.errors import OutOfMemory
from jaxobs.facts.findings import Finding
from jaxobs.facts.memory import DeviceMemory
from jaxobs.recorder.oom_texts import human

LARGE_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Case:
    """A report in the figures that the rules compare; None for what nobody told."""

    event: OutOfMemory
    device: DeviceMemory | None
    accelerator: AcceleratorState | None
    """The report's device as its driver saw it."""
    groups: list[Group]
    wanted: int | None
    in_use: int | None
    limit: int | None
    total: int | None
    free: int | None
    temp: int | None
    live: int | None
    executables: int
    growing: bool
    leaks: Sequence[Finding]
    on_host: bool
    """Whether the device's memory is the host's: the CPU backend."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of live arrays as the report tells it."""

    shape: str
    """`float32[1024,1024]`."""
    sharding: str
    count: int
    bytes: int
    """On the device that holds the most of it."""
    share: float
    devices: int
    replicated: bool
    """Whether each of several devices holds the whole of it."""
    call_sites: tuple[str, ...] = ()
    """Lines that made them, the most frequent first, where they were looked for."""


def groups(event: OutOfMemory) -> list[Group]:
    """The groups of live arrays of a report."""
    return [
        Group(
            shape=f"{each.dtype}[{','.join(map(str, each.shape))}]", sharding=each.sharding, count=each.count,
            bytes=max(each.bytes_per_device.values(), default=0), share=share, devices=len(each.bytes_per_device),
            replicated=len(each.bytes_per_device) > 1 and _WHOLE.match(each.sharding) is not None,
            call_sites=tuple(site for site, _ in Counter(each.call_sites).most_common()),
        )
        for each, share in zip(event.arrays, event.array_shares, strict=True)
    ]  # fmt: skip


_WHOLE = re.compile(r"P\((?:None(?:, None)*,?)?\) over")


def case_of(event: OutOfMemory, *, executables: int, growing: bool, leaks: Sequence[Finding]) -> Case:
    """The figures of a report, those of the host where the device's memory is the host's."""
    device = _device(event)
    on_host = event.stage != "start" and (device is None or device.device.startswith("cpu"))
    in_use, limit = (device.in_use_bytes, device.limit_bytes) if device is not None else (None, None)
    limit = event.limit_bytes or limit
    accelerator = _accelerator(event, device)
    total = event.total_bytes or (accelerator.memory_total_bytes if accelerator is not None else None)
    if on_host and limit is None:
        in_use, total = event.host.get("resident"), event.host.get("total")
        limit = event.host.get("limit") or total
    free = event.free_bytes
    if free is None and limit is not None and in_use is not None:
        free = max(0, limit - in_use)
    temp = event.sections.get("temp") or event.program.get("temp")
    live = device.live_array_bytes if device is not None else None
    return Case(
        event=event, device=device, accelerator=accelerator, groups=groups(event), wanted=event.wanted_bytes,
        in_use=in_use, limit=limit, total=total, free=free, temp=temp, live=live, executables=executables,
        growing=growing, leaks=leaks, on_host=on_host,
    )  # fmt: skip


def _device(event: OutOfMemory) -> DeviceMemory | None:
    """The device that is out of memory: the one that is named, else the fullest."""
    told = [each for each in event.devices if each.device == event.device]
    if told:
        return told[0]
    return max(event.devices, key=lambda each: (each.in_use_bytes or 0, each.live_array_bytes or 0), default=None)


def _accelerator(event: OutOfMemory, device: DeviceMemory | None) -> AcceleratorState | None:
    """The device by its driver; where JAX could not even take it, the one that is fullest."""
    if device is not None:
        return next((each for each in event.accelerators if each.device == device.device), None)
    return max(event.accelerators, key=lambda each: each.memory_used_bytes or 0, default=None)


# --------------------------------------------------------------------------------------------------- sentences


def live_matters(case: Case) -> bool:
    """Whether live arrays fill a good part of what there is, and the request was none that never could be met."""
    most = case.limit or case.total
    if case.wanted is not None and most is not None and case.wanted > most:
        return False
    return case.live is not None and (most is None or case.live >= LARGE_SHARE * most)


def place(case: Case) -> str:
    """Place at which memory ran out."""
    return "host" if case.on_host else "device"


def wanted(case: Case) -> str:
    """The bytes that were wanted, as a sentence."""
    return "" if case.wanted is None else f"Wanted {human(case.wanted)}."


def group_line(group: Group) -> str:
    """A group of live arrays as a sentence."""
    where = f" on each of {group.devices} devices" if group.devices > 1 else ""
    made = f" Created at {', '.join(group.call_sites[:3])}." if group.call_sites else ""
    return (
        f"{group.count:,} x {group.shape} ({group.sharding}): {human(group.bytes)}{where}, "
        f"{group.share:.0%} of the live arrays.{made}"
    )


def buffer_lines(case: Case) -> list[str]:
    """The largest buffers of the failing program."""
    return [
        f"Buffer of {human(each.size)}: {each.shape or 'unknown shape'}, {each.operator or each.allocation or '?'}."
        for each in case.event.buffers[:3]
    ]


def signature_line(case: Case) -> list[str]:
    """Arguments of the call."""
    return [f"Called with {case.event.signature}."] if case.event.signature else []


def flag_lines(case: Case) -> list[str]:
    """The variables that govern memory, as they are set."""
    return [f"{name}={value}" for name, value in case.event.flags.items() if name != "XLA_FLAGS"]
