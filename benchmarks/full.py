"""A store with every default bound full: what scrape, tick and memory have to bear at worst."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxobs.facts.memory import ArrayGroup
    from jaxobs.state.store import Store

DEVICES = 8
LEAVES = 200
PHASES = {"trace": 0.12, "lower": 0.05, "compile": 1.7}


def full_store() -> Store:
    """200 functions with causes, phases, times and programs, 8 devices with their history, full rings of events."""
    from jaxobs.base.config import Settings
    from jaxobs.facts.compilations import CAUSES, EAGER, CacheLookup, Change, Compilation
    from jaxobs.facts.functions import INSTRUCTION_KINDS, MEMORY_SECTIONS
    from jaxobs.facts.memory import DeviceMemory, DeviceState
    from jaxobs.state.parts import MOST_HISTORY
    from jaxobs.state.store import Store

    settings = Settings()
    store = Store(settings)
    now = time.time()
    for number in range(settings.max_functions):
        name = function_name(number)
        stats = store.call_stats(name)
        for call in range(1024):
            next(stats.counter)
            stats.durations.append(1e-5 * (1 + call % 300))
        stats.failed(ValueError())
    for number in range(max(settings.max_events, 5 * settings.max_functions)):
        # No two events share a text: as where every argument changes with every batch.
        changes = tuple(
            Change(
                f"batch['layer_{leaf}'][{number}]", "shape", f"float32[{number},{leaf}]", f"float32[{leaf},{number}]"
            )
            for leaf in range(LEAVES)
        )
        store.record(
            Compilation(
                time=now, function=function_name(number % settings.max_functions), cause=CAUSES[number % 5],
                reason=f"`train.step` compiled again, number {number}. " * 8, changes=changes, phases=PHASES,
                cache=("miss", "hit")[number % 2], call_site=f"/home/someone/project/train.py:{number}",
                fingerprint=f"{number:012x}", flops=1e12 + number, bytes_accessed=1e9 + number,
                memory=dict.fromkeys(MEMORY_SECTIONS, 2**30 + number),
            )
        )  # fmt: skip
        store.record(CacheLookup(time=now, function=function_name(0), result="hit", key=f"jit_step-{number:064x}"))
    store.record(Compilation(time=now, function="add", cause="first_call", reason=EAGER, phases=PHASES, eager=True))
    for number in range(settings.max_functions):
        kinds = dict.fromkeys(INSTRUCTION_KINDS, 1000)
        store.set_program(function_name(number), now, instructions=kinds, collective_bytes={"all-reduce": 2**30})
    store.set_holdings(_groups(), 500)
    for number in range(DEVICES):
        device = DeviceState(device=f"gpu:{number}", id=number, platform="gpu", device_kind="H200", process_index=0)
        for sample in range(MOST_HISTORY):
            size = 2**33 + sample * 2**20 + number
            memory = DeviceMemory(
                time=now + sample, device=device.device, in_use_bytes=size, peak_bytes=size, limit_bytes=2**37,
                reserved_bytes=0, largest_free_block_bytes=2**35, live_arrays=10_000 + sample, live_array_bytes=size,
                high_water_bytes=size, other_space_bytes={"pinned_host": size},
            )  # fmt: skip
            store.set_device(device, store.record(memory))
    store.tick()
    return store


def _groups() -> tuple[ArrayGroup, ...]:
    from jaxobs.facts.memory import ArrayGroup
    from jaxobs.sources.devices import MOST_GROUPS

    return tuple(
        ArrayGroup(
            shape=(number, 4096), dtype="float32", sharding="P('data', None) over data=4, model=2",
            memory_kind="device", count=number, bytes_per_device={f"gpu:{each}": 2**30 for each in range(DEVICES)},
        )
        for number in range(MOST_GROUPS)
    )  # fmt: skip


def function_name(number: int) -> str:
    """Names of a usual length."""
    return f"project.models.transformer.Block.forward_{number:03d}"
