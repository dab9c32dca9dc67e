"""Findings."""

from collections.abc import Iterator

from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.verdicts import VERDICTS
from jaxobs.metrics.metric import Labels, Metric, Value


def _findings(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    standing = dict.fromkeys((each.finding for each in snapshot.findings), 0)
    for each in snapshot.findings:
        standing[each.finding] += each.ended is None
    for finding, count in standing.items():
        yield (finding,), count


def _worst(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    if snapshot.verdict is None:
        return
    first = next((each.id for each in snapshot.verdict.findings), None)
    worst = next((each for each in snapshot.findings if each.id == first), None)
    where = "" if worst is None else (worst.where or "")[-_MOST:]
    yield (snapshot.verdict.verdict, "" if worst is None else worst.finding, where), 1


_MOST = 200
"""Letters of a line's place, from its end."""

METRICS = (
    Metric("jax_findings", "Active findings, by type; 0 for those that are over.", _findings, ("finding",)),
    Metric("jax_verdict_info",
           ("The verdict on the process, with type and line of the worst finding, empty without a finding. The "
            "sentence with the figures is at `/api/v1/verdict`, because in a label each figure would make a series."),
           _worst, ("verdict", "finding", "where"), values=(("verdict", VERDICTS),)),
)  # fmt: skip
