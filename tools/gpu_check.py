"""Checks jaxobs on this machine's NVIDIA GPU, and writes down what was measured.

python -m tools.gpu_check --markdown docs/gpu.md     (make gpu)

Each check runs in a process of its own. It needs JAX with CUDA and `nvidia-ml-py`.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.memory import DeviceState
from tools.gpu_figures import Line, judge_busy, judge_memory, judge_out_of_memory

ROOT = Path(__file__).parent.parent
HELD = 2**30
SIDE = 8192
IDLE_SECONDS, BUSY_SECONDS = 3.0, 8.0
_NOT_PREALLOCATED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


# ------------------------------------------------------------------------------------------------ on the device


def _memory() -> list[Line]:
    before = _used_before()
    name = _watched()
    import jax

    array = jax.block_until_ready(jax.numpy.ones(HELD // 4, jax.numpy.float32))
    device, driver = _sampled(name)
    del array
    preallocated = os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "true").lower() != "false"
    return judge_memory(device, driver, HELD, before, preallocated)


def _too_large() -> list[Line]:
    """Asks for one array of twice the device's memory."""
    name = _watched()
    import jax

    import jaxobs

    limit = _limit(name)
    _fails(lambda: jax.jit(lambda: jax.numpy.ones(2 * limit // 4, jax.numpy.float32))())
    return judge_out_of_memory(
        jaxobs.snapshot().last_out_of_memory, name, 2 * limit, ("absurd_request", "program_too_large")
    )


def _filled() -> list[Line]:
    """A list that grows until nothing is left."""
    name = _watched()
    import jax

    import jaxobs

    size = _limit(name) // 32
    make, kept = jax.jit(lambda: jax.numpy.ones(size // 4, jax.numpy.float32)), []

    def fill() -> None:
        for _ in range(64):
            kept.append(jax.block_until_ready(make()))

    _fails(fill)
    lines = judge_out_of_memory(
        jaxobs.snapshot().last_out_of_memory, name, size, ("leaked_arrays", "live_arrays", "fragmentation")
    )
    count = len(kept)
    return [*lines, Line("arrays that fitted, of a 32nd each", str(count), "25 to 32", 25 <= count <= 32)]


def _busy() -> list[Line]:
    name = _watched()
    import jax

    product = jax.jit(lambda x: x @ x)
    x = jax.block_until_ready(jax.numpy.full((SIDE, SIDE), 1e-4, jax.numpy.bfloat16))
    x = jax.block_until_ready(product(x))
    idle = _followed(name, IDLE_SECONDS, lambda: time.sleep(0.2))
    count = 0

    def work() -> None:
        nonlocal x, count
        for _ in range(50):
            x = product(x)
        jax.block_until_ready(x)
        count += 50

    started = time.perf_counter()
    busy = _followed(name, BUSY_SECONDS, work)
    rate = count * 2 * SIDE**3 / (time.perf_counter() - started) / 1e12
    # The driver tells of a period that lies behind: the first second of work is not all in it.
    late = [each for each in busy if each.time - busy[0].time > 2.0]
    lines = judge_busy(idle, late)
    return [*lines, Line("products of bfloat16 matrices", f"{rate:.0f} TFLOP/s", "any", rate > 0)]


def _followed(name: str, seconds: float, work: Callable[[], None]) -> list[AcceleratorState]:
    """The driver's states of a device while `work` is done again and again."""
    found: list[AcceleratorState] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        work()
        state = _sampled(name)[1]
        if not found or state.time > found[-1].time:
            found.append(state)
    return found


def _watched() -> str:
    """Installs jaxobs, wakes JAX and names its first GPU.

    Raises:
      SystemExit: there is none.
    """
    import jax

    import jaxobs

    jaxobs.install(sample_interval=3600, flight_recorder=tempfile.mkdtemp(prefix="jaxobs-gpu-"))
    try:
        device = jax.devices("gpu")[0]
    except RuntimeError as error:
        raise SystemExit(f"No GPU that JAX can use: {error}\n{_advice()}") from None
    return f"{device.platform}:{device.id}"


def _advice() -> str:
    return f'JAX for NVIDIA GPUs: pip install "jax[cuda12]=={importlib.metadata.version("jax")}" nvidia-ml-py'


def _sampled(name: str) -> tuple[DeviceState, AcceleratorState]:
    """JAX's and the driver's state of a device, both read after now."""
    import jaxobs
    from jaxobs.session import lifecycle

    began, until = time.time(), time.monotonic() + 10.0
    while True:
        if lifecycle._session is not None:  # by itself it samples rarely: the first sample is dear
            lifecycle._session.sample()
        snapshot = jaxobs.snapshot()
        devices = [each for each in snapshot.devices if each.device == name]
        drivers = [each for each in snapshot.accelerators if each.device == name and each.time >= began]
        if drivers and devices and devices[0].memory is not None and devices[0].memory.time >= began:
            return devices[0], drivers[0]
        if time.monotonic() > until:
            raise SystemExit(f"Nobody tells of {name}. {' '.join(snapshot.observer.notes)}")
        time.sleep(0.02)


def _used_before() -> int | None:
    """Bytes in use on the first device before JAX takes any; None where several are there, or none."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        if pynvml.nvmlDeviceGetCount() != 1:
            return None
        return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used)
    finally:
        pynvml.nvmlShutdown()


def _limit(name: str) -> int:
    memory = _sampled(name)[0].memory
    if memory is None or memory.limit_bytes is None:
        raise SystemExit(f"JAX's allocator tells no limit of {name}")
    return memory.limit_bytes


def _fails(call: Callable[[], Any]) -> None:
    try:
        call()
    except Exception as error:
        if "RESOURCE_EXHAUSTED" in str(error):
            return
        raise
    raise SystemExit("The device had more memory than its limit: nothing ran out")


CHECKS: Mapping[str, tuple[Callable[[], list[Line]], Mapping[str, str]]] = {
    "memory": (_memory, {}),
    "memory_on_demand": (_memory, _NOT_PREALLOCATED),
    "too_large": (_too_large, {}),
    "too_large_on_demand": (_too_large, _NOT_PREALLOCATED),
    "filled": (_filled, {}),
    "filled_on_demand": (_filled, _NOT_PREALLOCATED),
    "busy": (_busy, {}),
}
"""By name: the check, and its variables. `on_demand` is without preallocation."""
TITLES = {
    "memory": "In use and limit, against the driver",
    "memory_on_demand": "The same without preallocation",
    "too_large": "Out of memory: one array of twice what there is",
    "too_large_on_demand": "The same without preallocation",
    "filled": "Out of memory: a list that grows",
    "filled_on_demand": "The same without preallocation",
    "busy": "Power and utilization while a matrix product runs",
}


def run(name: str) -> list[Line]:
    """Runs one check in a process of its own.

    Raises:
      RuntimeError: the check ended with an error; with its output.
    """
    removed = ("JAX_PLATFORMS", "XLA_FLAGS", "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION")
    environment = {key: value for key, value in os.environ.items() if key not in removed} | dict(CHECKS[name][1])
    command = [sys.executable, "-m", "tools.gpu_check", "--here", name]

    try:
        ran = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"Check `{name}` did not end within 300 seconds.") from None
    if ran.returncode != 0:
        raise RuntimeError(f"Check `{name}` ended with code {ran.returncode}:\n{ran.stderr[-4000:]}")
    return [Line(**each) for each in json.loads(ran.stdout.splitlines()[-1])]


def gpu_at_hand() -> str | None:
    """None where JAX has an NVIDIA GPU; else why not. Asks JAX only where a driver is loaded."""
    if not Path("/proc/driver/nvidia/version").exists() and not Path("/dev/nvidiactl").exists():
        return "no NVIDIA driver is loaded here"
    environment = {key: value for key, value in os.environ.items() if key not in ("JAX_PLATFORMS", "XLA_FLAGS")}
    ask = "import jax, pynvml; print(jax.devices('gpu'))"
    ran = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=False)
    return None if ran.returncode == 0 else f"{ran.stderr.strip().splitlines()[-1:]}. {_advice()}"


def page(found: Mapping[str, list[Line]], about: Mapping[str, str]) -> str:
    """Returns the results as a page of Markdown."""
    parts = [
        "# On a GPU\n",
        "Written by `python -m tools.gpu_check --markdown docs/gpu.md` (`make gpu`); do not edit.\n",
        "".join(f"- {what}: {value}\n" for what, value in about.items()),
    ]
    for name, lines in found.items():
        rows = [f"| {each.what} | {each.found} | {each.expected} | {'yes' if each.holds else 'NO'} |" for each in lines]
        parts.append(f"## {TITLES[name]}\n")
        parts.append("\n".join(["| | found | expected | holds |", "|---|---:|---:|---|", *rows]) + "\n")
    return "\n".join(parts)


def machine() -> dict[str, str]:
    """The GPU, the driver and the versions."""
    try:
        command = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        gpu = "; ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
    except (OSError, subprocess.CalledProcessError):
        gpu = "unknown (no `nvidia-smi`)"
    versions = {}
    for package in ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "nvidia-ml-py"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"GPU, driver, memory": gpu, "python": platform.python_version(), **versions, "date": date}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line, checks, and prints; 1 when something is not as it should be, 2 without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m tools.gpu_check", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(CHECKS)} (default: all)")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write what was found as a page")
    parser.add_argument("--here", metavar="NAME", choices=list(CHECKS), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(CHECKS))
    if unknown:
        parser.error(f"unknown check `{unknown[0]}`; there are {', '.join(CHECKS)}")
    if options.here:
        print(json.dumps([dataclasses.asdict(line) for line in CHECKS[options.here][0]()]))
        return 0
    if (reason := gpu_at_hand()) is not None:
        print(f"Nothing was checked: {reason}.", file=sys.stderr)
        return 2
    found: dict[str, list[Line]] = {}
    failed = False
    for name in options.names or CHECKS:
        try:
            found[name] = run(name)
        except RuntimeError as error:
            found[name] = [Line("the check itself", str(error).splitlines()[0], "to end", False)]
            print(error, file=sys.stderr)
        for line in found[name]:
            print(f"{'ok  ' if line.holds else 'OVER'} {name:20} {line.what}: {line.found}  (expected {line.expected})")
            failed = failed or not line.holds
    if options.markdown:
        options.markdown.write_text(page(found, machine()))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
