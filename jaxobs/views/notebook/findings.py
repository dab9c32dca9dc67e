"""A verdict, and a finding, as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxobs.facts.findings import Finding
from jaxobs.facts.verdicts import Verdict, VerdictFinding
from jaxobs.findings.verdict import costs
from jaxobs.views.notebook.blocks import TONES, Block, Folded, Row, Say, Table

MOST = 10
"""Findings of a verdict that are shown."""


def verdict(found: Verdict, most: int = MOST) -> list[Block]:
    """The headline, which is the worst finding if there is one, then the others."""
    blocks: list[Block] = [Say(found.headline, found.verdict, TONES[found.verdict])]
    for worst in found.findings[:1]:
        blocks += _rest(worst.do, worst.where, worst.evidence)
    return [*blocks, *entries(found.findings[1:], most - 1)]


def entries(found: Sequence[VerdictFinding], most: int = MOST) -> Iterator[Block]:
    """Findings of a verdict, at most so many."""
    for each in found[:most]:
        yield from _entry(each)
    if len(found) > most:
        yield Say(f"{len(found) - most} more: `%jaxobs verdict` shows them.", tone="quiet")


def _entry(found: VerdictFinding) -> Iterator[Block]:
    cost = costs(found.cost)
    yield Say(f"{found.title}{f' Cost: {cost}.' if cost else ''}", found.severity, TONES[found.severity])
    yield from _rest(found.do, found.where, found.evidence)


def finding(found: Finding) -> list[Block]:
    """Returns the blocks of a single finding."""
    over = "" if found.ended is None else " It is over."
    return [
        Say(f"{found.summary}{over}", found.severity, TONES.get(found.severity, "warn")),
        *_rest(found.advice, found.where, found.evidence),
    ]


def _rest(do: str, where: str | None, evidence: Sequence[str]) -> Iterator[Block]:
    if do:
        yield Say(f"Do: {do}{f' ({where})' if where and where not in do else ''}")
    if evidence:
        yield Folded("Evidence", [Table(("Seen",), [Row((each,)) for each in evidence])])
