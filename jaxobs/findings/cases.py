"""Cases that a kind of finding sees in its evidence, and the `Finding` that is made of each."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxobs.facts.findings import Finding

UNKNOWN = "<unknown>"
"""The function of a finding that is about none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A finding as it is; the fields are those of `Finding`."""

    summary: str
    advice: str
    function: str = UNKNOWN
    subject: str = ""
    """Tells it from another case of its kind: no figures that change."""
    severity: str = "warning"
    where: str | None = None
    count: int = 0
    seconds: float = 0.0
    saves_seconds: float | None = None
    bytes: int | None = None
    since: float = 0.0
    evidence: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    """The text that the id is made of, if not kind, function and subject."""

    def identity(self, kind: str) -> str:
        """Returns the finding's `id`: the same for the same kind, function and subject, in every process."""
        text = self.key or "\0".join((kind, self.function, self.subject))
        return f"{kind}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}"

    def finding(self, kind: str, identity: str, now: float, since: float) -> Finding:
        """Returns the fact, as the case is now."""
        return Finding(
            time=now, id=identity, finding=kind, function=self.function, subject=self.subject, summary=self.summary,
            advice=self.advice, severity=self.severity, where=self.where, count=self.count, seconds=self.seconds,
            saves_seconds=self.saves_seconds, bytes=self.bytes, since=since,
            evidence=tuple(filter(None, self.evidence)), data=self.data,
        )  # fmt: skip


def likely(finding: Finding, unless: str = "") -> Finding:
    """Returns a finding of a program that ended before the evidence was complete, which says so."""
    summary, advice = f"Likely: {finding.summary}", f"{finding.advice}{unless}"
    data = {**finding.data, "likely": True}
    return dataclasses.replace(finding, severity="info", summary=summary, advice=advice, data=data)
