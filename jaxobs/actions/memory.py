"""`memory`: JAX's device memory profile, in pprof's format, and next to it devices and largest groups as a text."""

import dataclasses
import os
import time
from collections.abc import Iterator, Sequence

from jaxobs import internals
from jaxobs.actions.capturing.action_types import Job, Outcome, Refused
from jaxobs.base.guard import guarded
from jaxobs.facts.events import timestamp
from jaxobs.facts.memory import Account, ArrayGroup, DeviceMemory, account
from jaxobs.recorder import moment, report_text
from jaxobs.recorder.oom_texts import human
from jaxobs.state.store import Store

NAME = "memory"
ABOUT = (
    "A profile of what holds the memory of JAX's default backend: each live buffer and program with "
    "the Python stack that allocated it."
)
PARAMETERS = ()
WAITED_FOR = True

PROFILE = "memory.pb.gz"
SUMMARY = "memory.txt"
MOST_GROUPS = 50
MOST_SITES = 3


def run(job: Job) -> Outcome:
    """Writes the profile and its summary; raises `Refused` if it is larger than what is left of the limit."""
    import jax

    profile = jax.profiler.device_memory_profile()
    if len(profile) > job.most_bytes:
        raise Refused(
            f"The profile has {human(len(profile))}, but only {human(job.most_bytes)} are left of `capture_max_bytes`. "
            "Remove captures that are no longer needed, or raise the setting."
        )
    with open(os.path.join(job.folder, PROFILE), "xb") as file:
        file.write(profile)
    job.started()
    detail = None
    with guarded("actions.memory.summary"):
        detail = _summarise(job)
    return Outcome(detail, PROFILE)


def _summarise(job: Job) -> str:
    groups = moment.arrays()
    on_devices = moment.held(groups)
    devices = [_with_code(job.store, each) for each in moment.devices(on_devices)]
    text = "\n".join(_lines(devices, groups)) + "\n"
    if len(text) < job.most_bytes:
        with open(os.path.join(job.folder, SUMMARY), "x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    count, held = sum(group.count for group in groups), sum(size for _, size in on_devices.values())
    on = f"{len(devices)} device{'s' * (len(devices) != 1)}"
    return f"{count:,} live array{'s' * (count != 1)} with {human(held)} on {on}."


def _with_code(store: Store, device: DeviceMemory) -> DeviceMemory:
    """With the bytes of the programs that are loaded on it, as last sampled."""
    sampled = {each.device: each.memory for each in store.snapshot_devices()}.get(device.device)
    return device if sampled is None else dataclasses.replace(device, code_bytes=sampled.code_bytes)


def _lines(devices: Sequence[DeviceMemory], groups: Sequence[ArrayGroup]) -> Iterator[str]:
    index, _ = internals.process_index_and_count()
    yield f"Memory at {timestamp(time.time())}, process {index}, pid {os.getpid()}"
    yield from report_text.section("DEVICES", [report_text.device_line(each) for each in devices])
    accounts = [_account(each.device, parts) for each in devices if (parts := account(each)) is not None]
    yield from report_text.section("IN USE FOR", accounts)
    yield from report_text.section("LARGEST GROUPS OF LIVE ARRAYS", [_group(each) for each in groups[:MOST_GROUPS]])
    if len(groups) > MOST_GROUPS:
        yield f"  and {len(groups) - MOST_GROUPS:,} more"


def _account(device: str, parts: Account) -> str:
    sizes = ("arrays", parts.array_bytes), ("programs", parts.code_bytes), ("rest", parts.gap_bytes)
    return f"{device:<8} {', '.join(f'{name} {human(size)}' for name, size in sizes)}"


def _group(group: ArrayGroup) -> str:
    where = f"on {len(group.bytes_per_device)} devices" if len(group.bytes_per_device) > 1 else ""
    kind = group.memory_kind if group.memory_kind not in (None, "device") else ""
    made = f"created at {', '.join(list(group.call_sites)[:MOST_SITES])}" if group.call_sites else ""
    shape = f"{group.dtype}[{','.join(map(str, group.shape))}]"
    parts = [f"{human(group.bytes):>10} {group.count:>7,} x {shape}", group.sharding, where, kind, made]
    return "  ".join(part for part in parts if part)
