"""`XLA_FLAGS`: a flag that XLA does not know aborts the process when it first uses a device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jaxobs.operations.doctor.findings import Finding, ok
from jaxobs.operations.doctor.machine import Machine

ABOUT = "Whether XLA knows the flags in XLA_FLAGS; flags that slow a job down; and flags given twice."

FORCED = "--xla_force_host_platform_device_count"
SLOW = {
    "--xla_dump_to": "It writes every compiled program to disk.",
    "--xla_backend_optimization_level=0": "It turns the optimisations off.",
    "--xla_gpu_autotune_level=0": "It turns autotuning off: matrix products and convolutions use default kernels.",
    "--xla_gpu_deterministic_ops=true": "Deterministic kernels are slower, some much so.",
    "--xla_gpu_exclude_nondeterministic_ops=true": "Deterministic kernels are slower, some much so.",
}


def check(machine: Machine) -> Iterator[Finding]:
    """Has XLA read them, on the CPU and in a process of its own."""
    flags = machine.flags
    if not flags:
        yield ok("XLA_FLAGS is empty", "XLA's defaults hold")
        return
    if machine.parsed.unknown:
        known = [each for each in flags if each not in machine.parsed.unknown]
        for flag in machine.parsed.unknown:
            for_tpu = flag.startswith("--xla_tpu_")
            moved = f' LIBTPU_INIT_ARGS="{flag}"' if for_tpu and machine.tpu_devices else ""
            yield Finding(
                severity="critical", title=f"XLA does not know {flag.partition('=')[0]}", entity="XLA_FLAGS",
                evidence=f"Unknown flag in XLA_FLAGS: {flag}",
                why="The process aborts at its first use of a device: "
                + ("flags of the TPU compiler belong into LIBTPU_INIT_ARGS." if for_tpu
                   else "the flag was removed, or is for another build."),
                fix=f'export XLA_FLAGS="{" ".join(known)}"{moved}',
            )  # fmt: skip
    elif machine.parsed.trouble is not None and machine.imported.trouble is None:
        yield Finding(
            severity="warning", title="A CPU client with these flags cannot be made", entity="XLA_FLAGS",
            evidence=machine.parsed.trouble.splitlines()[-1], why="The job may die at its first use of a device.",
            fix="Leave flags out one by one: XLA_FLAGS= jaxobs doctor",
        )  # fmt: skip
    found = False
    for name, count in Counter(each.partition("=")[0] for each in flags).items():
        if count > 1:
            found = True
            values = " ".join(each for each in flags if each.partition("=")[0] == name)
            yield Finding(
                severity="warning", title=f"{name} is given {count} times", entity="XLA_FLAGS", evidence=values,
                why="The last one holds, and each spelling has its own entries in the persistent cache.",
                fix=f"Keep one {name}",
            )  # fmt: skip
    for each in flags:
        slow = next((why for flag, why in SLOW.items() if each.lower().startswith(flag)), None)
        if slow is not None:
            found = True
            yield Finding(
                severity="info", title=f"{each.partition('=')[0]} is set", entity="XLA_FLAGS", evidence=each, why=slow,
                fix="Leave it out, unless it is meant",
            )  # fmt: skip
        if each.startswith(FORCED) and (machine.nvidia_devices or machine.tpu_devices):
            found = True
            yield Finding(
                severity="info", title="The CPU is divided into several devices", entity="XLA_FLAGS", evidence=each,
                why="It is meant for tests without an accelerator.", fix=f"Leave {FORCED} out",
            )  # fmt: skip
    if machine.parsed.trouble is None and not found:
        yield ok("XLA takes its flags", " ".join(flags))
