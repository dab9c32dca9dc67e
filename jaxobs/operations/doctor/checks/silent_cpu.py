"""An accelerator that is here, and a program that would run on the CPU without a word."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.operations.doctor.findings import Finding, ok
from jaxobs.operations.doctor.machine import Machine, listed

ABOUT = "Whether JAX would fall back to the CPU although an accelerator is here, or was asked for."

_NO_BACKEND = "JAX skips the platform without a message when JAX_PLATFORMS is set, and runs on the CPU."
_GIVE = {
    "cuda": "`docker run --gpus all`, or the resource `nvidia.com/gpu`",
    "rocm": "`docker run --device /dev/kfd --device /dev/dri`, or the resource `amd.com/gpu`",
    "tpu": "`docker run --privileged`, or the resource `google.com/tpu`",
}


def check(machine: Machine) -> Iterator[Finding]:
    """By device files, installed plugins and the variables that choose a platform. Nothing is initialised."""
    platforms, variable = machine.platforms, machine.platform_variable
    gpus, amd, tpus = machine.nvidia_devices, machine.amd_devices, machine.tpu_devices
    has_cuda = bool(machine.versions(r"jax-cuda\d+-plugin"))
    has_rocm = bool(machine.versions(r"jax-rocm\d+-plugin"))
    has_libtpu = bool(machine.versions(r"libtpu(-nightly)?")) or bool(machine.environment.get("TPU_LIBRARY_PATH"))
    value = f"{variable}={machine.environment.get(variable)}"
    any_gpu = "rocm" if amd and not gpus else "cuda"
    before = True
    for name, devices, installed, extra in (
        ("cuda", gpus, has_cuda, "cuda13"), ("rocm", amd, has_rocm, "rocm7-local"), ("tpu", tpus, has_libtpu, "tpu"),
    ):  # fmt: skip
        asked = name in platforms or (name == any_gpu and "gpu" in platforms)
        if devices and not installed:
            before = False
            yield Finding(
                severity="critical" if asked or not platforms else "info",
                title=f"An accelerator is here, but JAX has no plugin for `{name}`", entity=name,
                evidence=f"{listed(devices)}; no package of `jax[{extra}]` is installed",
                why="The job runs on the CPU, many times slower.", fix=f'pip install -U "jax[{extra}]"',
            )  # fmt: skip
        elif asked and not devices:
            before = False
            rest = [each for each in platforms if each not in ("cuda", "rocm", "gpu", "tpu")]
            yield Finding(
                severity="critical", title=f"{variable} asks for `{name}`, but no such device is here",
                entity=variable, evidence=f"{value}; no device file in /dev",
                why=_NO_BACKEND if rest else "The program fails when it first uses a device.",
                fix=f"Give the container the devices ({_GIVE[name]}), or change {variable}",
            )  # fmt: skip
        elif devices and platforms and not asked:
            before = False
            yield Finding(
                severity="warning", title=f"{variable} leaves out `{name}`, although it is here",
                entity=variable, evidence=f"{value}; {listed(devices)}",
                why="The job does not use the accelerator.", fix=f"unset {variable}",
            )  # fmt: skip
    hidden = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if gpus and hidden is not None and hidden.strip() in ("", "-1", "NoDevFiles"):
        before = False
        yield Finding(
            severity="critical", title="CUDA_VISIBLE_DEVICES hides all GPUs", entity="CUDA_VISIBLE_DEVICES",
            evidence=f"CUDA_VISIBLE_DEVICES={hidden!r}; {listed(gpus)}", why=_NO_BACKEND,
            fix="unset CUDA_VISIBLE_DEVICES",
        )  # fmt: skip
    if before:
        here = f"{listed([*gpus, *amd, *tpus])} and its plugin" if gpus or amd or tpus else "no accelerator in /dev"
        yield ok("JAX finds what is here", here)
