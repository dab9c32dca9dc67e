"""Preallocation on GPUs: what is asked for against what is free."""

from collections.abc import Iterator

from jaxobs.ops.doctor.machine import Finding, Machine, ok
from jaxobs.views.terminal.text import size

DEFAULT_FRACTION = 0.75
"""Share of a GPU's memory (https://docs.jax.dev/en/latest/gpu_memory_allocation.html)."""
OLD, NEW = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"


def check(machine: Machine) -> Iterator[Finding]:
    """By the variables, and by what the driver says is free."""
    fraction = DEFAULT_FRACTION
    for name in (OLD, NEW):
        try:
            given = machine.number(name)
        except ValueError:
            yield _invalid(name, machine.environment[name], "it is not a number")
            return
        if given is not None and not given > 0.0:
            yield _invalid(name, machine.environment[name], "it must be larger than 0")
            return
        fraction = fraction if given is None else given
    if fraction > 1.0 and machine.nvidia_devices:
        yield Finding(
            severity="warning", title="JAX may take more memory than a GPU has", entity=NEW,
            evidence=f"the fraction is {fraction:g}; XLA_CLIENT_MEM_FRACTION is a share of 1", fix=f"export {NEW}=0.9",
            why="Above 1, XLA uses unified memory: what does not fit is fetched over PCIe at each use, very slowly.",
        )  # fmt: skip
    if isinstance(machine.gpus, str) or not machine.gpus:
        reason = machine.gpus if isinstance(machine.gpus, str) else "the driver shows none"
        yield ok("No GPU's memory to look at", reason)
        return
    preallocates = machine.environment.get("XLA_PYTHON_CLIENT_PREALLOCATE", "true").lower() not in ("false", "0")
    short = False
    for gpu in machine.gpus:
        if gpu.memory_total_bytes is None or gpu.memory_used_bytes is None:
            continue
        total, wanted = gpu.memory_total_bytes, int(fraction * gpu.memory_total_bytes)
        free = total - gpu.memory_used_bytes
        if preallocates and wanted > free:
            short = True
            share = max(0.05, int(free / total * 20) / 20 - 0.05)
            yield Finding(
                severity="critical", title=f"GPU {gpu.index} has too little free memory to preallocate",
                entity=gpu.device,
                evidence=f"JAX takes {fraction:.0%} of {size(total)} = {size(wanted)}; free: {size(free)}",
                why="The program fails when it first uses the GPU, or with RESOURCE_EXHAUSTED soon after.",
                fix=f"export {NEW}={share:.2f}, or XLA_PYTHON_CLIENT_PREALLOCATE=false, or end what uses the memory",
            )  # fmt: skip
    if not short and fraction <= 1.0:
        how = f"{fraction:.0%} is preallocated" if preallocates else "nothing is preallocated"
        yield ok("GPU memory is free", f"{len(machine.gpus)} GPUs; {how}")


def _invalid(name: str, value: str, reason: str) -> Finding:
    return Finding(
        severity="critical", title=f"{name} is not a share of memory", entity=name,
        evidence=f"{name}={value!r}: {reason}", why="The program fails when it first uses the GPU.",
        fix=f"export {name}=0.75",
    )  # fmt: skip
