"""Checks a machine before the job: one file for each check, found by the folder.

A check reads a `Machine` and yields findings; none touches an accelerator. What must run a program to be known
(`probes`, `deep`) runs it in a process of its own.
"""

import functools
from collections.abc import Iterable, Iterator

from jaxobs.base import discovery
from jaxobs.ops.doctor.checks import Check
from jaxobs.ops.doctor.machine import LEVELS, Finding, Machine


@functools.cache
def known() -> tuple[Check, ...]:
    """Returns the modules of all checks."""
    return tuple(discovery.modules(Check))


def examine(machine: Machine) -> Iterator[Finding]:
    """Yields what all checks say of a machine, in the order of their names.

    A check that fails says so: that it could not look is not a sign of health.
    """
    for check in known():
        name = discovery.short_name(check)
        try:
            found = [each.of(name) for each in check.check(machine)]
        except Exception as error:
            found = [
                Finding(
                    severity="info", title=f"The check `{name}` failed", entity="jaxobs",
                    evidence=f"{type(error).__name__}: {error}",
                    fix="Please report this with the output of `jaxobs doctor --json`.",
                ).of(name)
            ]  # fmt: skip
        yield from found


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Returns critical findings first, and findings of one severity as they came."""
    return sorted(findings, key=lambda each: -LEVELS.index(each.severity))


def has_faults(findings: Iterable[Finding]) -> bool:
    """Returns whether something must be fixed: a warning or worse."""
    return any(LEVELS.index(each.severity) >= LEVELS.index("warning") for each in findings)
