"""A scene of a process as evidence, cases that a kind of finding sees in it, and the `Finding` made of each."""

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxobs.facts.compilations import CacheLookup, Compilation
from jaxobs.facts.errors import Error, OutOfMemory
from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.facts.numbers import NonFinite
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.steps import Step

KINDS: tuple[type[Event], ...] = (NonFinite, Step, Error, OutOfMemory, CacheLookup, Compilation)
"""The events that a scene is made of; of compilations, only long ones."""
UNKNOWN = "<unknown>"
"""The function of a finding that is about none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A process at one moment, as it knows itself. Events are the latest of their kind, oldest first."""

    snapshot: Snapshot
    nonfinite: Sequence[NonFinite] = ()
    steps: Sequence[Step] = ()
    errors: Sequence[Error] = ()
    out_of_memory: Sequence[OutOfMemory] = ()
    lookups: Sequence[CacheLookup] = ()
    compilations: Sequence[Compilation] = ()
    ended: bool = False
    """Whether the process has ended, and not as it should."""

    @property
    def time(self) -> float:
        """Time of the snapshot."""
        return self.snapshot.time

    @property
    def compile_seconds(self) -> dict[str, float]:
        """Seconds that the compiler took, by function; what was loaded from the persistent cache is not in it."""
        found = {each.name: each.phase_seconds.get("compile", 0.0) for each in self.snapshot.functions}
        return {name: seconds for name, seconds in found.items() if 0 < seconds < math.inf}


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
