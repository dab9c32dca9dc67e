"""Findings of checks: one for each thing that a check looked at, also for what is fine."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from jaxobs.facts.verdicts import SEVERITIES

LEVELS = ("ok", *reversed(SEVERITIES))
"""Severities, and `ok` for a check that passed. `critical`: the job dies, hangs, computes wrong numbers, or silently
runs on the CPU. `warning`: it is slow, loses something, or dies under load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result for one thing that was looked at."""

    severity: str
    title: str
    """Title in one sentence, which says what is so."""
    evidence: str
    """Text that was read, and where."""
    why: str = ""
    """Effect on a job; empty if all is well."""
    fix: str = ""
    """The command or setting that fixes it; empty where there is nothing to fix."""
    entity: str = ""
    """Subject: a package, a variable, a device, a path."""
    id: str = ""
    """Name of the check."""

    def of(self, check: str) -> Finding:
        """Returns the finding with its check's name."""
        return dataclasses.replace(self, id=self.id or check)


def ok(title: str, evidence: str, entity: str = "") -> Finding:
    """Returns the finding that all is well."""
    return Finding(severity="ok", title=title, evidence=evidence, entity=entity)
