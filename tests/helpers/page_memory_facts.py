"""Facts of memory made by hand for the live page: a full node, a node of 64, a CPU, and a call that died."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from helpers.page_facts import GIB, NOW, PID, cpu, finding, gpu, on_cpu, rich
from jaxobs.facts.accelerators import AcceleratorProcess, AcceleratorState
from jaxobs.facts.actions import Action
from jaxobs.facts.errors import MemoryBuffer, OomCause, OutOfMemory
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import FunctionState, ProgramState
from jaxobs.facts.memory import Account, ArrayGroup, DeviceMemory, DeviceState, headroom
from jaxobs.facts.snapshot import Snapshot

MIB = 2**20
CODE = 412 * MIB
SLOWED = ("gpu_idle", "sw_power_cap", "hw_thermal_slowdown")


def group(shape: tuple[int, ...], sharding: str, size: int, count: int, devices: int = 8, **more: Any) -> ArrayGroup:
    """Groups that take `size` bytes on each of so many GPUs."""
    known = {"dtype": "bfloat16", "memory_kind": "device"}
    known["bytes_per_device"] = {f"gpu:{index}": size for index in range(devices)}
    return ArrayGroup(shape=shape, sharding=sharding, count=count, **(known | more))


def groups(devices: int = 8) -> tuple[ArrayGroup, ...]:
    """Returns the arrays of a training run, the largest first; the history of metrics lies on one device alone."""
    whole = "P() over fsdp=4, tensor=2"
    lines = {"/srv/runs/maxtext/train.py:231": 7_301, "/srv/runs/maxtext/metrics.py:88": 71}

    def split(*shape: int, by: str, size: float, count: int, **more: str) -> ArrayGroup:
        return group(shape, f"P({by}) over fsdp=4, tensor=2", int(size * GIB), count, devices, **more)

    sizes = (
        split(48, 8192, 28672, by="None, 'fsdp', 'tensor'", size=8.4, count=2),
        split(48, 28672, 8192, by="None, 'tensor', 'fsdp'", size=8.4, count=2, dtype="float32"),
        split(48, 8192, 64, 128, by="None, 'fsdp', 'tensor', None", size=6, count=6),
        group((152064, 8192), whole, int(2.3 * GIB), 1, devices),
        split(64, 4096, 8192, by="'fsdp', None, None", size=1, count=4),
        group((64, 4096), "gpu:0", int(7.2 * GIB), 7_372, 1, dtype="float32", call_sites=lines),
        split(48, 8192, 1024, by="None, 'fsdp'", size=400 / 1024, count=12),
        group((8192,), whole, 3 * MIB, 97, devices),
        group((8, 4096), whole, 2 * MIB, 16, devices, dtype="int32"),
        split(48, 8192, 28672, by="None, 'fsdp', 'tensor'", size=11, count=4, memory_kind="pinned_host"),
    )
    return tuple(sorted(sizes, key=lambda each: -each.bytes))


def held(device: str, known: tuple[ArrayGroup, ...]) -> int:
    """Bytes of the groups in the device's own memory."""
    return sum(each.bytes_per_device.get(device, 0) for each in known if each.memory_kind == "device")


def full_gpu(index: int, known: tuple[ArrayGroup, ...], extra: int = 0) -> DeviceState:
    """A GPU with groups of arrays, code, temporaries of `9 GiB + extra`, and an hour of samples."""
    device = gpu(index, 0.6)
    live = held(device.device, known) + 900 * MIB
    in_use = live + CODE + 9 * GIB + extra
    history = tuple(
        (
            NOW - 3600 + 10 * step,
            int(min(1.0, step / 24) * in_use * (1 - 0.05 * (1 + math.sin(step / 7 + index)))),
            int(min(1.0, step / 24) * live),
        )
        for step in range(360)
    )
    limit = device.memory.limit_bytes if device.memory else 0
    sample = DeviceMemory(
        time=NOW - 2, device=device.device, in_use_bytes=in_use, peak_bytes=in_use + 3 * GIB, limit_bytes=limit,
        largest_free_block_bytes=2 * GIB, live_arrays=7_519 if index == 0 else 147, live_array_bytes=live,
        high_water_bytes=in_use + GIB, other_space_bytes={"pinned_host": 11 * GIB}, code_bytes=CODE,
    )  # fmt: skip
    account = Account(in_use_bytes=in_use, array_bytes=live, code_bytes=CODE, gap_bytes=in_use - live - CODE)
    return replace(device, history=history, memory=sample, account=account)


def program(function: FunctionState, argument: float, output: float, temp: float, alias: float = 0.0) -> FunctionState:
    """The function with a program that takes so many GiB."""
    sizes = {"argument": argument, "output": output, "temp": temp, "alias": alias, "code": 0.05}
    state = ProgramState(time=NOW - 100, flops=1.3e15, memory={name: int(size * GIB) for name, size in sizes.items()})
    return replace(function, program=state)


