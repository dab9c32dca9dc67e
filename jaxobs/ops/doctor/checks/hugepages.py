"""Transparent huge pages, on hosts of TPUs."""

from collections.abc import Iterator

from jaxobs.ops.doctor.machine import Finding, Machine, ok

FILE = "/sys/kernel/mm/transparent_hugepage/enabled"


def check(machine: Machine) -> Iterator[Finding]:
    """By the kernel's setting; JAX warns of the same at the first use (jax/_src/cloud_tpu_init.py)."""
    text = machine.read(FILE)
    if not machine.tpu_devices:
        yield ok("No TPU, no huge pages needed", text or "not known")
    elif text is not None and "[always]" not in text:
        yield Finding(
            severity="info", title="Transparent huge pages are off", entity=FILE, evidence=text,
            why="The TPU runtime takes longer to start and to stop on v5e and newer.",
            fix=f"sudo sh -c 'echo always > {FILE}'",
        )  # fmt: skip
    else:
        yield ok("Transparent huge pages are on", text or "not known")
