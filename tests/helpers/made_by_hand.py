"""Facts made by hand, and a store that knows something of everything."""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import Any

from jaxobs.base import guard
from jaxobs.facts.accelerators import AcceleratorProcess, AcceleratorState
from jaxobs.facts.compilations import CacheLookup, Compilation, OpenCompilation
from jaxobs.facts.errors import OutOfMemory
from jaxobs.facts.findings import Finding
from jaxobs.facts.memory import DeviceMemory, DeviceState
from jaxobs.facts.profile_samples import HostPlace, ProfileSample, SampledFunction
from jaxobs.facts.profiles import IdleTime, OperationTime
from jaxobs.internals.transfers import Moved
from jaxobs.metrics.subjects.host import METRICS as HOST
from jaxobs.state.checkpoints import Checkpoints, Mark
from jaxobs.state.generations import Generation
from jaxobs.state.host_work import HostMeter
from jaxobs.state.input_waits import Inputs
from jaxobs.state.loops import Loops
from jaxobs.state.routes import Routes
from jaxobs.state.runs import Earlier, Runs
from jaxobs.state.store import Store
from jaxobs.state.transfers import Fallbacks, Transfers
from jaxobs.state.wall import Wall
from jaxobs.state.watched import Watched

PHASES = {"trace": 0.02, "lower": 0.01, "compile": 0.3}


def compilation(function: str = "train.step", **fields: Any) -> Compilation:
    """A first compilation of a function, unless told otherwise."""
    known = {"time": 1_770_000_000.0, "cause": "first_call", "reason": f"First call of `{function}`.", "phases": PHASES}
    return Compilation(function=function, **(known | fields))


def full_store() -> Store:
    """A store in which every metric of the catalogue has something to say."""
    store = Store()
    make_time(store)
    sizes = {"argument": 5, "output": 4, "temp": 3, "alias": 2, "code": 1}
    store.record(compilation(cache="miss", uncached_because="too_fast"))
    store.set_holdings((), 4)
    last = store.record(
        compilation(cause="shape", cache="hit", phases={"trace": 0.02, "lower": 0.01, "cache_load": 0.05})
    )
    instructions = {"fusion": 2, "collective": 1, "custom_call": 0, "other": 3}
    store.set_program("train.step", last.time, instructions=instructions, flops=12.0, memory=sizes)
    store.record(CacheLookup(time=1.0, function="train.step", result="hit", key="jit_step-1", saved_seconds=12.0))
    store.record(OutOfMemory(time=2.0, function="train.step", stage="run", error="E", message="m", device="gpu:0"))
    for seconds in (None, 0.25):
        store.part(HostMeter).called("train.look_up", "train.py:3", seconds)
    stats = store.call_stats("train.step")
    for _ in range(3):
        next(stats.counter)
    stats.durations.extend((1e-5, 2e-3, 30.0))
    stats.device_took(2e-3)
    stats.failed(ValueError("no"))
    stats.watched = True
    stats.fell("effects", "It calls back to the host.", keep_on=False)
    store.begin(1, OpenCompilation("train.eval", "compile", 1_770_000_100.5, "MainThread (1)"))
    memory = DeviceMemory(
        time=2.0, device="gpu:0", in_use_bytes=3, peak_bytes=5, limit_bytes=9, reserved_bytes=1,
        largest_free_block_bytes=4, live_arrays=7, live_array_bytes=2, high_water_bytes=4,
        other_space_bytes={"pinned_host": 6},
    )  # fmt: skip
    device = DeviceState(
        device="gpu:0", id=0, platform="gpu", device_kind="Fake", process_index=0, pci_bus_id="0000:01:00.0"
    )
    store.set_device(device, memory)
    store.set_cache_size(4096, 2, 1024)
    store.set_accelerators((accelerator(),))
    store.describe(versions={"jaxobs": "1", "jax": "2"}, capabilities={"miss_frame": True, "phase_starts": False})
    store.host = {each.name: 1.0 for each in HOST}
    for reason in ("max_functions", "event_log_write", "event_log_files", "otlp_spans", "tls_handshake", "cache_keys"):
        store.drop(reason)
    store.collect_seconds = 0.004
    guard.internal_error("place", ValueError("made by hand"))
    make_steps(store)
    make_requests(store)
    make_input(store)
    store.record(profile_sample())
    store.record(
        Finding(time=3.0, id="1", finding="recompile_storm", function="train.step", summary="It did.", advice="Do not.")
    )
    return store


