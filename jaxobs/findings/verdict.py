"""The verdict: where the time of a process went, and its findings in the order of what they cost.

A cause comes before what follows from it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from jaxobs.facts.compilations import EAGER
from jaxobs.facts.findings import Finding
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.verdicts import SEVERITIES, VERDICTS, Cost, Verdict, VerdictFinding
from jaxobs.findings import all_kinds, parts
from jaxobs.findings.cases import UNKNOWN
from jaxobs.findings.compilations import eager_initialization, recreated_functions
from jaxobs.findings.compilations.support.case import duration, plural
from jaxobs.findings.leaks import SOON
from jaxobs.recorder.oom_texts import human

SMALL_SECONDS = 1.0
SMALL_SHARE = 0.01
"""Share of the time below which, with less than `SMALL_SECONDS`, a finding is worth knowing and not worth fixing
first."""
TINY_SHARE = 0.001
"""Share of the time since a finding began below which it is worth knowing only: 4 s, from an hour later on."""

MINOR_SHARE = 0.02
"""Share of the time below which lost seconds count for less than memory that fills up; of what is lost once, a share
that an account may lack."""

ONCE = frozenset({
    "costly_recompilations", "eager_initialization", "two_shardings_at_start", "weak_type_at_start",
})  # fmt: skip
"""Kinds that cost something once, and nothing for as long as the program runs, ..."""
ONCE_SECONDS = 60.0
"""... which are worth fixing first from so many seconds on, or from the share that an account may lack."""
_BUILDS = {eager_initialization.NAME}
"""Kinds that are an ordinary start, of whatever share of a short run. The verdict stays `ok` if they cost less than an
account may lack."""

LARGE_BYTES = 2**30
"""Memory that counts for more than lost time."""

NOTHING = Verdict(verdict="ok", headline="Nothing to fix: no finding concerns it.")
"""Verdict on a part of a process that has no findings; a part has no account of its own."""

_OF_REQUESTS = frozenset({"cold_requests"})
"""Kinds whose seconds are those that requests took, of which the process's time has no share."""

_NAMES = ("functions", "loop", "function")
"""Figures of a finding that name functions it is about, next to its own."""


def verdict(snapshot: Snapshot) -> Verdict:
    """Returns the verdict on a process, as its snapshot shows it."""
    return of(snapshot.findings, parts.total(snapshot), _on_time(snapshot), now=snapshot.time)


def of(
    findings: Iterable[Finding], seconds: float, otherwise: Verdict = NOTHING, *, now: float | None = None
) -> Verdict:
    """The verdict on findings that last, `seconds` after the first step; `otherwise` is the one without any."""
    standing = [each for each in findings if each.ended is None]
    found = _ordered([_entry(each, seconds, now) for each in standing], _causes(standing))
    word = "fix" if any(each.severity != "info" for each in found) else "watch" if found else "ok"
    if word == "watch" and otherwise.account is not None and {each.finding for each in standing} == _BUILDS:
        word = "ok" if all((each.cost.share or 1.0) < 1.0 - parts.ACCOUNTED for each in found) else word
    headline = _headline(found) if found else otherwise.headline
    worst = min(word, otherwise.verdict, key=VERDICTS.index)
    if found and worst == otherwise.verdict and otherwise.account is not None:
        # What is only worth knowing costs less than what the account lacks.
        causes = sum(each.caused_by is None for each in found)
        headline = f"{otherwise.headline} {plural(causes, 'finding')} below."
    return dataclasses.replace(otherwise, verdict=worst, headline=headline, findings=tuple(found))


def judged(snapshot: Snapshot) -> Snapshot:
    """Returns the snapshot with its verdict."""
    return dataclasses.replace(snapshot, verdict=verdict(snapshot))


def _entry(finding: Finding, wall: float, now: float | None) -> VerdictFinding:
    seconds = finding.seconds if finding.saves_seconds is None else finding.saves_seconds
    # What an event log says may be anything.
    known = seconds if math.isfinite(seconds) and (seconds > 0 or finding.saves_seconds is not None) else None
    share = known / wall if known is not None and wall > 0 and finding.finding not in _OF_REQUESTS else None
    return VerdictFinding(
        id=finding.id,
        title=finding.summary,
        severity=_severity(finding, known, share, 0.0 if now is None else min(now - finding.since, wall)),
        cost=Cost(seconds=known, share=share and min(share, 1.0), bytes=finding.bytes, count=finding.count or None),
        function=finding.function if finding.function != UNKNOWN else None,
        where=finding.where,
        do=finding.advice,
        evidence=finding.evidence,
    )


