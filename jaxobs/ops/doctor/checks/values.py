"""Values outside of the range that JAX, XLA, NCCL, gRPC, CUDA and libtpu take, which none of them refuses at once."""

import math
import re
from collections.abc import Iterator

from jaxobs.ops.doctor.machine import TABLES, Finding, Machine, ok

_RANGE = re.compile(r"range \[(-?[\d.]+), (-?[\d.]+)\]")
_COUNTED = re.compile(
    r"timeout|_(ms|secs?|seconds|minutes|bytes|size|runs|devices|processes|frames|count|threads)($|_)"
)
"""Names of settings that count something, or say how large or long it is: none of these is below 0."""
_BELOW = re.compile(r"-1\b|negative")
"""Words of JAX where a number below 0 has a meaning."""
_PLUGINS = {"gpu": r"jax-(cuda|rocm)\d+-plugin", "tpu": r"libtpu(-nightly)?", "any": ".*"}


def check(machine: Machine) -> Iterator[Finding]:
    """By JAX's own words for its settings, by XLA's parser of the variables for GPUs, and by a table for the rest."""
    found = [*_of_jax(machine), *_of_flags(machine), *_of_libraries(machine), *_of_devices(machine)]
    yield from found or [
        ok("Values are in their ranges", f"{len(machine.imported.settings)} settings of JAX, and more")
    ]


def _outside(name: str, value: str, reason: str, why: str, severity: str = "warning") -> Finding:
    return Finding(
        severity=severity, title=f"{name} has a value out of its range", entity=name,
        evidence=f"{name}={value}: {reason}", why=why, fix=f"unset {name}",
    )  # fmt: skip


def _of_jax(machine: Machine) -> Iterator[Finding]:
    for name, variable in machine.given_settings.items():
        reason = _wrong(
            name, machine.setting(name), machine.defaults.settings[name], machine.imported.meanings.get(name, "")
        )
        if reason is not None:
            yield _outside(
                variable, machine.environment[variable], reason,
                "JAX takes it without a look: what reads it fails, waits for no time, or does nothing.",
            )  # fmt: skip


def _wrong(name: str, value: object, default: object, meaning: str) -> str | None:
    """Returns why a number cannot be meant; None for a number that can be meant, and for other texts."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value):
        return "it is not finite"
    limits = _RANGE.search(meaning) or ("percentile" in name and re.match("(0) (100)", "0 100"))
    if limits and not float(limits[1]) <= value <= float(limits[2]):
        return f"the range is [{limits[1]}, {limits[2]}]"
    least = -1 if default == -1 or _BELOW.search(meaning) else 0
    if "timeout" in name and value == 0:
        return "no time is left"
    if _COUNTED.search(name) and "_min_" not in name and value < least:
        return f"it cannot be below {least}"
    return None


def _of_flags(machine: Machine) -> Iterator[Finding]:
    for name, value in (each.lstrip("-").split("=", 1) for each in machine.flags if "=" in each):
        least = 1 if "device_count" in name else -1
        if re.fullmatch(r"-?\d+", value) and _COUNTED.search(name) and int(value) < least:
            yield _outside("XLA_FLAGS", f"--{name}={value}", f"it cannot be below {least}", "XLA does not look at it.")


def _of_libraries(machine: Machine) -> Iterator[Finding]:
    refused = machine.imported.refused_for_gpus
    here = {"gpu": machine.nvidia_devices or machine.amd_devices, "tpu": machine.tpu_devices, "any": True}
    if refused and (here["gpu"] or machine.versions(_PLUGINS["gpu"])):
        given = [each for each in machine.environment if re.match("XLA_(PYTHON_)?CLIENT_", each)]
        # XLA names the variable, or Python the value that is no number.
        name = next((each for each in given if each in refused or machine.environment[each] in refused), given[0])
        yield _outside(
            name, machine.environment.get(name, ""), refused, "The program fails when it first uses a GPU.", "critical"
        )
    for kind, table in TABLES["values"].items():
        if not here[kind] and not machine.versions(_PLUGINS[kind]):
            continue
        for name, *taken, why, value in machine.known_variables(table):
            if isinstance(taken[0], str):
                fits, reason = bool(re.fullmatch(taken[0], value, re.IGNORECASE)), "no such value is known"
            else:
                fits = bool(re.fullmatch(r"-?\d+", value)) and taken[0] <= int(value) <= taken[1]
                reason = f"the range is {taken[0]} to {taken[1]}"
            if not fits:
                yield _outside(name, value, reason, why)


def _of_devices(machine: Machine) -> Iterator[Finding]:
    """Yields numbers of devices that are not here."""
    gpus, tpus = len(machine.nvidia_devices), len(machine.tpu_devices)
    for name, here, why in (
        ("CUDA_VISIBLE_DEVICES", gpus, "CUDA ignores the first number that no GPU has, and all behind it."),
        ("JAX_LOCAL_DEVICE_IDS", gpus, "This process finds no device."),
        ("TPU_VISIBLE_CHIPS", tpus, "libtpu finds no such chip."),
        ("TPU_VISIBLE_DEVICES", tpus, "libtpu finds no such chip."),
    ):  # fmt: skip
        value = machine.environment.get(name, "")
        numbers = [int(each) for each in value.split(",") if each.strip().isdecimal()]
        if here and any(number >= here for number in numbers):
            yield _outside(name, value, f"{here} devices are here, 0 to {here - 1}", why)
        elif len(set(numbers)) < len(numbers):
            yield _outside(name, value, "a device is named twice", why)
