"""The verdict on a process: what is wrong, the worst first, what it costs and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field

VERDICTS = ("fix", "watch", "ok")
"""Something is wrong and worth fixing; something is worth knowing; neither, and the time is accounted for."""

SEVERITIES = ("critical", "warning", "info")
"""Results are wrong or the program died; time or memory is lost; little is lost, or nothing yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Costs of a finding, as far as they are known."""

    seconds: float | None = None
    """Time lost so far."""
    share: float | None = None
    """Part of the time since the process began, from 0 to 1."""
    bytes: int | None = None
    """Memory that it holds."""
    count: int | None = None
    """How often it happened: compilations, batches, requests, values, steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictFinding:
    """A finding in the verdict."""

    id: str
    """As in `Finding`."""
    title: str
    """A sentence with the figures: what is wrong."""
    severity: str
    """Severity, one of `SEVERITIES`."""
    cost: Cost = field(default_factory=Cost)
    function: str | None = None
    """As in `Compilation`; None where it is about none."""
    where: str | None = None
    """`file:line` in the user's code; `file:line, in library/file.py:line` if all of it comes from that line of a
    library."""
    do: str = ""
    """Advice: what to do about the finding."""
    evidence: tuple[str, ...] = ()
    caused_by: str | None = None
    """The `id` of the finding that this one follows from. It comes right behind that one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The time of the process, which the verdict rests on."""

    since: float
    """Time at which the process was started, in seconds since 1970."""
    until: float
    seconds: Mapping[str, float]
    """Seconds by category of time, for categories that have any; together, the time from `since` to `until`."""
    share_in_steps: float | None = None
    """Share of the time since the first step that steps took, from 0 to 1; None before it."""
    each_step: Mapping[str, float] = field(default_factory=dict)
    """Averages over the steps of the loop with the most steps: `callbacks` (calls of Python by compiled programs),
    `callback_seconds`, `pauses` (of Python's garbage collector), `pause_seconds`; without those that are 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The whole verdict: one and the same on the page, in `jaxobs top`, `explain` and `report`, and in the API."""

    verdict: str
    """The verdict in a word, one of `VERDICTS`."""
    headline: str
    """A sentence or two: the worst finding, or where the time went."""
    account: Account | None = None
    """None in data read back from an event log that has no account of the time."""
    findings: tuple[VerdictFinding, ...] = ()
    """The worst first; what follows from another comes behind it."""
