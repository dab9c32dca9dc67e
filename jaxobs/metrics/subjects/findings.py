"""Findings."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.facts.snapshot import Snapshot
from jaxobs.metrics.metric import Labels, Metric, Value


def _findings(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    standing = dict.fromkeys((each.finding for each in snapshot.findings), 0)
    for each in snapshot.findings:
        standing[each.finding] += each.ended is None
    for finding, count in standing.items():
        yield (finding,), count


METRICS = (
    Metric("jax_findings", "Active findings, by type; 0 for those that are over.", _findings, ("finding",)),
)  # fmt: skip
