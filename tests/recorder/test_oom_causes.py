"""Why memory ran out: what the rules say of figures made by hand, and of another process that a fake driver knows."""

import dataclasses
import os
import pathlib
from typing import Any

import pytest

import jaxobs
from jaxobs.facts.accelerators import AcceleratorProcess, AcceleratorState
from jaxobs.facts.errors import MemoryBuffer, OutOfMemory
from jaxobs.facts.findings import Finding
from jaxobs.facts.memory import ArrayGroup, DeviceMemory
from jaxobs.recorder import flight_recorder, oom_causes, oom_report
from jaxobs.sources import nvml as nvml_source
from jaxobs.state import store
from jaxobs.testing import FakeClient, FakeDevice, FakeNvml, backends

GIB = 2**30


def _gpu(**fields: Any) -> DeviceMemory:
    known = {"in_use_bytes": 20 * GIB, "limit_bytes": 60 * GIB, "live_array_bytes": 18 * GIB, "live_arrays": 9}
    return DeviceMemory(time=1.0, device="gpu:0", **(known | fields))


def _event(device: DeviceMemory | None = None, **fields: Any) -> OutOfMemory:
    known = {"function": "f", "stage": "run", "error": "E", "message": "m", "devices": (device or _gpu(),)}
    return OutOfMemory(time=1.0, **(known | fields))


def _group(count: int, size: int, sharding: str = "gpu:0", devices: int = 1) -> ArrayGroup:
    held = {f"gpu:{n}": size for n in range(devices)}
    return ArrayGroup(
        shape=(8, 8), dtype="float32", sharding=sharding, memory_kind="device", count=count, bytes_per_device=held
    )


def _seen(pid: int | None, size: int, **fields: Any) -> AcceleratorState:
    """The device of 80 GiB as its driver sees it, with 20 GiB of ours and another process on it."""
    others = () if pid is None else (AcceleratorProcess(pid=pid, bytes=size, ours=False),)
    known: dict[str, Any] = {
        "time": 0.0, "device": "gpu:0", "uuid": "GPU-a", "index": 0, "memory_total_bytes": 80 * GIB,
        "memory_used_bytes": 20 * GIB + size,
        "processes": (AcceleratorProcess(pid=1, bytes=20 * GIB, ours=True), *others),
    }  # fmt: skip
    return AcceleratorState(**(known | fields))


def _leak(**fields: Any) -> Finding:
    known: dict[str, Any] = {
        "id": "array_leak-1", "finding": "array_leak", "function": "train.step", "advice": "Keep `float(loss)`.",
        "summary": "412 more arrays float32[8,8] are alive than at 09:00:00, created at train.py:12.",
        "data": {"shape": [8, 8], "dtype": "float32", "sharding": "gpu:0", "call_sites": {"train.py:12": 5}},
    }  # fmt: skip
    return Finding(time=1.0, **(known | fields))


CASES: list[tuple[str, OutOfMemory, dict[str, Any]]] = [
    ("absurd_request", _event(wanted_bytes=1225195446464, total_bytes=85095874560, stage="allocate"), {}),
    ("other_process", _event(stage="start"), {}),
    ("program_too_large", _event(stage="compile", used_bytes=126 * GIB, limit_bytes=94 * GIB), {}),
    ("program_too_large", _event(wanted_bytes=50 * GIB, program={"temp": 50 * GIB, "argument": 9 * GIB}), {}),
    ("leaked_arrays", _event(wanted_bytes=50 * GIB, arrays=(_group(500, 15 * GIB), _group(3, GIB)),
                             array_shares=(0.8, 0.1)), {}),
    ("leaked_arrays", _event(arrays=(_group(20, 15 * GIB), _group(20, GIB)), array_shares=(0.8, 0.1)),
     {"growing": True}),
    ("replicated_arrays", _event(arrays=(_group(4, 16 * GIB, "P() over data=8", 8),), array_shares=(0.9,)), {}),
    ("fragmentation", _event(_gpu(largest_free_block_bytes=GIB), wanted_bytes=8 * GIB), {}),
    ("other_process", _event(wanted_bytes=8 * GIB, flags={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}), {}),
    ("executables", _event(_gpu(in_use_bytes=50 * GIB), wanted_bytes=12 * GIB), {"executables": 400}),
    ("live_arrays", _event(_gpu(in_use_bytes=58 * GIB, live_array_bytes=57 * GIB), wanted_bytes=4 * GIB,
                           arrays=(_group(48, 20 * GIB), _group(48, 20 * GIB)), array_shares=(0.35, 0.35)), {}),
    ("host_limit", _event(DeviceMemory(time=1.0, device="cpu:0"), wanted_bytes=GIB,
                          host={"total": 64 * GIB, "limit": 4 * GIB, "resident": 3 * GIB}), {}),
    ("other_process", _event(stage="start", accelerators=(_seen(4242, 60 * GIB),)), {}),
    ("other_process", _event(wanted_bytes=8 * GIB, accelerators=(_seen(4242, 30 * GIB),)), {}),
    ("other_process", _event(_gpu(limit_bytes=None), accelerators=(_seen(4242, 30 * GIB),)), {}),
    ("unknown", _event(DeviceMemory(time=1.0, device="tpu:0")), {}),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "event", "known"), CASES)