def _severity(finding: Finding, seconds: float | None, share: float | None, age: float) -> str:
    severity = finding.severity if finding.severity in SEVERITIES else "warning"
    left = finding.data.get("full_in_seconds")
    if severity == "warning" and isinstance(left, int | float) and left < SOON:
        return "critical"
    small = seconds is not None and seconds < SMALL_SECONDS and (share is None or share < SMALL_SHARE)
    small = small or (seconds is not None and share is not None and seconds < TINY_SHARE * age)
    once = finding.finding in ONCE and seconds is not None and seconds < ONCE_SECONDS
    # A short run is a start for the most part.
    small = small or (once and (finding.finding in _BUILDS or (share is not None and share < 1.0 - parts.ACCOUNTED)))
    return "info" if severity == "warning" and small and not finding.bytes else severity


def _causes(findings: Sequence[Finding]) -> dict[str, str]:
    """Returns the id of the finding that another one follows from, by the other's id."""
    found: dict[str, str] = {}
    for finding in findings:
        brought_by = all_kinds.follows(finding)
        related = [other for other in findings if other.finding in brought_by and _related(finding, other)]
        if related:
            found[finding.id] = min(related, key=lambda other: (brought_by.index(other.finding), -other.seconds)).id
        elif alike := [other for other in findings if _same_fault(finding, other)]:
            found[finding.id] = max(alike, key=lambda other: (other.seconds, other.id)).id
    # Kinds do not follow from each other in circles, but findings of a newer version might.
    return {one: other for one, other in found.items() if found.get(other) != one}


def _same_fault(one: Finding, other: Finding) -> bool:
    """Returns whether another finding, which costs more, has the same array, value, object made again, call or line."""
    maker = one.function.rpartition(".")[0]
    made = maker.endswith("<locals>") or maker.rpartition(".")[2][:1].isupper()  # by a function, or in a class
    made = made and one.finding == recreated_functions.NAME and other.function.startswith(f"{maker}.")
    taken = one.data.get("sizes", ()) == other.data.get("sizes")
    values = any(one.data.get(key, ()) == other.data.get(key) for key in ("some", "prints_as"))
    taken = taken or (one.subject == other.subject and values)
    alike = one.finding == other.finding and (made or taken)
    call = (one.function, one.where) == (other.function, other.where) and {one.finding, other.finding} < ONCE
    call = call or (one.finding == other.finding and one.where == other.where and "loop" in one.data)
    alike = alike or (call and one.function != EAGER)
    # What two arguments are at fault for together is the same compilations.
    alike = alike or (one.seconds > 0.0 and _compilations(one) == _compilations(other))
    return alike and (one.seconds, one.id) < (other.seconds, other.id)


def _compilations(finding: Finding) -> tuple[object, ...]:
    return finding.finding, finding.function, finding.where, finding.count, round(finding.seconds, 6)


def _related(one: Finding, other: Finding) -> bool:
    """Returns whether two findings are about one function; what is about none may be about any."""
    names, others = _functions(one), _functions(other)
    return not names or not others or bool(names & others)


def _functions(finding: Finding) -> set[str]:
    named = {finding.function} - {UNKNOWN, EAGER}
    for key in _NAMES:
        value = finding.data.get(key)
        if isinstance(value, str):
            named.add(value)
        elif isinstance(value, list | tuple):
            named.update(str(each) for each in value)
    return named


def _ordered(entries: Sequence[VerdictFinding], causes: Mapping[str, str]) -> list[VerdictFinding]:
    """The worst first; right behind each what follows from it."""
    ids = {each.id for each in entries}
    followers: dict[str, list[VerdictFinding]] = {}
    first = []
    for entry in sorted(entries, key=_rank):
        cause = causes.get(entry.id)
        if cause in ids and cause is not None:
            followers.setdefault(cause, []).append(dataclasses.replace(entry, caused_by=cause))
        else:
            first.append(entry)
    found: list[VerdictFinding] = []

    def take(each: VerdictFinding) -> None:
        found.append(each)
        for follower in followers.pop(each.id, ()):
            take(follower)

    # A cause is as bad as the worst that follows from it.
    for each in sorted(first, key=lambda each: min(_rank(one) for one in _all_of(each, followers))):
        take(each)
    return found


def _all_of(entry: VerdictFinding, followers: Mapping[str, Sequence[VerdictFinding]]) -> Iterable[VerdictFinding]:
    yield entry
    for each in followers.get(entry.id, ()):
        yield from _all_of(each, followers)


