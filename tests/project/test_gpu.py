"""jaxobs on a real NVIDIA GPU, where one is at hand; and anywhere, that the check of it can tell right from wrong."""

import dataclasses
import functools
import pathlib
import subprocess
import sys
import time
from typing import Any

import jax  # noqa: F401 - the sources start once it is there
import pytest
from helpers.made_by_hand import accelerator

import jaxobs
from jaxobs.facts.errors import OomCause, OutOfMemory
from jaxobs.facts.memory import DeviceMemory, DeviceState
from jaxobs.testing import FakeClient, FakeDevice, FakeNvml, backends
from tools import gpu_check
from tools.gpu_figures import Line, judge_busy, judge_memory, judge_out_of_memory

GIB = 2**30


@functools.cache
def _no_gpu() -> str | None:
    return gpu_check.gpu_at_hand()


@pytest.mark.gpu
@pytest.mark.parametrize("name", gpu_check.CHECKS)
def test_figures_on_a_gpu(name: str) -> None:
    if (reason := _no_gpu()) is not None:  # also in CI: a GPU is nothing that can be installed
        pytest.skip(f"needs an NVIDIA GPU: {reason}")
    lines = gpu_check.run(name)
    assert lines
    assert [each for each in lines if not each.holds] == []


def _device(**memory: int) -> DeviceState:
    known = {"in_use_bytes": GIB, "limit_bytes": 60 * GIB, "live_array_bytes": GIB}
    return DeviceState(
        device="gpu:0", id=0, platform="gpu", device_kind="Fake", process_index=0,
        memory=DeviceMemory(time=1.0, device="gpu:0", **(known | memory)),
    )  # fmt: skip


def _wrong(lines: list[Line]) -> list[str]:
    return [each.what for each in lines if not each.holds]


def test_memory_is_judged() -> None:
    whole = functools.partial(accelerator, memory_total_bytes=80 * GIB)
    pool, little = whole(memory_used_bytes=61 * GIB), whole(memory_used_bytes=2 * GIB)
    silent = dataclasses.replace(pool, memory_used_bytes=None, device="gpu:1")
    taken = "taken from the driver since JAX began"
    for memory, driver, before, preallocated, wrong in (
        ({}, pool, 0, True, []),
        ({}, little, GIB // 2, False, []),
        ({}, little, 0, True, [taken]),
        ({}, pool, 0, False, [taken]),
        ({"in_use_bytes": 2 * GIB}, pool, 0, True, ["in use, by JAX's allocator"]),
        ({"limit_bytes": 90 * GIB}, pool, None, True, ["limit, by JAX's allocator", taken]),
        ({"live_array_bytes": 0}, pool, 0, True, ["bytes of live arrays"]),
        ({}, silent, 0, True, ["the driver's device", "used, by the driver", taken]),
    ):
        assert _wrong(judge_memory(_device(**memory), driver, GIB, before, preallocated)) == wrong


def test_a_report_is_judged() -> None:
    event = OutOfMemory(
        time=1.0, function="f", stage="run", error="E", message="m", device="gpu:0", wanted_bytes=2 * GIB, seconds=0.1,
        causes=(OomCause(cause="absurd_request", summary="", advice=""),), report="file",
    )  # fmt: skip
    assert _wrong(judge_out_of_memory(event, "gpu:0", 2 * GIB, ("absurd_request",))) == []
    assert _wrong(judge_out_of_memory(None, "gpu:0", 1, ())) == ["report"]
    bad = dataclasses.replace(
        event, stage="unknown", device=None, wanted_bytes=None, causes=(), seconds=2.1, report=None
    )
    assert len(_wrong(judge_out_of_memory(bad, "gpu:0", 2 * GIB, ("absurd_request",)))) == 6


def test_a_busy_device_is_judged() -> None:
    def states(power: float | None, share: float | None, joules: float = 300.0) -> list[Any]:
        return [
            accelerator(time=float(i), power_watts=power, utilization=share, energy_joules=1000.0 + joules * i)
            for i in range(4)
        ]

    idle, nothing = states(60.0, 0.0), ["power, idle", "power, busy", "utilization, busy"]
    for before, busy, wrong in (
        (idle, states(310.0, 1.0), []),
        (idle, states(50.0, 0.5, joules=50.0), ["power, busy", "utilization, busy"]),
        (idle, states(310.0, 1.0, joules=30.0), ["power by the energy counter"]),
        (states(None, None), states(None, None), nothing),
        ([], [], [*nothing, "temperature, busy"]),
    ):
        assert _wrong(judge_busy(before, busy)) == wrong


@pytest.mark.usefixtures("fresh")
def test_both_states_are_read_through_the_real_sources(tmp_path: pathlib.Path) -> None:
    device = FakeDevice(0, local_hardware_id=0, statistics={"bytes_in_use": GIB, "bytes_limit": 60 * GIB})
    nvml = FakeNvml()
    nvml.device(0, uuid="GPU-a", memory__used=61 * GIB, memory__total=80 * GIB)
    with nvml, backends(FakeClient([device])):
        jaxobs.install(sample_interval=3600)
        asked = time.time()
        state, driver = gpu_check._sampled("gpu:0")
        jaxobs.uninstall()
    assert state.memory is not None and driver.time >= asked and state.memory.time >= asked
    # The fake device has no array: that, and nothing else, is found.
    assert _wrong(judge_memory(state, driver, GIB, 0, True)) == ["bytes of live arrays"]


def test_without_a_gpu_it_says_so() -> None:
    if _no_gpu() is None:
        pytest.skip("there is a GPU")
    command = [sys.executable, "-m", "tools.gpu_check"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=gpu_check.ROOT)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("Nothing was checked: ")
    with pytest.raises(RuntimeError, match=r"(?s)`too_large` ended with code 1:.*No GPU that JAX can use.*pip install"):
        gpu_check.run("too_large")


def test_the_command(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_check, "gpu_at_hand", lambda: None)
    good, bad = Line("limit", "60 GiB", "any", True), Line("limit", "0 GiB", "any", False)
    monkeypatch.setattr(gpu_check, "run", lambda name: [good])
    page = tmp_path / "gpu.md"
    assert gpu_check.main(["--markdown", str(page)]) == 0
    text = page.read_text()
    assert all(f"## {title}" in text for title in gpu_check.TITLES.values())
    assert text.count("| limit | 60 GiB | any | yes |") == len(gpu_check.CHECKS) == len(gpu_check.TITLES)
    assert "- jax: " in text
    monkeypatch.setattr(gpu_check, "run", lambda name: [good, bad])
    assert gpu_check.main(["busy", "--markdown", str(page)]) == 1
    assert "| limit | 0 GiB | any | NO |" in page.read_text()

    def fails(name: str) -> list[Line]:
        raise RuntimeError("Check `busy` ended with code 1:\nno such thing")

    monkeypatch.setattr(gpu_check, "run", fails)
    assert gpu_check.main(["busy"]) == 1
    assert "no such thing" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        gpu_check.main(["bussy"])
    assert stopped.value.code == 2
    assert "unknown check `bussy`" in capsys.readouterr().err
