"""What a diagnosis says, and its form as JSON."""

from dataclasses import dataclass
from typing import Any

from jaxobs.facts.events import plain

CAUSE, LIKELY, INCONCLUSIVE, NO_FAULT = "cause", "likely", "inconclusive", "no_fault"
SUPPORTED, REFUTED, NO_DATA = "supported", "refuted", "no_data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """One piece of evidence. Its text comes from outside."""

    source: str
    place: int
    """Line of a file, number of an event."""
    time: str | None
    process: str | None
    text: str
    weight: float | None = None
    """How often the signs in it were right, as a share: see `weights`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A fault that is named."""

    id: str
    title: str
    component: str
    """The process, host or instance where it began; the source that shows it if none of these is known."""
    evidence: tuple[Quote, ...]
    fix: str
    runbook: str
    """The address of a page."""
    onset: str | None
    """When its first sign appeared, RFC 3339; None if the sources have no clock."""
    impact: str
    """`ended`, `stuck`, `wrong` or `slow`."""
    where: str | None = None
    """The innermost call in the user's own code that a traceback shows, such as `train.py:58 in step`."""
    confidence: float = 1.0
    """How often a cause with such evidence is right, as a share: see `weights`."""
    first_action: str = ""
    """The first thing to do: one sentence, with what the evidence says of paths, packages, versions or ports."""
    victims: tuple[str, ...] = ()
    """Processes that failed because of it."""
    consequences: tuple[str, ...] = ()
    """Ids of the hypotheses that it explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One fault that was considered."""

    id: str
    status: str
    """`supported`, `refuted` or `no_data`."""
    evidence: tuple[Quote, ...] = ()
    because: str = ""
    """Why it is not named though something supports it, or what refutes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Difference between two starts of a process, before the first cause began."""

    what: str
    """Name of a package or variable: `jax`, `XLA_FLAGS`, or `commit`."""
    before: str
    """Its value at the earlier start; empty if it had none."""
    after: str
    time: str | None
    """When the later start was, RFC 3339."""
    process: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownIncident:
    """The address of a public thread; in one sentence each, what had happened, and what solves it."""

    thread: str
    what: str
    cure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The result: the cause that started it first."""

    verdict: str
    """`cause`, `likely` (the first cause rests on weaker evidence), `inconclusive` or `no_fault`."""
    causes: tuple[Cause, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    changed: tuple[Change, ...] = ()
    """Versions, flags and the commit that differ between starts, the latest first."""
    missing: tuple[str, ...] = ()
    """What to collect, and what could not be read."""
    known: tuple[KnownIncident, ...] = ()
    """Up to three known incidents that are nearest, the nearest first; none where there is no fault."""

    def as_json(self) -> dict[str, Any]:
        """What `jaxobs diagnose --json` prints."""
        body: dict[str, Any] = plain(self)
        return body
