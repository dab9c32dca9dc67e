"""`XLA_FLAGS`: a flag that XLA does not know aborts the process when it first uses a device."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from jaxobs.ops.doctor import shell
from jaxobs.ops.doctor.machine import Finding, Machine, ok

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
    named = machine.environment.get("XLA_FLAGS", "").strip()
    if named and not named.startswith("-") and machine.read(str(machine.directory / named)) is None:
        meant = [each if each.startswith("-") else f"--{each}" for each in named.split()]
        yield Finding(
            severity="critical", title="XLA_FLAGS names a file that cannot be read", entity="XLA_FLAGS",
            evidence=f"XLA_FLAGS={named}", why="XLA takes what does not begin with `--` for the name of a file with "
            "flags, and aborts the process at its first use of a device.",
            fix=f"export XLA_FLAGS={shell.words(' '.join(meant))}" if all(each.startswith("--xla") for each in meant)
            else "unset XLA_FLAGS",
        )  # fmt: skip
        return
    if not flags:
        yield ok("XLA_FLAGS is empty", "XLA's defaults hold")
        return
    if machine.parsed.unknown:
        known = _without(flags, machine.parsed.unknown)
        for flag in machine.parsed.unknown:
            for_tpu = flag.startswith("--xla_tpu_")
            moved = f" LIBTPU_INIT_ARGS={shell.words(flag)}" if for_tpu and machine.tpu_devices else ""
            yield Finding(
                severity="critical", title=f"XLA does not know {flag.partition('=')[0]}", entity="XLA_FLAGS",
                evidence=f"Unknown flag in XLA_FLAGS: {flag}",
                why="The process aborts at its first use of a device: "
                + ("flags of the TPU compiler belong into LIBTPU_INIT_ARGS." if for_tpu
                   else "the flag was removed, or is for another build."),
                fix=f"export XLA_FLAGS={shell.words(' '.join(known))}{moved}",
            )  # fmt: skip
    elif machine.parsed.refused:
        refused = [each for each in flags if each.lstrip("-").partition("=")[0] in machine.parsed.refused]
        yield Finding(
            severity="critical", title=f"XLA refuses the value of {refused[0].partition('=')[0] if refused else '?'}",
            entity="XLA_FLAGS", evidence=" ".join(refused) or machine.parsed.trouble or "",
            why="The process aborts at its first use of a device.",
            fix=f"export XLA_FLAGS={shell.words(' '.join(_without(flags, refused)))}",
        )  # fmt: skip
    elif machine.parsed.trouble is not None and machine.imported.trouble is None:
        yield Finding(
            severity="warning", title="A CPU client with these flags cannot be made", entity="XLA_FLAGS",
            evidence=f"{' '.join(flags)}: {machine.parsed.trouble.splitlines()[-1]}",
            why="The job may die at its first use of a device.",
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
                fix=f"export XLA_FLAGS={shell.words(' '.join(_last_of(name, flags)))}",
            )  # fmt: skip
    for flag in flags:
        slow = next((why for name, why in SLOW.items() if flag.lower().startswith(name)), None)
        if slow is not None:
            found = True
            yield Finding(
                severity="info", title=f"{flag.partition('=')[0]} is set", entity="XLA_FLAGS", evidence=flag, why=slow,
                fix="Leave it out, unless it is meant",
            )  # fmt: skip
        if flag.startswith(FORCED) and (machine.nvidia_devices or machine.tpu_devices):
            found = True
            yield Finding(
                severity="info", title="The CPU is divided into several devices", entity="XLA_FLAGS", evidence=flag,
                why="It is meant for tests without an accelerator.", fix=f"Leave {FORCED} out",
            )  # fmt: skip
    if machine.parsed.trouble is None and not found:
        yield ok("XLA takes its flags", " ".join(flags))


def _without(flags: Sequence[str], others: Collection[str]) -> list[str]:
    # XLA reports a flag without the quotes around its value.
    return [each for each in flags if each not in others and re.sub("[\"']", "", each) not in others]


def _last_of(name: str, flags: Sequence[str]) -> list[str]:
    """With one of those of a name: the one that holds."""
    last = max(place for place, each in enumerate(flags) if each.partition("=")[0] == name)
    return [each for place, each in enumerate(flags) if place == last or each.partition("=")[0] != name]