def test_causes(cause: str, event: OutOfMemory, known: dict[str, Any]) -> None:
    """Figures that show one cause name it first, with evidence and advice; the layers of a model are no leak."""
    found = oom_causes.diagnose(event, **known)
    assert found[0].cause == cause
    assert all(each.summary and each.advice and (each.evidence or each.cause == "unknown") for each in found)
    assert oom_report.text(dataclasses.replace(event, causes=found))


def test_advice_of_a_program_tells_donation_and_padding() -> None:
    """A state that is returned and not donated, and tiles that are mostly padding, are told with their bytes."""
    event = _event(
        stage="compile", used_bytes=40 * GIB, limit_bytes=16 * GIB,
        program={"argument": 8 * GIB, "output": 8 * GIB, "temp": 30 * GIB, "alias": 0},
        buffers=(MemoryBuffer(size=14 * GIB, padding=13 * GIB, operator="jit(f)/one_hot", shape="s32[9,10]"),),
    )  # fmt: skip
    (cause,) = oom_causes.diagnose(event)
    assert "donate_argnums" in cause.advice and "8.00 GiB" in cause.advice and "13.0 GiB" in cause.advice
    assert any("jit(f)/one_hot" in each for each in cause.evidence)


# ----------------------------------------------------------------------------------------------------- leaks


def test_a_leak_that_was_found_comes_first() -> None:
    """A leak's summary, advice and line come before other causes; a leak that holds next to nothing is left out."""
    event = _event(arrays=(_group(4, 20 * GIB, "P() over data=8", 8), _group(500, GIB)), array_shares=(0.9, 0.05))
    found = oom_causes.diagnose(event, leaks=(_leak(),))
    assert [each.cause for each in found] == ["leaked_arrays", "replicated_arrays"]
    assert found[0].summary == _leak().summary and found[0].advice == _leak().advice
    assert found[0].evidence == (
        "500 x float32[8,8] (gpu:0): 1.00 GiB, 5% of the live arrays.", "Created at train.py:12.",
    )  # fmt: skip
    small = dataclasses.replace(event, array_shares=(0.9, 0.01))
    assert [each.cause for each in oom_causes.diagnose(small, leaks=(_leak(),))] == ["replicated_arrays"]
    absurd = dataclasses.replace(event, wanted_bytes=500 * GIB, total_bytes=80 * GIB, stage="allocate")
    assert oom_causes.diagnose(absurd, leaks=(_leak(),))[0].cause == "absurd_request"


def test_a_leak_of_many_shapes_is_told_without_a_group() -> None:
    """The finding's own evidence is quoted if no group represents it."""
    leak = _leak(data={"call_sites": {}}, evidence=("9.00 GiB in 40 x float32[1,7].",))
    (cause,) = oom_causes.diagnose(_event(), leaks=(leak,))
    assert (cause.cause, cause.evidence) == ("leaked_arrays", ("9.00 GiB in 40 x float32[1,7].",))


@pytest.mark.usefixtures("fresh")
def test_only_a_leak_that_stands_is_blamed(tmp_path: pathlib.Path) -> None:
    """The recorder takes the findings as they stand at the error: one that is over by itself is none."""
    jaxobs.install(flight_recorder=str(tmp_path), sample_interval=3600)
    recorder = flight_recorder.of(store.current())
    recorder.after_fork()
    leak = _leak(data={})
    store.current().record(dataclasses.replace(leak, ended=2.0))
    event = recorder.saw(RuntimeError("Out of memory allocating 512 bytes."))
    assert event is not None and event.causes[0].cause != "leaked_arrays"
    store.current().record(leak)
    event = recorder.saw(RuntimeError("Out of memory allocating 513 bytes."))
    assert event is not None and event.causes[0].summary == leak.summary


# --------------------------------------------------------------------------------------------- other processes


