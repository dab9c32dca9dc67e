"""Variables that do nothing, do harm, or were meant to be another."""

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

from jaxobs.base import config
from jaxobs.ops.doctor import shell
from jaxobs.ops.doctor.machine import Finding, Machine, ok

DEAD = {
    r"XRT_\w+": "XRT was removed: PJRT finds the devices, and torch_xla reads PJRT_DEVICE.",
    "COLAB_TPU_ADDR|JAX_BACKEND_TARGET|JAX_XLA_BACKEND": (
        "JAX used it to reach a TPU Node over the network. PJRT runs on the TPU VM only, and ignores the variable."
    ),
    "JAX_USE_PJRT_C_API_ON_TPU": "It was removed: PJRT is the only way since JAX 0.4.",
    "ENABLE_PJRT_COMPATIBILITY": "It makes PJRT accept a plugin of another version: what it hid then shows as a crash.",
    "XLA_PYTHON_CLIENT_MEM_FRACTION": "It is outdated: newer versions of JAX read XLA_CLIENT_MEM_FRACTION.",
}
"""Reasons by the regular expression for the whole name of the variable."""
INSTEAD = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "XLA_CLIENT_MEM_FRACTION"}
READ_ELSEWHERE = frozenset({
    "JAX_PLATFORM_NAME", "JAX_PLATFORMS", "JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_BIND_ADDRESS", "JAX_PROCESS_ID",
    "JAX_NUM_PROCESSES", "JAX_LOCAL_PROCESS_ID", "JAX_LOCAL_DEVICE_IDS", "JAX_NUM_GENERATED_CASES", "JAX_PORT",
})  # fmt: skip
"""By JAX without a setting of that name, or by what starts it."""
OF_XLA = frozenset({
    "XLA_FLAGS", "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION", "LIBTPU_INIT_ARGS",
})  # fmt: skip
"""Names that JAX and XLA read: an exact list of theirs is longer, so only what is close to one counts."""
CLOSE = 0.85


def check(machine: Machine) -> Iterator[Finding]:
    """By their names. What JAX reads is asked of JAX itself."""
    environment, found = machine.environment, False
    for name in environment:
        if (why := _dead(name)) is None:
            continue
        found, instead = True, INSTEAD.get(name)
        fix = f"unset {name}" + ("" if instead is None else f"; {shell.export(instead, environment[name])}")
        if instead is not None and instead in environment:
            fix = f"unset {name}"
        yield Finding(
            severity="info" if instead else "warning", title=f"{name} is set", entity=name, why=why, fix=fix,
            evidence=f"{name}={environment[name]}",
        )  # fmt: skip
    library = environment.get("TPU_LIBRARY_PATH")
    if library and machine.path(library).is_file() and not machine.tpu_devices:
        found = True
        yield Finding(
            severity="warning", title="TPU_LIBRARY_PATH is set, and no TPU is here", entity="TPU_LIBRARY_PATH",
            evidence=f"TPU_LIBRARY_PATH={library}; no device file of a TPU in /dev",
            why="JAX loads this libtpu wherever it looks for a TPU, also in place of the one that is installed.",
            fix="unset TPU_LIBRARY_PATH",
        )  # fmt: skip
    elif library and not machine.path(library).is_file():
        found = True
        yield Finding(
            severity="warning", title="TPU_LIBRARY_PATH names a file that does not exist", entity="TPU_LIBRARY_PATH",
            evidence=f"TPU_LIBRARY_PATH={library}", why="JAX falls back to the libtpu that is installed.",
            fix="unset TPU_LIBRARY_PATH",
        )  # fmt: skip
    for name, meant in _misspelt(machine):
        found = True
        yield Finding(
            severity="warning", entity=name,
            title=f"No setting of {'JAX' if name.startswith('JAX_') else 'XLA'} is called {name}",
            evidence=f"{name}={environment[name]}", why="It has no effect.",
            fix=f"{shell.export(meant, environment[name])}; unset {name}",
        )  # fmt: skip
    for name, value in environment.items():
        if re.match(r"--?(xla|tpu)_", value) and name not in ("XLA_FLAGS", "LIBTPU_INIT_ARGS"):
            found = True
            yield Finding(
                severity="info", title=f"Flags of XLA are in {name}, which JAX does not read", entity=name,
                evidence=f"{name}={value}", why="They have no effect on JAX.", fix=shell.export("XLA_FLAGS", value),
            )  # fmt: skip
    for sentence in config.unknown_variables(environment):
        found = True
        yield Finding(
            severity="warning", title="A variable of jaxobs is unknown", entity="jaxobs", evidence=sentence,
            why="It has no effect.", fix="`jaxobs run --help` lists the settings",
        )  # fmt: skip
    name = "XDG_CACHE_HOME" if environment.get("XDG_CACHE_HOME") else "HOME"
    home = environment.get(name)
    if home and not Path(home).is_absolute():
        found = True
        yield Finding(
            severity="info", title=f"{name} is a relative path", entity=name, evidence=f"{name}={home}",
            why="Caches land in a different place for each working directory.",
            fix=shell.export(name, str(machine.directory / home)),
        )  # fmt: skip
    if not found:
        yield ok("Variables of JAX, XLA and jaxobs are known", f"{len(_of_jax(machine))} begin with JAX_")


def _dead(name: str) -> str | None:
    return next((why for pattern, why in DEAD.items() if re.fullmatch(pattern, name)), None)


def _of_jax(machine: Machine) -> list[str]:
    return sorted(name for name in machine.environment if name.startswith("JAX_"))


def _of_xla(machine: Machine) -> list[str]:
    return sorted(name for name in machine.environment if name.startswith(("XLA_", "LIBTPU_")))


def _misspelt(machine: Machine) -> Iterator[tuple[str, str]]:
    """Variables that JAX does not read and that are close to one that it does: others may be the program's own."""
    settings = {name.upper() for name in machine.imported.settings}
    of_jax = settings | READ_ELSEWHERE if settings else set()
    for names, known in ((_of_jax(machine), of_jax), (_of_xla(machine), OF_XLA)):
        for name in names:
            close = difflib.get_close_matches(name, known, n=1, cutoff=CLOSE)
            if close and close[0] != name and _dead(name) is None:
                yield name, close[0]
