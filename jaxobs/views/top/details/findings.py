"""A finding: the whole text, what it costs, what to do, and what shows it."""

from __future__ import annotations

from jaxobs.base.symptoms import SECTIONS, symptom_url
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.findings import Finding
from jaxobs.facts.verdicts import VerdictFinding
from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.lines import Line, plain
from jaxobs.views.terminal.text import clock, duration, number, size
from jaxobs.views.terminal.verdict import STYLES
from jaxobs.views.top.prose import bullets, facts, part, text


def finding(view: Overview, found: Finding, surface: Surface) -> list[Line]:
    """All that is known of it; if no sentence shows it, the compilations that belong to it."""
    entries = {} if view.snapshot.verdict is None else {each.id: each for each in view.snapshot.verdict.findings}
    entry = entries.get(found.id)
    severity = entry.severity if entry is not None else found.severity
    cause = entries.get(entry.caused_by or "") if entry is not None else None
    follow = [each.title for each in entries.values() if each.caused_by == found.id]
    mine = [each for each in view.compilations if each.sequence in set(found.sequences)]
    return [
        plain(f" {severity.upper()}", "dim" if found.ended is not None else STYLES[severity]),
        *text(found.summary, surface),
        *part("What to do", text(found.advice, surface, "good") if found.advice else []),
        [],
        *facts(_about(found, entry), surface),
        *part("Follows from", text(cause.title, surface) if cause is not None else []),
        *part("Followed by", bullets(follow, surface)),
        *part("Evidence", bullets(found.evidence, surface)),
        *part("Compilations", [] if found.evidence else bullets(map(_told, reversed(mine)), surface)),
    ]


def _about(found: Finding, entry: VerdictFinding | None) -> list[tuple[str, str]]:
    where = entry.where if entry is not None else None
    return [
        ("Finding", found.finding),
        ("Function", "" if found.function == "<unknown>" else found.function),
        ("About", found.subject),
        ("Call site", found.where or where or ""),
        ("Cost", _cost(found, entry)),
        ("Count", number(found.count) if found.count else ""),
        ("Since", clock(found.since, "%Y-%m-%d %H:%M:%S") if found.since else ""),
        ("Over since", clock(found.ended, "%Y-%m-%d %H:%M:%S") if found.ended else ""),
        ("By symptom", _symptom(found.finding)),
    ]


def _symptom(kind: str) -> str:
    """The section and the page: an address with the section in it is wider than many a terminal."""
    section = SECTIONS.get(kind)
    return "" if section is None else f'"{section}" in {symptom_url()}'


def _cost(found: Finding, entry: VerdictFinding | None) -> str:
    """Seconds that the advice would have saved, if the verdict knows them; else the seconds that were lost."""
    if entry is None:
        known = [duration(found.seconds) if found.seconds else "", size(found.bytes)]
    else:
        cost = entry.cost
        share = f" ({cost.share:.0%} of the time)" if cost.share is not None and cost.share >= 0.005 else ""
        known = [f"{duration(cost.seconds)}{share}" if cost.seconds else "", size(cost.bytes)]
    return ", ".join(each for each in known if each)


def _told(event: Compilation) -> str:
    at = f" at {event.where}" if event.where else ""
    took = duration(sum(event.phases.values()))
    return f"{clock(event.time)} {event.cause}, {took}{at}: {event.reason.removeprefix(f'`{event.function}`: ')}"
