"""What is wrong in the state of a process: how it stands and its rarer events in, findings out. One file for each kind.

A kind's module has `NAME`, the finding's type; `ABOUT` and `TOLD_WHEN`, for the reference; and `find(scene)`, which
yields the cases that a scene shows. It may have `FOLLOWS`, see `jaxobs.findings.all_kinds`. It remembers nothing: the
same scene, seen live or read back from an event log, shows the same cases.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator
from typing import Protocol

from jaxobs.base import discovery
from jaxobs.facts.findings import Finding
from jaxobs.findings import kinds
from jaxobs.findings.conditions.support.scene import Case, Scene

MOST_CASES = 16
"""Of one kind."""


class ConditionKind(kinds.Kind, Protocol):
    """Finds cases in a scene."""

    def find(self, scene: Scene, /) -> Iterable[Case]: ...


@functools.cache
def known() -> tuple[ConditionKind, ...]:
    """The modules of all kinds."""
    return tuple(discovery.modules(ConditionKind))


def find(scene: Scene) -> Iterator[Finding]:
    """All findings that a scene shows."""
    for kind in known():
        for _, case in zip(range(MOST_CASES), kind.find(scene), strict=False):
            yield _finding(kind.NAME, case, scene.snapshot.time)


class Conditions:
    """All kinds in one process: what of them is news. Not thread-safe: its owner samples on one thread at a time."""

    def __init__(self) -> None:
        known()  # now: what is first imported at exit may change how the process ends
        self._reported: dict[str, Finding] = {}

    def see(self, scene: Scene) -> Iterator[tuple[Finding, bool]]:
        """The findings as they are now, and whether each is news: new, or twice as large as when it was news."""
        for finding in find(scene):
            before = self._reported.get(finding.id)
            news = before is None or _doubled(before, finding)
            if news:
                self._reported[finding.id] = finding
            yield finding, news


def _doubled(before: Finding, now: Finding) -> bool:
    return now.count >= 2 * max(before.count, 1) or now.seconds >= 2 * max(before.seconds, 1.0)


def _finding(name: str, case: Case, now: float) -> Finding:
    identity = hashlib.sha256("\0".join((name, case.function, case.subject)).encode(errors="replace")).hexdigest()
    return Finding(
        time=now, id=f"{name}-{identity[:12]}", finding=name, function=case.function, subject=case.subject,
        summary=case.summary, advice=case.advice, severity=case.severity, where=case.where, count=case.count,
        seconds=case.seconds, saves_seconds=case.saves_seconds, bytes=case.bytes, since=case.since,
        evidence=tuple(filter(None, case.evidence)), data=case.data,
    )  # fmt: skip
