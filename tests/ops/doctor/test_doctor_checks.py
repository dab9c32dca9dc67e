"""Each check, with machines that are not here: what it finds, and what it leaves alone."""

from __future__ import annotations

import dataclasses
import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import ROOT

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.ops import doctor
from jaxobs.ops.doctor import probes
from jaxobs.ops.doctor.findings import LEVELS, Finding
from jaxobs.ops.doctor.machine import Holder, Machine, Package, release
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
AMD = {"/dev/kfd": "", "/dev/dri/renderD128": "", "/dev/dri/card0": ""}
GPU = {"/dev/nvidia0": "", "/dev/nvidia1": "", "/dev/nvidiactl": ""}
TPU = {"/dev/accel0": ""}


def gpu(used: float = 0.5, total: float = 80, model: str = "NVIDIA H100 80GB HBM3") -> AcceleratorState:
    return AcceleratorState(
        time=0.0, device="gpu:0", uuid="GPU-1", index=0, model=model, pci_bus_id="0", driver_version="580.65.06",
        memory_used_bytes=int(used * GIB), memory_total_bytes=int(total * GIB),
    )  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A machine, and what a check says of it: severity and a part of each title, worst first; empty if all is well."""

    check: str
    says: tuple[tuple[str, str], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=lambda: JAX)
    facts: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[Path], None] | None = None


def settings(**given: Any) -> Imported:
    return dataclasses.replace(FINE, settings={**FINE.settings, **given})


def cache(path: str = "cache/0.10.2", **given: Any) -> Imported:
    """JAX with a cache, relative to the working directory."""
    return settings(jax_compilation_cache_dir=path, **given)


def private(folder: Path) -> None:
    (folder / "cache/0.10.2").mkdir(parents=True, mode=0o700)


def broken(folder: Path) -> None:
    """A cache with an entry that was cut off."""
    private(folder)
    (folder / "cache/0.10.2" / f"jit_f-{'0' * 64}-cache").write_bytes(b"\x78\x9c12")


CASES = [
    Case("accelerator_plugins"),
    Case("accelerator_plugins", packages=CUDA),
    Case("accelerator_plugins", (("critical", "jax-cuda13-plugin 0.9.0 does not fit jaxlib 0.10.2"),),
         packages={**CUDA, "jax-cuda13-plugin": "0.9.0"}),
    Case("accelerator_plugins", (("critical", "installed without jax-cuda13-pjrt"),),
         packages={**JAX, "jax-cuda13-plugin": "0.10.2"}),
    Case("accelerator_plugins", (("critical", "Plugins for cuda12 and cuda13"),),
         packages={**CUDA, "jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.10.2"}),
    Case("accelerator_plugins", (("critical", "Two packages bring libtpu.so"),),
         packages={**JAX, "libtpu": "0.0.30", "libtpu-nightly": "0.1.dev2"}),
    Case("capabilities"),
    Case("capabilities", (("info", "not known"),), facts={"imported": Imported(trouble="x")}),
    Case("clock", facts={"now": 1_795_000_000.0}),
    Case("clock", (("critical", "The clock is wrong"),), facts={"now": 1000.0}),
    Case("compilation_cache", (("info", "no persistent compilation cache"),)),
    Case("compilation_cache", (("warning", "no persistent compilation cache"),), files=GPU),
    Case("compilation_cache", (("warning", "relative path"),), facts={"imported": cache()}, prepare=private),
    Case("compilation_cache", (("warning", "relative path"), ("warning", "broken entries")),
         facts={"imported": cache()}, prepare=broken),
    Case("compilation_cache", (("critical", "packages that reach it"),), facts={"imported": cache("s3://bucket/cache")}),
    Case("compilation_cache", (("critical", "cannot be made"),), facts={"imported": cache("/proc/none/cache")}),
    Case("compilation_cache", (("warning", "relative path"), ("info", "All versions")),
         facts={"imported": cache("new/folder")}),
    Case("compilation_cache", (("critical", "`filelock` is not installed"), ("warning", "relative path")),
         facts={"imported": cache(jax_compilation_cache_max_size=100)}, prepare=private),
    Case("compilation_cache", (("warning", "JAX recompiles every hit"), ("warning", "relative path")),
         facts={"imported": cache(jax_compilation_cache_check_contents=True)}, prepare=private),
    Case("compilation_cache", (("warning", "XLA's own caches"), ("warning", "relative path")),
         facts={"imported": cache(jax_persistent_cache_enable_xla_caches="all")}, prepare=private),
    Case("compilation_cache", (("warning", "relative path"), ("info", "less than 60 s")),
         facts={"imported": cache(jax_persistent_cache_min_compile_time_secs=60.0)}, prepare=private),
    Case("compilation_cache", (("warning", "relative path"), ("warning", "on a local disk")),
         {"JAX_NUM_PROCESSES": "4"}, {"/proc/mounts": "/dev/sda1 / ext4 rw 0 0"}, facts={"imported": cache()},
         prepare=private),
    Case("compilation_cache", (("warning", "relative path"),),
         {"JAX_NUM_PROCESSES": "4"}, {"/proc/mounts": "host:/x / nfs4 rw 0 0"}, facts={"imported": cache()},
         prepare=private),
    Case("cuda_driver"),
    Case("cuda_driver", packages=CUDA, files=GPU),
    Case("cuda_driver", (("critical", "too old for CUDA 13"),), packages=CUDA,
         files={**GPU, "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Kernel Module  535.104.05  Sat"}),
    Case("cuda_driver", (("warning", "LD_LIBRARY_PATH"),), {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64:"},
         {**GPU, "/usr/local/cuda/lib64/libcudnn.so.8": ""}, CUDA),
    Case("cuda_driver", (), {"LD_LIBRARY_PATH": "/opt/lib"}, {**GPU, "/opt/lib/libz.so": ""}, CUDA),
    Case("debug_options"),
    Case("debug_options", (("warning", "jax_debug_nans is on"),), facts={"imported": settings(jax_debug_nans=True)}),
    Case("debug_options", (("critical", "jax_disable_jit"),), facts={"imported": settings(jax_disable_jit=True)}),
    Case("debug_options", (("info", "jax_log_compiles"),), facts={"imported": settings(jax_log_compiles=True)}),
    Case("debug_options", (("warning", "CUDA_LAUNCH_BLOCKING"),), {"CUDA_LAUNCH_BLOCKING": "1"}),
    Case("debug_options", (), {"CUDA_LAUNCH_BLOCKING": "0", "NCCL_DEBUG": "WARN"}),
    Case("device_holders", files=GPU, facts={"holders": []}),
    Case("device_holders", (("warning", "Process 7 has /dev/nvidia0 open"),), files=GPU,
         facts={"holders": [Holder(7, "python train.py", "/dev/nvidia0")]}),
    Case("device_holders", (("critical", "Process 7 has /dev/accel0 open"),), files=TPU,
         facts={"holders": [Holder(7, "python train.py", "/dev/accel0")]}),
    Case("device_holders", (("critical", "lock file of libtpu"),), files=TPU,
         prepare=lambda folder: (folder / "libtpu_lockfile").touch()),
    Case("distributed"),
    Case("distributed", (),
         {"JAX_COORDINATOR_ADDRESS": "127.0.0.1:1", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}),
    Case("distributed", (("critical", "no process 2 in a job of 2"),),
         {"JAX_COORDINATOR_ADDRESS": "127.0.0.1:1", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "2"}),
    Case("distributed", (("critical", "JAX_PROCESS_ID is not a number"),), {"JAX_PROCESS_ID": "one"}),
    Case("distributed", (("warning", "no coordinator"),), {"JAX_NUM_PROCESSES": "2"}),
    Case("distributed", (("critical", "has no port"),), {"JAX_COORDINATOR_ADDRESS": "head"}),
    Case("distributed", (("critical", "has no address"),), {"JAX_COORDINATOR_ADDRESS": "no-such-host.invalid:1234"}),
    Case("distributed", (("critical", "loopback"),), {"JAX_COORDINATOR_ADDRESS": "127.0.0.1:1", "SLURM_NNODES": "2"}),
    Case("distributed", (("warning", "multislice"),), {"MEGASCALE_NUM_SLICES": "2"}),
    Case("file_limits", facts={"open_files": (65536, 65536)}),
    Case("file_limits", facts={"open_files": (-1, -1)}),
    Case("file_limits", (("warning", "Few files"),), facts={"open_files": (1024, 1048576)}),
    Case("gpu_memory"),
    Case("gpu_memory", files=GPU, facts={"gpus": [gpu()]}),
    Case("gpu_memory", (("critical", "GPU 0 has too little free memory"),), files=GPU, facts={"gpus": [gpu(40)]}),
    Case("gpu_memory", (), {"XLA_CLIENT_MEM_FRACTION": "0.4"}, GPU, facts={"gpus": [gpu(40)]}),
    Case("gpu_memory", (), {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, GPU, facts={"gpus": [gpu(40)]}),
    Case("gpu_memory", (("critical", "not a share"),), {"XLA_CLIENT_MEM_FRACTION": "75%"}, GPU),
    Case("gpu_memory", (("critical", "too little free"), ("warning", "more memory than a GPU has")),
         {"XLA_CLIENT_MEM_FRACTION": "1.5"}, GPU, facts={"gpus": [gpu()]}),
    Case("host_resources", facts={"cpus": 16}),
    Case("host_resources", (("warning", "Little host memory"),), facts={"cpus": 16},
         files={"/proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 600000 kB"}),
    Case("host_resources", (("warning", "Little host memory"),), facts={"cpus": 16},
         files={"/sys/fs/cgroup/memory.max": str(2 * GIB), "/sys/fs/cgroup/memory.current": str(GIB)}),
    Case("host_resources", (("warning", "swapped out"),), facts={"cpus": 16},
         files={"/proc/meminfo": HOST["/proc/meminfo"].replace("SwapTotal: 0", "SwapTotal: 60000000")}),
    Case("host_resources", (("warning", "Few CPUs"),), facts={"cpus": 16},
         files={"/sys/fs/cgroup/cpu.max": "50000 100000"}),
    Case("host_resources", (("info", "CPU quota"),), facts={"cpus": 16},
         files={"/sys/fs/cgroup/cpu.max": "400000 100000"}),
    Case("host_resources", (("warning", "next to its devices"),), facts={"cpus": 16}, files={
        "/sys/devices/system/node/node0/cpulist": "0-7", "/sys/devices/system/node/node1/cpulist": "8-15",
        "/proc/self/status": "Cpus_allowed_list:\t0-7", "/sys/bus/pci/devices/0000:81:00.0/vendor": "0x10de",
        "/sys/bus/pci/devices/0000:81:00.0/class": "0x030200", "/sys/bus/pci/devices/0000:81:00.0/numa_node": "1",
    }),
    Case("hugepages", files=TPU),
    Case("hugepages", (("info", "huge pages are off"),),
         files={**TPU, "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never"}),
    Case("jax_versions"),
    Case("jax_versions", (("critical", "jaxlib is not installed"),), packages={"jax": "0.10.2"}),
    Case("jax_versions", (("critical", "`import jax` fails"),), packages={**JAX, "jaxlib": "0.11.0"},
         facts={"imported": Imported(trouble="RuntimeError: jaxlib version 0.11.0 is newer than and incompatible")}),
    Case("jax_versions", (("critical", "`import jax` fails because of JAX_DEBUG_NANS"),), {"JAX_DEBUG_NANS": "maybe"},
         facts={"imported": Imported(trouble="ValueError: invalid truth value", variables=("JAX_DEBUG_NANS",))}),
    Case("jax_versions", (("warning", "imports another JAX"),),
         facts={"imported": dataclasses.replace(FINE, jax="0.9.0")}),
    Case("known_bad_versions"),
    Case("known_bad_versions", packages={"nvidia-cublas-cu12": "12.9.0"}, files=GPU, facts={"gpus": [gpu()]}),
    Case("known_bad_versions", (("critical", "nvidia-cublas-cu12 12.9.0"),), packages={"nvidia-cublas-cu12": "12.9.0"},
         files=GPU, facts={"gpus": [gpu(model="NVIDIA B200")]}),
    Case("known_bad_versions", (("warning", "nvidia-cuda-nvcc-cu12 12.4.131"),),
         packages={"nvidia-cuda-nvcc-cu12": "12.4.131"}, files=GPU, facts={"gpus": [gpu()]}),
    Case("known_bad_versions", (("critical", "nvidia-cudnn-cu12 9.8.0.87"),), files=GPU,
         packages={"nvidia-cudnn-cu12": "9.8.0.87", "nvidia-cublas-cu12": "12.9.1.4"}),
    Case("known_bad_versions", packages={"nvidia-cudnn-cu12": "9.8.0.87", "nvidia-cublas-cu12": "12.8.4.1"}, files=GPU),
    Case("known_bad_versions", (("warning", "nvidia-cudnn-cu12 9.10.0.56"),), files=GPU,
         packages={"nvidia-cudnn-cu12": "9.10.0.56"}),
    Case("known_bad_versions", (("info", "jax 0.8.0"), ("info", "jax 0.8.0")), packages={"jax": "0.8.0"}, files=GPU),
    Case("known_bad_versions", packages={"jax": "0.8.0"}),
    Case("launcher_variables"),
    Case("launcher_variables", (), {"JAX_DEBUG_NANS": "0", "JAX_MY_OWN": "1", "JAXOBS_PORT": "1"}),
    Case("launcher_variables", (("warning", "JAX_USE_PJRT_C_API_ON_TPU is set"),), {"JAX_USE_PJRT_C_API_ON_TPU": "1"}),
    Case("launcher_variables", (("warning", "ENABLE_PJRT_COMPATIBILITY"),), {"ENABLE_PJRT_COMPATIBILITY": "true"}),
    Case("launcher_variables", (("info", "XLA_PYTHON_CLIENT_MEM_FRACTION"),), {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".9"}),
    Case("launcher_variables", (("warning", "TPU_LIBRARY_PATH names"),), {"TPU_LIBRARY_PATH": "/lib/none.so"}),
    Case("launcher_variables", (("warning", "No setting of JAX is called JAX_DEBUG_NAN"),), {"JAX_DEBUG_NAN": "1"}),
    Case("launcher_variables", (("warning", "variable of jaxobs"),), {"JAXOBS_PROT": "1"}),
    Case("nccl"),
    Case("nccl", packages=CUDA, files=GPU),
    Case("nccl", (("critical", "NCCL is not installed"),), files=GPU,
         packages={name: version for name, version in CUDA.items() if "nccl" not in name}),
    Case("nccl", (("warning", "several CUDA generations"),), packages={**CUDA, "nvidia-nccl-cu12": "2.27.0"}),
    Case("ports", environment={"JAXOBS_PORT": str(free_port())}),
    Case("shared_memory", files={"/dev/shm/x": ""}, facts={"free_bytes": lambda _: (GIB, 8 * GIB)}),
    Case("shared_memory", (("warning", "no /dev/shm"),)),
    Case("shared_memory", (("info", "small"),), files={"/dev/shm/x": ""},
         facts={"free_bytes": lambda _: (GIB // 2, GIB // 2)}),
    Case("shared_memory", (("warning", "small"),), files={"/dev/shm/x": "", **GPU},
         facts={"free_bytes": lambda _: (64 * 2**20, 64 * 2**20)}),
    Case("silent_cpu"),
    Case("silent_cpu", packages=CUDA, files=GPU),
    Case("silent_cpu", (), {"JAX_PLATFORMS": "cpu"}),
    Case("silent_cpu", (("critical", "no plugin for `cuda`"),), files=GPU),
    Case("silent_cpu", (("critical", "no plugin for `tpu`"),), files=TPU),
    Case("silent_cpu", (("critical", "JAX_PLATFORMS asks for `cuda`"),), {"JAX_PLATFORMS": "cuda,cpu"}, packages=CUDA),
    Case("silent_cpu", (("warning", "JAX_PLATFORMS leaves out `cuda`"),), {"JAX_PLATFORMS": "cpu"}, GPU, CUDA),
    Case("silent_cpu", (("critical", "JAX_PLATFORM_NAME asks for `cuda`"),), {"JAX_PLATFORM_NAME": "gpu"}),
    Case("silent_cpu", (), {"JAX_PLATFORM_NAME": "gpu", "JAX_PLATFORMS": "cpu"}),
    Case("silent_cpu", packages={**JAX, "jax-rocm7-plugin": "0.10.2"}, files=AMD),
    Case("silent_cpu", (), {"JAX_PLATFORMS": "gpu"}, AMD, {**JAX, "jax-rocm7-plugin": "0.10.2"}),
    Case("silent_cpu", (("critical", "no plugin for `rocm`"),), files=AMD),
    Case("silent_cpu", (("critical", "JAX_PLATFORMS asks for `rocm`"),), {"JAX_PLATFORMS": "rocm,cpu"}),
    Case("silent_cpu", (("critical", "CUDA_VISIBLE_DEVICES hides"),), {"CUDA_VISIBLE_DEVICES": ""}, GPU, CUDA),
    Case("silent_cpu", (("critical", "no plugin for `tpu`"),), files={
        "/dev/vfio/0": "", "/sys/bus/pci/devices/0000:00:05.0/vendor": "0x1ae0",
    }),
    Case("silent_cpu", files={"/dev/vfio/0": "", "/sys/bus/pci/devices/0000:00:05.0/vendor": "0x10de"}),
    Case("switches"),
    Case("switches", (("info", "NVIDIA_TF32_OVERRIDE changes"),), {"NVIDIA_TF32_OVERRIDE": "0"}),
    Case("values"),
    Case("values", (("warning", "NCCL_NTHREADS has a value out"),), {"NCCL_NTHREADS": "100"}, GPU),
    Case("xla_flags"),
    Case("xla_flags", (), {"XLA_FLAGS": "--xla_gpu_enable_triton_gemm=false"}),
    Case("xla_flags", (("critical", "XLA does not know --xla_nope"),), {"XLA_FLAGS": "--xla_nope=1"},
         facts={"parsed": Parsed("Unknown flag in XLA_FLAGS: --xla_nope=1", ("--xla_nope=1",))}),
    Case("xla_flags", (("warning", "given 2 times"),), {"XLA_FLAGS": "--xla_a=1 --xla_a=2"}),
    Case("xla_flags", (("info", "--xla_dump_to is set"),), {"XLA_FLAGS": "--xla_dump_to=/tmp/x"}),
    Case("xla_flags", (("info", "CPU is divided"),), {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}, GPU),
    Case("xla_flags", (("info", "--xla_dump_to is set"),), {"XLA_FLAGS": "/etc/flags"},
         {"/etc/flags": "--xla_dump_to=x"}),
]  # fmt: skip


@pytest.mark.slow
def test_a_variable_that_keeps_jax_from_being_imported_is_found_by_a_trial(tmp_path: Path) -> None:
    bad, good = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "JAX_DEBUG_NANS"
    found = probes.import_jax({**os.environ, bad: "soon", good: "0"}, tmp_path)
    assert found.variables == (bad,)
    (tmp_path / "jax.py").write_text("raise OSError('broken')")
    assert probes.import_jax({**os.environ, good: "0"}, tmp_path).variables == ()


def test_a_flag_of_the_tpu_compiler_has_its_own_place(tmp_path: Path) -> None:
    flag = "--xla_tpu_x=1"
    parsed = Parsed(f"Unknown flag in XLA_FLAGS: {flag}", (flag,))
    [found] = said("xla_flags", machine(Case("", (), {"XLA_FLAGS": flag}, TPU, facts={"parsed": parsed}), tmp_path))
    assert found.fix == f'export XLA_FLAGS="" LIBTPU_INIT_ARGS="{flag}"'


def machine(case: Case, folder: Path) -> Machine:
    for name, text in {**HOST, **case.files}.items():
        path = folder / "root" / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    made = Machine({"TMPDIR": str(folder), **case.environment}, folder / "root", folder)
    facts = {
        "packages": tuple(Package(name, version, "/site") for name, version in case.packages.items()),
        "imported": FINE, "parsed": Parsed(), "gpus": "no library", "python": (3, 12, 0),
    }  # fmt: skip
    for name, value in {**facts, **case.facts}.items():
        setattr(made, name, value)
    if case.prepare is not None:
        case.prepare(folder)
    return made


def said(check: str, of: Machine) -> list[Finding]:
    [module] = [each for each in doctor.known() if each.__name__.endswith(f".{check}")]
    found = doctor.worst_first(module.check(of))
    assert found
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}-{case.says[0][1] if case.says else 'fine'}")
def test_what_a_check_says(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxobs.ops.doctor.checks.clock.is_synchronised", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = [each for each in said(case.check, machine(case, tmp_path)) if each.severity != "ok"]
    assert [(each.severity, part in each.title) for each, (_, part) in zip(found, case.says, strict=False)] == [
        (severity, True) for severity, _ in case.says
    ], [(each.severity, each.title) for each in found]
    assert len(found) == len(case.says), [each.title for each in found]
    assert all(each.evidence and (each.fix or each.severity == "info") for each in found)


def test_every_check_is_tried_in_health_and_in_fault() -> None:
    names = {each.__name__.rpartition(".")[2] for each in doctor.known()}
    assert {case.check for case in CASES if not case.says} | {"compilation_cache", "shared_memory"} >= names
    assert {case.check for case in CASES if case.says} | {"ports"} == names


def test_the_page_lists_every_check() -> None:
    page = (ROOT / "docs/doctor.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| [A-Z].+\. \|$", page.partition("## Checks")[2], re.MULTILINE)
    assert rows == [each.__name__.rpartition(".")[2] for each in doctor.known()]


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        made = machine(Case("ports", environment={"JAXOBS_PORT": port}), tmp_path)
        [found] = said("ports", made)
        assert (found.severity, port in found.title) == ("warning", True)
    [found] = said("ports", made)
    assert found.severity == "ok"


def test_a_check_that_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = machine(Case("clock"), tmp_path)
    monkeypatch.setattr("jaxobs.ops.doctor.checks.hugepages.FILE", None)
    found = list(doctor.examine(made))
    [failed] = [each for each in found if "failed" in each.title]
    assert (failed.id, failed.severity) == ("hugepages", "info")
    assert {each.id for each in found} == {each.__name__.rpartition(".")[2] for each in doctor.known()}
    assert {each.severity for each in found} <= set(LEVELS)


def test_who_holds_a_device_is_read_from_its_open_files(tmp_path: Path) -> None:
    made = machine(Case("device_holders", files={**GPU, "/proc/7/cmdline": "python\0train.py\0"}), tmp_path)
    for pid in (7, os.getpid()):
        (tmp_path / f"root/proc/{pid}/fd").mkdir(parents=True)
        (tmp_path / f"root/proc/{pid}/fd/4").symlink_to("/dev/nvidia0")
    assert made.holders == [Holder(7, "python train.py", "/dev/nvidia0")]


def test_versions_are_compared_by_their_numbers() -> None:
    assert release("0.10.2.dev20261101+abc") == (0, 10, 2)
    assert release("v580.65.06") == (580, 65, 6)
    assert release("x") == ()
