"""The base class of most sources, and how they keep their findings."""

from __future__ import annotations

from collections.abc import Iterable

from jaxobs.facts.findings import Finding
from jaxobs.state.store import Store


class Source:
    """A source that has nothing to prepare, to undo, to forget or to sample."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def start(self) -> None:
        """Begins to watch."""

    def stop(self) -> None:
        """Undoes `start`."""

    def after_fork(self) -> None:
        """In a forked child: what was the parent's is forgotten."""

    def sample(self) -> None:
        """Called on the slow tick."""


def keep(store: Store, findings: Iterable[tuple[Finding, bool]]) -> None:
    """Records the findings that are news, and brings the others up to date."""
    for finding, news in findings:
        if news:
            store.record(finding)
        else:
            store.refresh_finding(finding)