def accelerator(index: int, **fields: Any) -> AcceleratorState:
    """A healthy, busy device."""
    known: dict[str, Any] = {
        "time": NOW - 1, "device": f"gpu:{index}", "uuid": f"GPU-{index:08x}-1c2d", "index": index,
        "model": "NVIDIA H100 80GB HBM3", "driver_version": "570.86.10", "utilization": 0.97 - index / 100,
        "memory_used_bytes": 71 * GIB + index * MIB, "memory_total_bytes": 80 * GIB, "power_watts": 612.4 + index,
        "power_limit_watts": 700.0, "temperature_celsius": 61 + index, "sm_clock_hertz": 1_980_000_000,
        "throttle_reasons": (), "processes": (OURS,),
    }  # fmt: skip
    return AcceleratorState(**(known | fields))


OURS = AcceleratorProcess(pid=PID, bytes=70 * GIB, ours=True)


def accelerators() -> tuple[AcceleratorState, ...]:
    """Eight devices: one slows itself down, one is shared, one reported an error, one is gone."""
    other = AcceleratorProcess(pid=9001, bytes=8 * GIB, ours=False)
    return (
        *(accelerator(index) for index in range(4)),
        accelerator(4, throttle_reasons=SLOWED, sm_clock_hertz=1_230_000_000),
        accelerator(5, memory_used_bytes=int(78.4 * GIB), processes=(OURS, other)),
        accelerator(6, xid_errors={"63": 2}, ecc_errors={"uncorrected": {"volatile": 1, "aggregate": 3}}),
        AcceleratorState(
            time=NOW - 1, device="gpu:7", uuid="GPU-00000007-1c2d", index=7, model="NVIDIA H100 80GB HBM3", up=False,
            trouble="It has fallen off the bus.",
        ),
    )  # fmt: skip


def on_first(each: ArrayGroup) -> int:
    """Bytes of a group on the first device."""
    return each.bytes_per_device.get("gpu:0", 0)


CAUSES = (
    OomCause(
        cause="leaked_arrays",
        summary="7,372 arrays alike, float32[64,4096], hold 7.2 GiB on `gpu:0`: a list keeps one of each step.",
        advice="Find what they are appended to and keep `jax.device_get(x)` of what is needed.",
        evidence=("7,372 x float32[64,4096] (gpu:0): 7.2 GiB, 20% of the live arrays.",),
    ),
    OomCause(
        cause="program_too_large",
        summary="`eval_step` takes 9.0 GiB of temporaries, and 6.5 GiB are free.",
        advice="Use a smaller batch for evaluation, or rematerialise: `jax.checkpoint`.",
    ),
)


def out_of_memory(known: tuple[ArrayGroup, ...], **fields: Any) -> OutOfMemory:
    """The report of an evaluation that found no room."""
    live = held("gpu:0", known) + 900 * MIB
    own = [each for each in known if each.memory_kind == "device"]
    largest = tuple(sorted(own, key=on_first, reverse=True)[:6])
    buffer = MemoryBuffer(size=4 * GIB, operator="jit(eval_step)/dot_general", shape="f32[64,4096,4096]{2,1,0}")
    told: dict[str, Any] = {
        "time": NOW - 130, "pid": PID, "sequence": 41, "function": "maxtext.train.eval_step", "stage": "run",
        "error": "JaxRuntimeError", "device": "gpu:0", "call_site": "/srv/runs/maxtext/train.py:340",
        "message": "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9663676416 bytes.\nBufferAssignment ...",
        "signature": "batch=int32[64,4096]", "wanted_bytes": 9 * GIB, "used_bytes": int(73.1 * GIB),
        "free_bytes": int(6.5 * GIB), "limit_bytes": int(79.6 * GIB), "sections": {"temp": 9 * GIB},
        "buffers": (buffer,), "program": {"argument": 26 * GIB, "output": 4096, "temp": 9 * GIB},
        "program_flops": 4.1e13,
        "devices": tuple(each.memory for index in range(8) if (each := full_gpu(index, known)).memory),
        "host": {"total": 2_000 * GIB, "available": 1_400 * GIB, "resident": 88 * GIB},
        "arrays": largest, "array_shares": tuple(on_first(each) / live for each in largest),
        "compilations": ("08:12:33 maxtext.train.eval_step (shape, 20.6 s) at train.py:340",),
        "samples": ("09:12:48 gpu:0 in use 73.1 GiB", "09:12:43 gpu:0 in use 72.9 GiB"),
        "versions": {"jaxobs": "0.1.0", "jax": "0.10.2"}, "flags": {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".95"},
        "causes": CAUSES, "report": "/srv/runs/maxtext/jaxobs-oom-48213-1.txt", "seconds": 0.31,
    }  # fmt: skip
    return OutOfMemory(**(told | fields))


