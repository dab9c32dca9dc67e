"""Several processes of one job: what each says about itself goes in, findings come out. One file for each kind.

A kind's module has `NAME`, the finding's type; `ABOUT` and `TOLD_WHEN`, for the reference; `STEADY`, how many views in
a row have to show it; and `find(view)`, the cases that a view shows. What kinds share lies in `support`.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Iterator
from typing import Protocol

from jaxobs.base import discovery
from jaxobs.facts.events import timestamp
from jaxobs.facts.findings import Finding
from jaxobs.findings import kinds
from jaxobs.findings.fleet.support.view import Case, View

LETS_GO = 3
"""Views in a row without a case after which it is over."""
MOST_CASES = 64


class FleetKind(kinds.Kind, Protocol):
    """Finds cases in what is known of a job."""

    STEADY: int
    """Views in a row that have to show it."""

    def find(self, view: View, /) -> Iterable[Case]: ...


@functools.cache
def known() -> tuple[FleetKind, ...]:
    """The modules of all kinds."""
    return tuple(discovery.modules(FleetKind))


class _Standing:
    """A case: how often in a row it was seen, or not seen."""

    __slots__ = ("finding", "missed", "seen", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.seen = self.missed = 0
        self.finding: Finding | None = None


class Fleet:
    """All kinds in one process. Not thread-safe: its owner samples on one thread at a time."""

    def __init__(self) -> None:
        # Now: what is first imported at exit, a dataclass above all, changes how a KeyboardInterrupt ends the process.
        self._kinds = known()
        self._standing: dict[str, _Standing] = {}

    def see(self, view: View, between: bool = False) -> Iterator[tuple[Finding, bool]]:
        """Takes in a view; the findings that stand or have just ended, and whether each is news.

        Args:
          view: what is known now.
          between: it comes between two ticks: it shows only what need not last, and ends nothing.
        """
        shown = set()
        for kind in self._kinds:
            if between and kind.STEADY > 1:
                continue
            for case in kind.find(view):
                identity = _identity(kind.NAME, case)
                shown.add(identity)
                if identity not in self._standing and len(self._standing) >= MOST_CASES:
                    continue
                standing = self._standing.setdefault(identity, _Standing(view.time))
                standing.seen, standing.missed = standing.seen + 1, 0
                if standing.seen >= kind.STEADY:
                    news = standing.finding is None
                    standing.finding = _finding(kind.NAME, identity, case, view.time, standing.since)
                    yield standing.finding, news
        if not between:
            yield from self._missing(shown, view.time)

    def _missing(self, shown: set[str], now: float) -> Iterator[tuple[Finding, bool]]:
        for identity in [each for each in self._standing if each not in shown]:
            standing = self._standing[identity]
            standing.missed += 1
            if standing.finding is None or standing.missed >= LETS_GO:
                del self._standing[identity]
                if standing.finding is not None:
                    yield _ended(standing.finding, now), True


def _identity(kind: str, case: Case) -> str:
    text = "\0".join((kind, case.function, case.subject))
    return f"{kind}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}"


def _finding(kind: str, identity: str, case: Case, now: float, since: float) -> Finding:
    return Finding(
        time=now, id=identity, finding=kind, function=case.function, subject=case.subject, summary=case.summary,
        advice=case.advice, count=case.count, since=since, evidence=tuple(filter(None, case.evidence)), data=case.data,
    )  # fmt: skip


def _ended(finding: Finding, now: float) -> Finding:
    return dataclasses.replace(
        finding, time=now, ended=now, summary=f"{finding.summary} Over since {timestamp(now)[11:19]}Z."
    )
