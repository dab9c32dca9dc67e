"""Versions that are known to compute wrong numbers or to break, with who says so: a table, in `bad_versions.toml`."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from jaxobs.ops.doctor.machine import Finding, Machine, ok, release


def check(machine: Machine) -> Iterator[Finding]:
    """By a table; an entry counts only on the hardware that it is about."""
    table = (resources.files("jaxobs.ops.doctor") / "bad_versions.toml").read_text(encoding="utf-8")
    known, found = tomllib.loads(table)["bad_versions"], False
    for bad in known:
        for name, version in machine.versions(bad["package"]).items():
            if release(bad["since"]) <= release(version) < release(bad["before"]) and _is_about(machine, bad):
                found = True
                yield Finding(
                    severity=bad["severity"], title=f"{name} {version} is known to be bad here", entity=name,
                    evidence=f"{name} {version}; see {bad['source']}", why=bad["why"], fix=bad["fix"],
                )  # fmt: skip
    if not found:
        yield ok("No version that is known to be bad", f"{len(known)} entries compared")


def _is_about(machine: Machine, bad: Mapping[str, Any]) -> bool:
    """Returns whether an entry is about this hardware: a GPU by its model, as the driver's library may be missing."""
    beside, least = bad.get("beside", (".*", "0"))
    models = [] if isinstance(machine.gpus, str) else [each.model or "" for each in machine.gpus]
    return (
        len(machine.nvidia_devices) >= bad.get("gpus", 0)
        and len(machine.tpu_devices) >= bad.get("tpus", 0)
        and ("models" not in bad or any(re.search(bad["models"], each) for each in models))
        and any(release(each) >= release(least) for each in machine.versions(beside).values())
    )
