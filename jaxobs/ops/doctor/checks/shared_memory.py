"""`/dev/shm`, through which loaders' workers and NCCL pass data."""

from collections.abc import Iterator

from jaxobs.ops.doctor.machine import Finding, Machine, ok
from jaxobs.views.terminal.text import size

SMALL = 2**30
LEAST_FREE = 2**28


def check(machine: Machine) -> Iterator[Finding]:
    """By the size of its file system."""
    found = machine.free_bytes(machine.path("/dev/shm")) if machine.path("/dev/shm").exists() else None
    why = "Workers of a data loader die of a bus error, and NCCL fails to start (`unhandled system error`)."
    fix = "docker run --shm-size=16g, or in Kubernetes an emptyDir with medium: Memory on /dev/shm"
    if found is None:
        yield Finding(
            severity="warning", title="There is no /dev/shm", entity="/dev/shm", evidence="it does not exist", why=why,
            fix=fix,
        )  # fmt: skip
        return
    free, whole = found
    text = f"{size(free)} of {size(whole)} are free"
    matters = len(machine.nvidia_devices) > 1 or machine.is_distributed
    if whole < SMALL or free < LEAST_FREE:
        yield Finding(
            severity="warning" if matters or free < LEAST_FREE else "info", title="/dev/shm is small",
            entity="/dev/shm", evidence=text, why=why,
            fix=fix if whole < SMALL else "ls -l /dev/shm   # what is left over",
        )  # fmt: skip
    else:
        yield ok("/dev/shm is large enough", text, "/dev/shm")
