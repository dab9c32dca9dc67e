"""The library of the collectives between GPUs."""

from collections.abc import Iterator

from jaxobs.ops.doctor.machine import Finding, Machine, ok


def check(machine: Machine) -> Iterator[Finding]:
    """By packages and device files."""
    found = machine.versions(r"nvidia-nccl(-cu\d+)?")
    plugins = machine.versions(r"jax-cuda\d+-plugin")
    needs = bool(plugins) and (len(machine.nvidia_devices) > 1 or machine.is_distributed)
    generations = {name.split("-")[1].removeprefix("cuda") for name in plugins}
    if needs and not found and not _of_system(machine):
        generation = max(generations, default="12")
        yield Finding(
            severity="critical", title="NCCL is not installed", entity="nccl",
            evidence=f"{len(machine.nvidia_devices)} GPUs; no package nvidia-nccl, no libnccl.so in the library path",
            why="The first collective fails: `Unable to load NCCL library. Multi-GPU collectives will not work.`",
            fix=f'pip install -U "jax[cuda{generation}]"',
        )  # fmt: skip
    elif len(found) > 1:
        others = [name for name in found if not name.endswith(max(generations, default="12"))]
        yield Finding(
            severity="warning", title="NCCL is installed for several CUDA generations", entity="nccl",
            evidence=", ".join(f"{name} {version}" for name, version in found.items()),
            why="They share the directory nvidia/nccl: the one that was installed last is loaded.",
            fix=f"pip uninstall -y {' '.join(others)}",
        )  # fmt: skip
    else:
        have = ", ".join(f"{name} {version}" for name, version in found.items())
        yield ok("NCCL is installed once" if found else "NCCL is not needed", have or "one device, or no CUDA plugin")


def _of_system(machine: Machine) -> bool:
    folders = [*machine.environment.get("LD_LIBRARY_PATH", "").split(":"), "/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
    return any(machine.names(each, r"libnccl\.so.*") for each in folders if each)