def _rank(entry: VerdictFinding) -> tuple[int, int, float, int, float, int, str]:
    """Severity, then much memory, then much of the time, then memory, then seconds, then how often."""
    cost = entry.cost
    size, seconds = cost.bytes or 0, cost.seconds or 0.0
    least = 1.0 - parts.ACCOUNTED if entry.id.partition("-")[0] in ONCE else MINOR_SHARE
    much = 0.0 if cost.share is not None and cost.share < least else seconds
    return (
        SEVERITIES.index(entry.severity), -max(0, size - LARGE_BYTES), -much, -size, -seconds,
        -(cost.count or 0), entry.id,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ headlines


def _headline(found: Sequence[VerdictFinding]) -> str:
    worst = found[0]
    cost = costs(worst.cost)
    others = sum(each.caused_by is None for each in found[1:])
    more = f" {plural(others, 'other finding')} below." if others else ""
    return f"{worst.title}{f' Cost so far: {cost}.' if cost else ''}{more}"


def costs(cost: Cost) -> str:
    """`49.6 s, 18 % of the time`, `3.8 GiB`; empty if no cost is known."""
    told = []
    if cost.seconds is not None:
        share = f", {parts.percent(cost.share)} of the time" if cost.share is not None and cost.share >= 0.005 else ""
        told.append(f"{duration(cost.seconds)}{share}")
    if cost.bytes:
        told.append(human(cost.bytes))
    return ", ".join(told)


# ------------------------------------------------------------------------------------------------ the account


def _on_time(snapshot: Snapshot) -> Verdict:
    """The verdict by where the time went, whatever the findings are."""
    if snapshot.wall is None:
        told = f"Nothing found, but the log does not say where the time went: {_told(snapshot)}."
        return Verdict(verdict="watch", headline=told)
    account, spans = parts.account(snapshot.wall, snapshot.loops), parts.spans(snapshot)
    for span in spans:
        if not span.is_accounted_for:
            return Verdict(verdict="watch", headline=_lacking(span, snapshot), account=account)
    told = (whole := spans[0]).told
    if not whole.worked or parts.answered(snapshot):
        told = f"{_told(snapshot)}{_between(whole, snapshot)}"
    elif whole.share < parts.ACCOUNTED:
        most = sorted([*whole.worked.items(), *whole.rest.items()], key=lambda item: -item[1])[:3]
        listed = ", ".join(f"{parts.LABELS.get(name, name)} {duration(seconds)}" for name, seconds in most if seconds)
        told = f"{duration(whole.total)} since the first {whole.first}, of which {listed}{_kept(whole, snapshot)}"
    return Verdict(verdict="ok", headline=f"Nothing to fix: {told}.", account=account)


def _kept(span: parts.Span, snapshot: Snapshot) -> str:
    """Returns a clause on the `sleep` with which a loop keeps its pace; "" if there is none."""
    slept = sum(share * span.rest.get(name, 0.0) for name, share in parts.pace(snapshot).items())
    return f"; the `sleep` that keeps the loop's pace took {duration(slept)}" if slept else ""


def _between(span: parts.Span, snapshot: Snapshot) -> str:
    """Returns a clause on the time between the calls of a service whose requests nobody counts; "" elsewhere."""
    seconds = span.rest["idle"] + span.rest["unattributed"]
    serves = snapshot.wall is not None and snapshot.wall.serves and not parts.answered(snapshot)
    if not serves or seconds <= (1.0 - parts.ACCOUNTED) * span.total:
        return ""
    return f", and {duration(seconds)} ({parts.percent(seconds / span.total)}) passed between the calls of a service"


def _lacking(span: parts.Span, snapshot: Snapshot) -> str:
    """Returns a sentence on the largest part of the time that is neither work nor ordinary."""
    largest = max(span.beyond, key=lambda name: span.beyond[name])
    seconds = span.beyond[largest]
    part = f"{parts.LABELS[largest]}, {duration(seconds)} ({parts.percent(seconds / span.total)})"
    begins = f"{span.told}. The largest other part is" if span.worked else f"The largest part of {span.of} is"
    return f"{begins} {part}{parts.where(largest, seconds, snapshot)}."


def _told(snapshot: Snapshot) -> str:
    """Returns a count that shows how it goes, where shares of the time say less, or are unknown."""
    answered = parts.answered(snapshot)
    running = [each for each in snapshot.loops if each.steps and not (answered and each.found)]
    if running:
        most = max(running, key=lambda each: each.steps)
        return f"{plural(most.steps, 'step')} of `{most.name}`"
    if answered:
        return f"{plural(answered, 'request')} answered"
    compiled = sum(each.compiled for each in snapshot.functions)
    if not compiled:
        return "no compilation has ended yet"
    seconds = sum(sum(each.phase_seconds.values()) for each in snapshot.functions)
    return f"{plural(compiled, 'program')} compiled in {duration(seconds)}"
