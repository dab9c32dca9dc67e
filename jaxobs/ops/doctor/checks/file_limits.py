"""How many files a process may open."""

from collections.abc import Iterator

from jaxobs.ops.doctor.machine import Finding, Machine, ok

FEW = 4096
"""Orbax and Grain open a file for each shard and each worker; NCCL several sockets for each peer."""


def check(machine: Machine) -> Iterator[Finding]:
    """By the limit of this process, which the job inherits."""
    soft, hard = machine.open_files
    text = f"soft limit {soft:,}, hard limit {'none' if hard < 0 else f'{hard:,}'}"
    if 0 <= soft < FEW:
        room = FEW * 16 if hard < 0 else min(hard, FEW * 16)
        yield Finding(
            severity="warning", title="Few files may be open at once", entity="RLIMIT_NOFILE", evidence=text,
            why="Loaders and checkpoints with many files die of `Too many open files`.",
            fix=f"ulimit -n {room}" if room > soft else "Raise LimitNOFILE= of the service, or nofile in limits.conf",
        )  # fmt: skip
    else:
        yield ok("Enough files may be open", text)
