"""Each check, with machines that are not here: what it finds, and what it leaves alone."""

import dataclasses
import os
import re
import socket
import tomllib
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import ROOT

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.ops import doctor
from jaxobs.ops.doctor import probes
from jaxobs.ops.doctor.machine import LEVELS, Finding, Holder, Machine, Package, release
from jaxobs.ops.doctor.probes import Imported, Parsed
from tools.ports import free_port

GIB = 2**30
FINE = Imported("0.10.2", "0.10.2", "/site/jax/__init__.py", "0.10.2", {
    "jax_platforms": None, "jax_compilation_cache_dir": None, "jax_enable_compilation_cache": True,
    "jax_persistent_cache_min_compile_time_secs": 1.0, "jax_compilation_cache_max_size": -1, "jax_debug_nans": False,
    "jax_log_compiles": False, "jax_disable_jit": False, "jax_compiler_detailed_logging_min_ops": 0,
})  # fmt: skip
JAX = {"jax": "0.10.2", "jaxlib": "0.10.2"}
CUDA = {**JAX, "jax-cuda13-plugin": "0.10.2", "jax-cuda13-pjrt": "0.10.2", "nvidia-nccl-cu13": "2.28.3"}
HOST = {
    "/proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 60000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB",
    "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Wed",
}
DEVICES = {
    None: (), "gpu": ("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"), "tpu": ("/dev/accel0",),
    "amd": ("/dev/kfd", "/dev/dri/renderD128", "/dev/dri/card0"),
}  # fmt: skip
Case = dict[str, Any]
CASES: list[Case] = tomllib.loads((Path(__file__).parent / "checks.toml").read_text())["case"]


def gpu(used: float, model: str) -> AcceleratorState:
    return AcceleratorState(
        time=0.0, device="gpu:0", uuid="GPU-1", index=0, model=model, pci_bus_id="0", driver_version="580.65.06",
        memory_used_bytes=int(used * GIB), memory_total_bytes=80 * GIB,
    )  # fmt: skip


def prepared(folder: Path, how: str) -> None:
    """A private cache; one with an entry that was cut off; or a lock of libtpu that is left over."""
    if how == "lock":
        (folder / "libtpu_lockfile").touch()
        return
    (folder / "cache/0.10.2").mkdir(parents=True, mode=0o700)
    if how == "broken":
        (folder / "cache/0.10.2" / f"jit_f-{'0' * 64}-cache").write_bytes(b"\x78\x9c12")


@pytest.mark.slow
def test_a_variable_that_keeps_jax_from_being_imported_is_found_by_a_trial(tmp_path: Path) -> None:
    bad, good = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "JAX_DEBUG_NANS"
    found = probes.import_jax({**os.environ, bad: "soon", good: "0"}, tmp_path)
    assert found.variables == (bad,)
    (tmp_path / "jax.py").write_text("raise OSError('broken')")
    assert probes.import_jax({**os.environ, good: "0"}, tmp_path).variables == ()


def test_a_flag_of_the_tpu_compiler_has_its_own_place(tmp_path: Path) -> None:
    flag = "--xla_tpu_x=1"
    [found] = said(
        "xla_flags", machine({"on": "tpu", "environment": {"XLA_FLAGS": flag}, "unknown_flags": [flag]}, tmp_path)
    )
    assert found.fix == f'export XLA_FLAGS="" LIBTPU_INIT_ARGS="{flag}"'


