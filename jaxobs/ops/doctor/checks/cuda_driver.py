"""NVIDIA's driver and libraries against the plugin that JAX has."""

import re
from collections.abc import Iterator

from jaxobs.ops.doctor.machine import Finding, Machine, listed, ok, release

LEAST_DRIVER = {"12": 525, "13": 580}
"""By CUDA generation: https://docs.jax.dev/en/latest/installation.html#nvidia-gpu."""
_LIBRARIES = re.compile(r"lib(cudart|cublas|cudnn|cusparse|cufft|cusolver|nccl|cupti)[\w.]*\.so.*")


def check(machine: Machine) -> Iterator[Finding]:
    """By the driver's own file in /proc, and by the directories of `LD_LIBRARY_PATH`."""
    plugins = machine.versions(r"jax-cuda\d+-plugin")
    driver = _driver(machine)
    worst = True
    for name in plugins:
        generation = re.sub(r"\D", "", name)
        least = LEAST_DRIVER.get(generation)
        if driver is not None and least is not None and release(driver)[0] < least:
            worst = False
            yield Finding(
                severity="critical", title=f"The driver is too old for CUDA {generation}", entity="driver",
                evidence=f"driver {driver}; {name} needs {least} or newer",
                why="JAX cannot initialize the GPU, and runs on the CPU.",
                fix=f"Install driver {least} or newer"
                + (', or: pip install -U "jax[cuda12]"' if generation != "12" and release(driver)[0] >= 525 else ""),
            )  # fmt: skip
    for folder in filter(None, machine.environment.get("LD_LIBRARY_PATH", "").split(":")):
        found = [each.rpartition("/")[2] for each in machine.names(folder, _LIBRARIES.pattern)]
        if found and plugins:
            worst = False
            yield Finding(
                severity="warning", title="LD_LIBRARY_PATH puts other CUDA libraries before JAX's", entity=folder,
                evidence=f"{folder} has {listed(found, 4)}",
                why="An older cuDNN, cuBLAS or cuSPARSE is loaded first, and the CUDA backend fails.",
                fix="unset LD_LIBRARY_PATH",
            )  # fmt: skip
    if not plugins:
        yield ok("No CUDA plugin, no driver needed", "jax-cuda*-plugin is not installed")
    elif worst:
        yield ok("The driver fits the plugin", f"driver {driver or 'is not loaded'}; {', '.join(plugins)}")


def _driver(machine: Machine) -> str | None:
    """Returns the version of the kernel module; None if none is loaded."""
    text = machine.read("/proc/driver/nvidia/version") or ""
    matched = re.search(r"Kernel Module[^\n]*?\s(\d+\.\d+(?:\.\d+)*)\s", text)
    if matched:
        return matched[1]
    gpus = machine.gpus
    return None if isinstance(gpus, str) or not gpus else gpus[0].driver_version
