"""An accelerator that is here, and a program that would run on the CPU without a word."""

from collections.abc import Iterator, Mapping

from jaxobs.ops.doctor import shell
from jaxobs.ops.doctor.machine import Finding, Machine, listed, ok

_NO_BACKEND = "JAX skips the platform without a message when JAX_PLATFORMS is set, and runs on the CPU."
KNOWN = ("cpu", "cuda", "gpu", "rocm", "tpu")
"""Platforms that JAX brings along, as it spells them: it takes names as they are, with their spaces."""
_ELSEWHERE = ("metal", "proxy")
"""Platforms of well-known packages that register them in their own way."""
_GIVE = {
    "cuda": "`docker run --gpus all`, or the resource `nvidia.com/gpu`",
    "rocm": "`docker run --device /dev/kfd --device /dev/dri`, or the resource `amd.com/gpu`",
    "tpu": "`docker run --privileged`, or the resource `google.com/tpu`",
}


def check(machine: Machine) -> Iterator[Finding]:
    """By device files, installed plugins and the variables that choose a platform. Nothing is initialized."""
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
    plugins = {"cuda": has_cuda, "rocm": has_rocm, "tpu": has_libtpu}
    for finding in (*_unknown(machine), *_nothing_for(machine, plugins)):
        before = False
        yield finding
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


def _unknown(machine: Machine) -> Iterator[Finding]:
    """Names that no platform has."""
    variable = machine.platform_variable
    given = machine.environment.get(variable, "")
    known = {*KNOWN, *_ELSEWHERE, *machine.added_platforms}
    wrong = [each for each in given.split(",") if each and each not in known and each.lower() not in _ELSEWHERE]
    if not wrong or not given.strip():
        return
    meant = [each.strip().lower() for each in given.split(",")]
    meant = [each for each in meant if each in known]
    yield Finding(
        severity="critical", title=f"JAX knows no platform {wrong[0]!r}", entity=variable,
        evidence=f"{variable}={given!r}; known: {', '.join(sorted(known))}",
        why="The program fails when it first uses a device: names are compared letter by letter.",
        fix=shell.export(variable, ",".join(meant)) if meant else shell.unset(variable),
    )  # fmt: skip


def _nothing_for(machine: Machine, plugins: Mapping[str, bool]) -> Iterator[Finding]:
    """Yields a plugin whose device is not here, and nothing says that the CPU is meant."""
    here = machine.nvidia_devices or machine.amd_devices or machine.tpu_devices
    installed = [name for name, is_there in plugins.items() if is_there]
    if here or machine.platforms or not installed:
        return
    if installed == ["tpu"] and not machine.versions(r"libtpu(-nightly)?"):
        return  # A variable alone: `launcher_variables` reports it.
    yield Finding(
        severity="warning", title=f"JAX has a plugin for `{installed[0]}`, but no accelerator is here",
        entity=installed[0], evidence=f"plugin for {' and '.join(installed)} installed; no device file in /dev",
        why="The job runs on the CPU, many times slower.",
        fix=f"Give the container the devices ({_GIVE[installed[0]]}); if the CPU is meant: export JAX_PLATFORMS=cpu",
    )  # fmt: skip