def machine(case: Case, folder: Path) -> Machine:
    files = {**HOST, **dict.fromkeys(DEVICES[case.get("on")], ""), **case.get("files", {})}
    for name, text in files.items():
        path = folder / "root" / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    given = {name: value.format(free=free_port()) for name, value in case.get("environment", {}).items()}
    made = Machine({"TMPDIR": str(folder), **given}, folder / "root", folder)
    packages, unknown = case.get("packages", JAX), tuple(case.get("unknown_flags", ()))
    wants = {"jax": tuple(case.get("requires", ()))}
    packages = CUDA if packages == "cuda" else packages
    made.packages = tuple(Package(name, each, "/site", wants.get(name, ())) for name, each in packages.items())
    known = {**FINE.settings, **case.get("settings", {})}
    made.imported = dataclasses.replace(FINE, settings=known, **case.get("fields", {}))
    made.parsed = Parsed(f"Unknown flag in XLA_FLAGS: {unknown[0]}", unknown) if unknown else Parsed()
    made.gpus = [gpu(**each) for each in case["gpus"]] if "gpus" in case else "no library"
    made.python = (3, 12, 0)
    for name in case.keys() & {"cpus", "now", "open_files"}:
        setattr(made, name, case[name])
    if "holders" in case:
        made.holders = [Holder(*each) for each in case["holders"]]
    if "free_bytes" in case:
        vars(made)["free_bytes"] = lambda _: tuple(case["free_bytes"])
    if "prepare" in case:
        prepared(folder, case["prepare"])
    return made


def said(check: str, of: Machine) -> list[Finding]:
    [module] = [each for each in doctor.known() if each.__name__.endswith(f".{check}")]
    found = doctor.worst_first(module.check(of))
    assert found
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['check']}-{case.get('says', ['fine'])[0]}")
def test_what_a_check_says(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxobs.ops.doctor.checks.clock.is_synchronized", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = [each for each in said(case["check"], machine(case, tmp_path)) if each.severity != "ok"]
    says = [each.partition(": ")[::2] for each in case.get("says", ())]
    assert len(found) == len(says), [each.title for each in found]
    for each, (severity, part) in zip(found, says, strict=True):
        assert (each.severity, part in each.title) == (severity, True), (each.severity, each.title)
    assert all(each.evidence and (each.fix or each.severity == "info") for each in found)


def test_every_check_is_tried_in_health_and_in_fault() -> None:
    names = {each.__name__.rpartition(".")[2] for each in doctor.known()}
    assert {case["check"] for case in CASES if "says" not in case} | {"compilation_cache", "shared_memory"} >= names
    assert {case["check"] for case in CASES if "says" in case} | {"ports"} == names


def test_the_page_lists_every_check() -> None:
    page = (ROOT / "docs/doctor.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| [A-Z].+\. \|$", page.partition("## Checks")[2], re.MULTILINE)
    assert rows == [each.__name__.rpartition(".")[2] for each in doctor.known()]


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        made = machine({"environment": {"JAXOBS_PORT": port}}, tmp_path)
        [found] = said("ports", made)
        assert (found.severity, port in found.title) == ("warning", True)
    [found] = said("ports", made)
    assert found.severity == "ok"


def test_a_check_that_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = machine({}, tmp_path)
    monkeypatch.setattr("jaxobs.ops.doctor.checks.hugepages.FILE", None)
    found = list(doctor.examine(made))
    [failed] = [each for each in found if "failed" in each.title]
    assert (failed.id, failed.severity) == ("hugepages", "info")
    assert {each.id for each in found} == {each.__name__.rpartition(".")[2] for each in doctor.known()}
    assert {each.severity for each in found} <= set(LEVELS)


def test_who_holds_a_device_is_read_from_its_open_files(tmp_path: Path) -> None:
    made = machine({"on": "gpu", "files": {"/proc/7/cmdline": "python\0train.py\0"}}, tmp_path)
    for pid in (7, os.getpid()):
        (tmp_path / f"root/proc/{pid}/fd").mkdir(parents=True)
        (tmp_path / f"root/proc/{pid}/fd/4").symlink_to("/dev/nvidia0")
    assert made.holders == [Holder(7, "python train.py", "/dev/nvidia0")]


def test_versions_are_compared_by_their_numbers() -> None:
    assert release("0.10.2.dev20261101+abc") == (0, 10, 2)
    assert release("v580.65.06") == (580, 65, 6)
    assert release("x") == ()
