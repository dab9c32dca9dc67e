"""The findings as each stands now, up to a bound. Changed under the store's lock."""

from __future__ import annotations

import dataclasses
from collections import Counter

from jaxobs.facts.findings import Finding

MOST_FINDINGS = 100


class KeptFindings:
    """Findings by their identity, in the order in which they were last recorded."""

    def __init__(self, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self._findings: dict[str, Finding] = {}
        self._refreshed: set[str] = set()
        """Those that have grown since they were recorded as an event."""

    def keep(self, finding: Finding) -> None:
        """Keeps a finding in the place of an earlier one of the same identity."""
        self._refreshed.discard(finding.id)
        self._findings.pop(finding.id, None)
        self._findings[finding.id] = finding
        if len(self._findings) > MOST_FINDINGS:
            oldest = next(iter(self._findings))
            del self._findings[oldest]
            self._refreshed.discard(oldest)
            self._dropped["findings"] += 1

    def refresh(self, finding: Finding) -> None:
        """A finding that was recorded has grown: it stays the event that it was."""
        told = self._findings.get(finding.id)
        if told is not None:
            self.keep(
                dataclasses.replace(finding, process_index=told.process_index, pid=told.pid, sequence=told.sequence)
            )
            if told.summary != finding.summary or told.count != finding.count:
                self._refreshed.add(finding.id)

    def unrecorded(self) -> tuple[Finding, ...]:
        """Those that have grown since they were recorded as an event, the oldest first."""
        return tuple(each for key, each in self._findings.items() if key in self._refreshed)

    def relabel(self, process_index: int) -> None:
        """All of them were of the process with this index."""
        for key, finding in self._findings.items():
            self._findings[key] = dataclasses.replace(finding, process_index=process_index)

    def frozen(self) -> tuple[Finding, ...]:
        """The latest first."""
        return tuple(reversed(self._findings.values()))
