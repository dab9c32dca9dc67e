"""The findings that looks at a process show: which are news, which last, and which are over.

The same evidence, seen live or read back from an event log, shows the same cases.
"""

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from jaxobs.facts.events import timestamp
from jaxobs.facts.findings import Finding
from jaxobs.findings import LookingKind, all_kinds
from jaxobs.findings.cases import Case, Scene, likely
from jaxobs.findings.fleet.support.view import View


class _Evidence(Protocol):
    @property
    def time(self) -> float: ...


LOOKS_EACH = 4
"""Looks of an ended program for each that showed a case: in more of them, a case that lasts is seen more often."""
Looked = TypeVar("Looked", bound=_Evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """Rules for the cases in one sort of evidence."""

    doubled: tuple[str, ...] = ()
    """Figures that make a case news again when they have doubled."""
    lets_go: int | None = None
    """Looks in a row without a case after which it is over, unless its kind says; None if it stands for good."""
    most_of_kind: int | None = None
    most: int = sys.maxsize
    """Cases that last at a time."""


def _over(finding: Finding, now: float, since: float) -> Finding:
    over = f"{finding.summary} Over since {timestamp(since)[11:19]}Z."
    return dataclasses.replace(finding, time=now, ended=since, summary=over)


_RULES: dict[type[Any], _Rules] = {
    Scene: _Rules(doubled=("count", "seconds"), most_of_kind=16),
    View: _Rules(lets_go=3, most=64),
}


@dataclass(slots=True)
class _Standing:
    since: float
    lets_go: int | None
    seen: int = 0
    """Looks that showed it."""
    missed: int = 0
    """Looks in a row that did not, ..."""
    without: float = 0.0
    """... and the time of the first of them."""
    candidate: Finding | None = None
    """The latest, while too few looks showed it, ..."""
    finding: Finding | None = None
    """... and once it was reported."""
    reported: Finding | None = None
    """The one that was news."""


class Standing(Generic[Looked]):
    """All kinds that find in one sort of evidence. Not thread-safe: its owner looks on one thread at a time."""

    def __init__(self, needs: type[Looked]) -> None:
        # Now: what is first imported at exit, a dataclass above all, changes how a KeyboardInterrupt ends the process.
        self._kinds = all_kinds.needing(needs)
        self._rules = _RULES[needs]
        self._standing: dict[str, _Standing] = {}
        self._looks = 0

    def see(self, evidence: Looked, between: bool = False) -> Iterator[tuple[Finding, bool]]:
        """Takes in a look; yields findings and whether they are news. One in `between` ends nothing."""
        now, shown = evidence.time, set()
        for kind, case in _cases(self._kinds, evidence, self._rules):
            steady = all_kinds.steady(kind)
            if between and steady > 1:
                continue
            identity = case.identity(kind.NAME)
            shown.add(identity)
            if identity not in self._standing and len(self._standing) >= self._rules.most:
                continue
            lets_go = all_kinds.lets_go(kind) or self._rules.lets_go
            standing = self._standing.setdefault(identity, _Standing(now, lets_go))
            standing.seen, standing.missed = standing.seen + 1, 0
            since = case.since or (0.0 if lets_go is None else standing.since)
            finding = standing.candidate = case.finding(kind.NAME, identity, now, since)
            if standing.seen >= steady:
                standing.finding = finding
                told = standing.reported
                news = told is None or any(
                    getattr(finding, name) >= 2 * max(getattr(told, name), 1) for name in self._rules.doubled
                )
                if news:
                    standing.reported = finding
                yield finding, news
        if not between:
            self._looks += 1
            yield from self._missing(shown, now)

    def at_end(self) -> Iterator[tuple[Finding, bool]]:
        """The program ends: what the latest looks showed of a short one is likely, if too few for a finding."""
        for case in self._standing.values():
            if case.finding is None and case.candidate and not case.missed and self._looks <= LOOKS_EACH * case.seen:
                case.finding = likely(case.candidate)
                yield case.finding, True

    def _missing(self, shown: set[str], now: float) -> Iterator[tuple[Finding, bool]]:
        for identity, standing in list(self._standing.items()):
            if identity in shown or standing.lets_go is None:
                continue
            standing.missed, standing.without = standing.missed + 1, standing.without if standing.missed else now
            if standing.finding is None or standing.missed >= standing.lets_go:
                del self._standing[identity]
                if standing.finding is not None:
                    yield _over(standing.finding, now, standing.without), True


def shown_by(evidence: Looked) -> Iterator[Finding]:
    """Yields the findings that one look shows."""
    for kind, case in _cases(all_kinds.needing(type(evidence)), evidence, _RULES[type(evidence)]):
        yield case.finding(kind.NAME, case.identity(kind.NAME), evidence.time, case.since)


def _cases(
    kinds: Iterable[LookingKind[Looked]], evidence: Looked, rules: _Rules
) -> Iterator[tuple[LookingKind[Looked], Case]]:
    for kind in kinds:
        for case in islice(kind.find(evidence), rules.most_of_kind):
            yield kind, case
