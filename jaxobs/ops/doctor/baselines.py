"""This machine against the last good one: what is installed, set and plugged in, and what of it differs."""

import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jaxobs.base import json_lines
from jaxobs.base.errors import JaxobsError
from jaxobs.ops.doctor import shell
from jaxobs.ops.doctor.machine import Finding, Machine, ok

PACKAGES = (
    r"(jax|jaxlib|jaxobs|libtpu(-nightly)?|numpy|ml-dtypes|flax|optax|orbax.*|equinox|grain.*|tensorflow|torch|keras)"
    r"|jax-.*|nvidia-.*"
)
VARIABLES = ("XLA_", "JAX_", "LIBTPU_", "NCCL_", "TPU_", "CUDA_", "MEGASCALE_", "TF_CPP_", "JAXOBS_")
"""Prefixes of the variables that are compared; none other leaves the process."""
_SECRET = ("TOKEN", "SECRET", "PASSWORD", "KEY", "HEADERS")
_NOT_SHOWN = "<not shown>"
_VERSION = re.compile(r"[\w.+!-]+", re.ASCII)
MOST_BYTES = 4 * 2**20
WEIGHTY = ("packages", "variables", "driver", "accelerators", "python")
"""A difference there is a warning: it changes what is computed, or how fast."""


def facts(machine: Machine) -> dict[str, Any]:
    """Returns what is compared: plain data, as `jaxobs doctor --json` prints it under `machine`."""
    gpus = machine.gpus
    return {
        "python": ".".join(map(str, machine.python)),
        "system": {"platform": platform.platform(), "cpu": platform.machine(), "cpus": machine.cpus},
        "packages": machine.versions(PACKAGES),
        "variables": {
            name: _NOT_SHOWN if any(each in name for each in _SECRET) else value
            for name, value in sorted(machine.environment.items())
            if name.startswith(VARIABLES)
        },
        "driver": None if isinstance(gpus, str) or not gpus else gpus[0].driver_version,
        "accelerators": {
            **({} if isinstance(gpus, str) else {f"gpu {each.index}": each.model for each in gpus}),
            **({"tpu chips": len(machine.tpu_devices)} if machine.tpu_devices else {}),
        },
        "limits": {"open files": machine.open_files[0]},
    }  # fmt: skip


def read(path: Path) -> dict[str, Any]:
    """Returns what an earlier `jaxobs doctor --json` printed.

    Raises:
      JaxobsError: the file cannot be read, or is something else.
    """
    try:
        with path.open("rb") as file:
            body = json_lines.loads(file.read(MOST_BYTES))
    except (OSError, ValueError) as error:
        raise JaxobsError(
            f"`--baseline {path}` cannot be read: {error}. Make it with: jaxobs doctor --json > {path.name}"
        ) from None
    known = body.get("machine") if isinstance(body, dict) else None
    if not isinstance(known, dict) or not _is_whole(known):
        what = "an incomplete" if isinstance(known, dict) else "no"
        raise JaxobsError(
            f"`--baseline {path}` has {what} `machine`: it is not what `jaxobs doctor --json` prints. Make it with: "
            f"jaxobs doctor --json > {path.name}"
        )
    return known


def _is_whole(known: Mapping[str, Any]) -> bool:
    """Returns whether its groups have the form that `facts` gives them."""
    groups = (known.get("packages"), known.get("variables"))
    return all(isinstance(each, dict) and all(isinstance(one, str) for one in each.values()) for each in groups)


def compare(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields a finding for each difference."""
    found = False
    for group, value in now.items():
        was = before.get(group)
        for name, old, new in _differences(was, value):
            if old != new:
                found = True
                yield Finding(
                    id="baseline", severity="warning" if group in WEIGHTY else "info",
                    title=f"{name or group} is not what it was on the good machine", entity=name or group,
                    evidence=f"{group}: {_shown(old)} -> {_shown(new)}",
                    why="What differs from a machine on which the job ran is the first suspect.",
                    fix=_fix(group, name, old, new),
                )  # fmt: skip
    if not found:
        yield ok("Nothing differs from the baseline", f"{len(now)} groups compared").of("baseline")


def _differences(was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(was, dict) and isinstance(now, dict):
        for name in sorted({*map(str, was), *now}):
            yield name, was.get(name), now.get(name)
    else:
        yield "", was, now


def _shown(value: Any) -> str:
    return "absent" if value is None else str(value)[:200]


def _fix(group: str, name: str, old: Any, new: Any) -> str:
    if group == "packages":
        if old is None:
            return f"pip uninstall -y {shell.word(name)}"
        # Not what a file says beside a version: pip takes addresses and options, too.
        return f'pip install "{name}=={old}"' if _VERSION.fullmatch(str(old)) and _VERSION.fullmatch(name) else ""
    if group == "variables":
        if old == _NOT_SHOWN:
            return f"Set {name} as it is on the good machine"
        return shell.unset(name) if old is None else shell.export(name, str(old))
    return ""
