"""What becomes known of the process: versions, capabilities, notes for a person. Changed under the store's lock."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Mapping

from jaxobs import internals
from jaxobs.base import guard
from jaxobs.facts.process import ObserverState, ProcessState

MOST_NOTES = 20


class ProcessFacts:
    """Versions of what runs here, what jaxobs can see in them, and sentences for a person."""

    def __init__(self, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self.versions: dict[str, str] = {}
        self.capabilities: dict[str, bool] = {}
        self.notes: tuple[str, ...] = ()

    def after_fork(self, dropped: Counter[str]) -> ProcessFacts:
        """In a forked child: the same versions and capabilities."""
        fresh = ProcessFacts(dropped)
        fresh.versions, fresh.capabilities = self.versions, self.capabilities
        return fresh

    def describe(self, versions: Mapping[str, str] | None, capabilities: Mapping[str, bool] | None) -> None:
        """Adds to what is known."""
        self.versions = {**self.versions, **(versions or {})}
        self.capabilities = {**self.capabilities, **(capabilities or {})}

    def note(self, sentence: str) -> bool:
        """Keeps a sentence for a person, once; returns whether it was new."""
        if sentence in self.notes:
            return False
        if len(self.notes) >= MOST_NOTES:
            self._dropped["notes"] += 1
        self.notes = (*self.notes, sentence)[-MOST_NOTES:]
        return True

    def process(
        self,
        program: str | None,
        started: float,
        place: tuple[int, int],
        platform: str | None,
        run: tuple[str | None, str],
    ) -> ProcessState:
        """The process now: `place` is its index in its job and their number; `run`, the setting and `last_exit`."""
        index, count = place
        return ProcessState(
            pid=os.getpid(),
            hostname=socket.gethostname(),
            program=program,
            started=started,
            process_index=index,
            process_count=count,
            versions=dict(self.versions),
            platform=platform,
            run_id=run[0] or internals.distributed.coordinator() or "",
            last_exit=run[1],
        )

    def observer(self, installed: bool, collect_seconds: float | None) -> ObserverState:
        """How jaxobs itself is doing."""
        return ObserverState(
            installed=installed,
            capabilities=dict(self.capabilities),
            internal_errors=guard.internal_errors(),
            dropped=dict(self._dropped),
            collect_seconds=collect_seconds,
            notes=self.notes,
        )