def test_who_else_is_on_the_device() -> None:
    """The pid, its bytes, what is left for JAX, and whether it looks like a preallocation."""
    event = _event(wanted_bytes=8 * GIB, accelerators=(_seen(4242, 60 * GIB),))
    (cause,) = oom_causes.diagnose(event)
    assert cause.summary == "Another process, pid 4242, holds 60.0 GiB of gpu:0's 80.0 GiB."
    assert cause.evidence == (
        "pid 4242 holds 60.0 GiB on gpu:0. As much as JAX preallocates by default: probably another JAX process.",
        "JAX may use 60.0 GiB of gpu:0, and others leave 20.0 GiB of it.",
    )
    assert "ps -fp 4242" in cause.advice and "XLA_CLIENT_MEM_FRACTION" in cause.advice
    text = oom_report.text(dataclasses.replace(event, causes=(cause,)))
    assert "  gpu:0    in use 80.0 GiB of 80.0 GiB, this process 20.0 GiB, pid 4242 60.0 GiB" in text


@pytest.mark.parametrize(
    ("device", "seen", "event"),
    [
        ({}, _seen(4242, 15 * GIB), {}),  # beside what JAX may use at most
        ({}, _seen(4242, GIB), {}),  # a context
        ({}, _seen(None, 0), {}),
        ({}, _seen(4242, 30 * GIB, time=-100.0), {}),  # long ago
        ({}, _seen(4242, 30 * GIB), {"wanted_bytes": 70 * GIB}),  # more than it may have in any case
        ({}, _seen(4242, 30 * GIB), {"stage": "compile"}),
        ({}, _seen(4242, 30 * GIB, device="gpu:1"), {}),
        # Nobody tells who is who, and all that is used may be this process's own preallocation.
        ({}, _seen(None, 0, memory_used_bytes=62 * GIB, processes=None), {}),
    ],
)
def test_others_that_are_not_to_blame(device: dict[str, Any], seen: AcceleratorState, event: dict[str, Any]) -> None:
    """A process that takes nothing from JAX's share, is old, or is on another device is not blamed."""
    known = {"wanted_bytes": 8 * GIB, "accelerators": (seen,)} | event
    assert all(each.cause != "other_process" for each in oom_causes.diagnose(_event(_gpu(**device), **known)))


def test_a_driver_that_does_not_tell_processes() -> None:
    """Memory in use beyond all that may be ours is another's; the text says which numbers may be ours."""
    flags = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    seen = _seen(None, 0, memory_used_bytes=70 * GIB, processes=(AcceleratorProcess(pid=7, bytes=GIB, ours=None),))
    (cause,) = oom_causes.diagnose(_event(_gpu(), wanted_bytes=30 * GIB, accelerators=(seen,), flags=flags))
    assert cause.summary == "Another process, which the driver does not name, holds 50.0 GiB of gpu:0's 80.0 GiB."
    assert cause.evidence[:2] == (
        "In use according to the driver: 70.0 GiB; at most 20.0 GiB of it is this process's.",
        "pid 7 holds 1.00 GiB on gpu:0. It may be this process.",
    )


@pytest.mark.usefixtures("fresh")
def test_the_drivers_processes_reach_the_report(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """End to end: NVML's figures of the last sample, a GPU's error, and the file that names who holds the memory."""
    monkeypatch.setattr(nvml_source, "WAIT_SECONDS", 5.0)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    jaxobs.install(flight_recorder=str(tmp_path / "files"), sample_interval=3600)
    recorder = flight_recorder.of(store.current())
    recorder.after_fork()
    fake = FakeNvml()
    fake.device(
        0, uuid="GPU-a", name="Fake H100", memory__used=61 * GIB, memory__total=80 * GIB,
        processes=f"{os.getpid()}:{30 * GIB} 4242:{31 * GIB}",
    )  # fmt: skip
    statistics = {"bytes_in_use": 28 * GIB, "bytes_limit": 60 * GIB}
    client = FakeClient([FakeDevice(0, local_hardware_id=0, device_kind="Fake H100", statistics=statistics)])
    with fake, backends(client):
        source = nvml_source.Accelerators(store.current())
        source.sample()
        fake.device(0, memory__used="error 999", processes="error 999")  # not asked again
        event = recorder.saw(RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 21.0GiB."))
        source.stop()
    assert event is not None and event.report is not None
    assert event.causes[0].summary == "Another process, pid 4242, holds 31.0 GiB of gpu:0's 80.0 GiB."
    text = pathlib.Path(event.report).read_text(encoding="utf-8")
    assert "- pid 4242 holds 31.0 GiB on gpu:0." in text
    assert "gpu:0    in use 61.0 GiB of 80.0 GiB, pid 4242 31.0 GiB, this process 30.0 GiB" in text.replace(
        "this process 30.0 GiB, pid 4242 31.0 GiB", "pid 4242 31.0 GiB, this process 30.0 GiB"
    )
