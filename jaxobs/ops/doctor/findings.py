"""What a check says: one finding for each thing that it looked at, also for what is fine."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

SEVERITIES = ("ok", "info", "warning", "critical")
"""`critical`: the job dies, hangs, computes wrong numbers, or silently runs on the CPU. `warning`: it is slow, loses
something, or dies under load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    severity: str
    title: str
    """What is so, in one sentence."""
    evidence: str
    """What was read, and where."""
    why: str = ""
    """What it does to a job; empty where all is well."""
    fix: str = ""
    """The command or setting that fixes it; empty where there is nothing to fix."""
    entity: str = ""
    """What it is about: a package, a variable, a device, a path."""
    id: str = ""
    """The check."""

    def of(self, check: str) -> Finding:
        """The same, with its check's name."""
        return dataclasses.replace(self, id=self.id or check)


def ok(title: str, evidence: str, entity: str = "") -> Finding:
    """All is well there."""
    return Finding(severity="ok", title=title, evidence=evidence, entity=entity)