def profile_sample(**fields: Any) -> ProfileSample:
    """A sample of two devices that computed half of the time, unless told otherwise."""
    product = OperationTime(
        operation="dot.1", function="train.step", category="matmul", scope="jit(step)/layer/dot_general",
        source="train.py:12", device_seconds=0.08, share=0.8, count=8, flops=1e9, bytes=1e6, bound="unknown",
    )  # fmt: skip
    function = SampledFunction(
        function="train.step", seconds={"matmul": 0.08, "collective": 0.02}, exposed_seconds=0.01
    )
    known: dict[str, Any] = {
        "time": 3.0, "window_seconds": 0.1, "busy": {"gpu:0": 0.5, "gpu:1": 0.5}, "functions": (function,),
        "operations": (product,), "idle": (IdleTime(reason="input", seconds=0.1),), "collective_seconds": 0.02,
        "exposed_seconds": 0.01, "places": (HostPlace(where="train.py:30", reason="input", share=0.5),), "looks": 20,
        "loop": "train", "step_seconds": 0.025, "bytes": 20_000, "start_seconds": 1e-4, "stop_seconds": 1e-3,
        "reading_seconds": 4e-3,
    }  # fmt: skip
    return ProfileSample(**(known | fields))


def make_requests(store: Store, route: str = "/predict") -> None:
    """Two requests of a route that have ended, a cold and a steady one, and a third that is under way."""
    routes = store.part(Routes)
    for _ in range(3):
        routes.begun()
    for cold, seconds in (("true", 1.5), ("false", 0.004)):
        routes.ended()
        compiled = (1, ()) if cold == "true" else None
        generation, now, http = Generation(), time.perf_counter(), ("POST", "http", 200)
        generation.first_token, generation.input, generation.output = now - seconds / 2, 8, 16
        generation.reason = "stop"
        routes.route(route).waiting.append((now, seconds, "ok", cold, 0.25, (3, 4), compiled, generation, False, http))
    routes.route(route).generations.count(0, 0, 0.02)
    routes.engines.report("engine", 3, 1, 0.5)


def make_input(store: Store, name: str = "train") -> None:
    """An input that gave two batches, a watched value that was not finite once, and a transfer in each direction,
    and an operator that ran on the CPU."""
    meter, watched = store.part(Inputs).meter(name), store.part(Watched)
    meter.waits += [(0.0, 0.5, 0.0, True), (1.0, 1.25, 0.5, True)]
    watched.take(watched.add("loss", "train.py:7"), float("nan"))
    watched.look()
    for direction in ("device_to_host", "host_to_device"):
        store.part(Transfers).take(Moved(direction, 4000, (1000,), "float32", 1e-5), sys._getframe(), Wall())
    store.part(Fallbacks).ran("aten::median", 3)


def make_time(store: Store) -> None:
    """An account of time that stands still: preparations, a step and a checkpoint, of a run's second attempt."""
    now = 0.0
    wall = store._parts[Wall] = Wall(lambda: now, age=90.0)
    scope = wall.enter("step")
    now = 10.0
    wall.leave(scope)
    checkpoints, runs = store.part(Checkpoints), store.part(Runs)
    checkpoints.observe("save", 2.5)
    checkpoints.sized("save", 2**20)
    checkpoints.saved(Mark())
    runs.id, runs.earlier = "made by hand", Earlier(attempts=1, since=1.0, down_seconds=20.0)


def make_steps(store: Store, name: str = "train", seconds: float = 0.01, count: int = 5) -> None:
    """Steps of a loop, each of so many seconds and with 32 items, that call `train.step` once."""
    store.configure(dataclasses.replace(store.settings, peak_flops=1e6))
    loop, now = store.part(Loops).loop(name, store.part(Wall), store.calls), time.perf_counter()
    loop.marks += [
        (0, now - (n + 1) * seconds, now - n * seconds, 0.0, 0.0, 32, True, {"train.step": 1})
        for n in reversed(range(count))
    ]
    for function in store.snapshot(fresh=False).functions:
        if function.program is not None:
            store.set_program(function.name, function.program.time, all_flops=12.0)


def accelerator(**fields: Any) -> AcceleratorState:
    """A device whose driver tells everything, unless told otherwise."""
    counts = {"transmit": 1, "receive": 2}
    known: dict[str, Any] = {
        "time": 2.0, "device": "gpu:0", "uuid": "GPU-made-by-hand", "index": 0, "model": "Fake",
        "pci_bus_id": "00000000:01:00.0", "driver_version": "570.86.10", "utilization": 0.87,
        "memory_controller_utilization": 0.41, "memory_used_bytes": 6, "memory_total_bytes": 10, "power_watts": 312.5,
        "power_limit_watts": 700.0, "energy_joules": 9000.5, "temperature_celsius": 64,
        "sm_clock_hertz": 1_980_000_000, "memory_clock_hertz": 2_619_000_000, "throttle_reasons": ("sw_power_cap",),
        "ecc_errors": {"corrected": {"volatile": 2, "aggregate": 7}}, "xid_errors": {"79": 1}, "pcie_bytes": counts,
        "nvlink_bytes": {"0": counts, "1": counts}, "nvlink_links": 2,
        "tensorcore_utilization": 0.34, "memory_bandwidth_utilization": 0.55, "slowdown": 0.1,
        "link_faults": {"tray1.chip0.ici0.int": 1},
        "processes": (AcceleratorProcess(pid=7, bytes=5, ours=True), AcceleratorProcess(pid=8, bytes=1, ours=False)),
    }  # fmt: skip
    return AcceleratorState(**(known | fields))