LEAK = finding(
    "array_leak", "maxtext.train.train_step", subject="float32[64,4096]", count=118, bytes=7_730_000_000,
    summary="7,372 arrays float32[64,4096] pile up on `gpu:0`: 2.0 a step since 08:31, 7.2 GiB by now.",
    advice="Keep `float(loss)` in the place of the array at `train.py:231`.",
    data={
        "shape": [64, 4096], "dtype": "float32", "sharding": "gpu:0", "memory_kind": "device",
        "bytes_per_call": 1_048_576.0, "full_in_seconds": 3_725.0,
        "call_sites": {"/srv/runs/maxtext/the_train.py:231": 16},
    },
)  # fmt: skip


def full() -> Snapshot:
    """The rich run with all that is known of memory."""
    base, known = rich(), groups()
    devices = tuple(full_gpu(index, known, extra=index * 300 * MIB) for index in range(8))
    functions = tuple(program(each, *sizes) if (sizes := PROGRAMS.get(each.name)) else each for each in base.functions)
    ended = replace(
        LEAK, id="over", subject="int32[8,4096]", ended=NOW - 900, summary="12 arrays int32[8,4096] piled up.", data={}
    )
    return replace(
        base, functions=functions, devices=devices, array_groups=known, headroom=headroom(devices), executables=124,
        accelerators=accelerators(), findings=(*base.findings, LEAK, ended),
    )  # fmt: skip


PROGRAMS = {
    "maxtext.train.train_step": (26.0, 25.0, 31.0, 25.0),
    "maxtext.train.eval_step": (26.0, 0.001, 9.0),
    "maxtext.decode.<locals>.generate_step": (13.0, 1.5, 3.1, 1.4),
    "maxtext.checkpointing.restore_shard": (4.0, 4.0, 0.0),
    "optax._src.linear_algebra.global_norm": (13.0, 0.0001, 0.2),
}


def died() -> Snapshot:
    """Returns the state after a call died of memory, three times by now."""
    base = full()
    functions = tuple(
        replace(each, out_of_memory={"gpu:0": 2, "gpu:3": 1}) if each.name == "maxtext.train.eval_step" else each
        for each in base.functions
    )
    return replace(base, functions=functions, last_out_of_memory=out_of_memory(base.array_groups))


def many() -> Snapshot:
    """Sixty-four devices, of which the 38th is fullest."""
    base, known = full(), groups(64)
    devices = tuple(full_gpu(index, known, extra=(index * 37 % 64) * 60 * MIB) for index in range(64))
    thinned = tuple(replace(each, history=each.history[::6]) for each in devices)
    return replace(base, devices=thinned, array_groups=known, headroom=headroom(thinned), findings=(), accelerators=())


def without_allocator() -> Snapshot:
    """A CPU: groups of live arrays, and an allocator that tells nothing."""
    names = [f"cpu:{index}" for index in range(8)]
    known = (
        ArrayGroup(shape=(1024, 512), dtype="float32", sharding="P(None, 'model') over data=4, model=2",
                   memory_kind="unpinned_host", count=3, bytes_per_device=dict.fromkeys(names, 3 * MIB)),
        ArrayGroup(shape=(64, 1024), dtype="float32", sharding="cpu:0", memory_kind="unpinned_host", count=40,
                   bytes_per_device={"cpu:0": 10 * MIB}),
    )  # fmt: skip
    devices = []
    for index, name in enumerate(names):
        device = cpu()
        live = 3 * MIB + (10 * MIB if index == 0 else 0)
        sample = DeviceMemory(time=NOW - 1, device=name, live_arrays=43 if index == 0 else 3, live_array_bytes=live)
        devices.append(replace(device, device=name, id=index, memory=sample))
    return replace(on_cpu(), devices=tuple(devices), array_groups=known, executables=7)


def samples(device: DeviceState, count: int = 30) -> list[DeviceMemory]:
    """`memory` events older than what the snapshot's history holds."""
    memory = device.memory
    assert memory is not None and memory.in_use_bytes is not None
    half = {"in_use_bytes": memory.in_use_bytes // 2, "live_array_bytes": (memory.live_array_bytes or 0) // 2}
    return [
        replace(memory, time=NOW - 7200 + 30 * step, sequence=1000 + step, pid=PID, **half) for step in range(count)
    ]


def capture(sequence: int, **fields: Any) -> Action:
    """A capture of memory that was done."""
    known: dict[str, Any] = {
        "time": NOW - 60, "pid": PID, "sequence": sequence, "name": "memory", "origin": "http", "result": "done",
        "path": "/srv/runs/maxtext/captures/memory-0001.prof", "bytes": 48_112, "seconds": 0.21,
    }  # fmt: skip
    return Action(**(known | fields))


FINDING_OVER: Finding = replace(LEAK, ended=NOW - 900)
