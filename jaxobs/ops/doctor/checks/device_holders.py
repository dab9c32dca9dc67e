"""Accelerators that another process holds."""

from collections.abc import Iterator

from jaxobs.ops.doctor.machine import Finding, Machine, ok

LOCK_FILE = "libtpu_lockfile"


def check(machine: Machine) -> Iterator[Finding]:
    """By the open files of all processes that this user may look at."""
    holders = machine.holders
    for holder in holders:
        tpu = holder.device in machine.tpu_devices
        yield Finding(
            severity="critical" if tpu else "warning",
            title=f"Process {holder.pid} has {holder.device} open", entity=holder.device,
            evidence=f"pid {holder.pid}: {holder.command}",
            why="One process alone can use a TPU: JAX fails, or runs on the CPU." if tpu else
            "Both preallocate memory: the second one runs out of memory, or does not start.",
            fix=f"kill {holder.pid}   # if nobody needs it",
        )  # fmt: skip
    lock = machine.temporary / LOCK_FILE
    if machine.tpu_devices and lock.exists() and not holders:
        yield Finding(
            severity="critical", title="A lock file of libtpu is left over", entity=str(lock),
            evidence=f"{lock} exists, and no process that this user may see has a TPU open",
            why="libtpu believes that another process holds the TPU, and JAX runs on the CPU.", fix=f"rm {lock}",
        )  # fmt: skip
    devices = [*machine.nvidia_devices, *machine.tpu_devices]
    if not holders:
        yield ok("No other process holds an accelerator", f"{len(devices)} device files, all processes of this user")
