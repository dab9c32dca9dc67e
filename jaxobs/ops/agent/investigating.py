"""An incident in, its report out: looks, diagnoses with `jaxobs.ops.diagnosis`, and says what follows."""

import functools
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxobs.base.version import __version__
from jaxobs.facts.events import timestamp
from jaxobs.ops.agent import deadlines, looking, rendering, runbooks, steps, surroundings
from jaxobs.ops.agent.incidents import Incident, Kept, rank
from jaxobs.ops.agent.looking import Bounds, Seen
from jaxobs.ops.agent.pods import PodSource
from jaxobs.ops.agent.report import (
    ERROR,
    NO_DATA,
    AlertSeen,
    Cause,
    Evidence,
    Hypothesis,
    Report,
    Step,
    Verdict,
    Verification,
)
from jaxobs.ops.agent.report import Subject as ReportedSubject
from jaxobs.ops.diagnosis import diagnose, result
from jaxobs.ops.diagnosis.evidence import ALERT, METRIC, clean
from jaxobs.ops.diagnosis.evidence import Evidence as EvidenceRead
from jaxobs.ops.diagnosis.gathering.prometheus_api import Answer, Window
from jaxobs.ops.diagnosis.knowledge import IMPACTS, SLOW, UP
from jaxobs.ops.diagnosis.known import known
from jaxobs.ops.diagnosis.result import Diagnosis, Quote

WINDOW = 3600.0
"""Seconds before the webhook that are looked at, at least."""
LONGEST = 6 * 3600.0
BEFORE = 0.5
"""Share of the window that lies before the first alert, at least."""
MOST_EVIDENCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Sources of an investigation."""

    prometheus: str
    targets: tuple[str, ...] = ()
    pods: tuple[PodSource, ...] = ()
    """Sources that are asked about the pods of a job."""
    window: float = WINDOW
    bounds: Bounds = field(default_factory=Bounds)


def investigate(
    incident: Incident, where: Where, before: Report | None = None, *, clock: Callable[[], float] = time.time
) -> Report:  # fmt: skip
    """Investigates an incident and returns the report.

    Args:
      before: the last report on the subject. Its causes stay while what could say more does not answer, and in an
        incident to which no alert and no process has been added since.
    """
    now = clock()
    began = incident.began()
    seconds = min(max(where.window, now - began + BEFORE * where.window), max(LONGEST, where.window))
    window = Window(end=now, seconds=seconds)
    seen, answers = _both(incident, where, window, incident.names(), began)
    unseen = _is_unseen(seen, answers) and (_is_gone(answers) or not _was_seen(incident, where, window))
    if before is not None and not _lasts(before, incident, seen, answers, now - where.window):
        before = None
    return _report(incident, window, seen, answers, clock, unseen, before)


def unable(incident: Incident, error: Exception, *, clock: Callable[[], float] = time.time) -> Report:
    """Returns the report of an incident whose investigation raised an error: that, and the alerts."""
    said = f"The investigation failed: {type(error).__name__}: {clean(str(error))}"
    seen = Seen(evidence=EvidenceRead((), ()), asked=(), not_looked_at=(said,))
    return _report(incident, Window(end=clock(), seconds=WINDOW), seen, [], clock, True, None)


def _lasts(
    before: Report, incident: Incident, seen: Seen, answers: Sequence[tuple[Step, Answer]], since: float
) -> bool:  # fmt: skip
    """Returns whether an earlier report is of the same processes, and of these alerts or more than answers now."""
    starts = surroundings.answer_of(answers, "starts").lines
    started = max((value for each in starts for _, value in each.points), default=0.0)
    is_over = before.verification is not None and before.verification.result == "recovered"
    is_old = before.investigated_at < timestamp(max(since, started))
    is_same = before.id == incident.id and {each.name for each in before.alerts} >= {*incident.names()}
    return not (is_over or is_old or (seen.is_whole and surroundings.answers_now(answers) and not is_same))


def _report(
    incident: Incident, window: Window, seen: Seen, answers: list[tuple[Step, Answer]], clock: Callable[[], float],
    unseen: bool, before: Report | None,
) -> Report:  # fmt: skip
    subject, now = incident.whose(), window.end
    found = diagnose(seen.evidence)
    book = _Evidence(seen)
    causes = _causes(found, incident.names(), book)
    explaining = [each for each in causes if each.explains_alert is not False]
    others = [each for each in causes if each.explains_alert is False]
    alerts = [_alert(each, seen) for each in incident.alerts.values()]
    verdict = _verdict(found, explaining, others, alerts, subject.is_known)
    if unseen and verdict == result.NO_FAULT:
        verdict = "inconclusive"  # Missing data is neither fault nor health.
    if verdict not in (result.CAUSE, result.LIKELY):
        explaining, others = [], causes
    hypotheses, evidence, threads = _hypotheses(found, incident.names(), book), book.found, list(found.known)
    note = ""
    if before is not None and verdict == result.INCONCLUSIVE and (kept := _kept(before, incident.names())):
        verdict, explaining, others = before.verdict, kept, []
        hypotheses, evidence, threads = before.hypotheses, before.evidence, before.known
        note = " An earlier look found this cause; the latest look found no sign of it."
    taken = [step for step, _ in answers]
    radius = surroundings.blast_radius(answers, [*explaining, *others], incident.instances())
    report = Report(
        id=incident.id,
        fingerprint=_fingerprint(subject.key, [each.id for each in explaining]),
        revision=incident.revision + 1,
        state="open" if incident.resolved_at is None else "resolved",
        subject=ReportedSubject(labels=dict(subject.labels), name=subject.name),
        severity=min((each.severity for each in alerts), key=rank, default=""),
        impact=min((each.impact for each in explaining), key=IMPACTS.index, default=""),
        verdict=verdict,
        headline=rendering.headline(verdict, subject.name, explaining, others),
        what_happened=rendering.what_happened(verdict, subject.name, alerts, explaining, others, radius) + note,
        opened_at=timestamp(incident.opened_at),
        investigated_at=timestamp(now),
        resolved_at=None if incident.resolved_at is None else timestamp(incident.resolved_at),
        seconds=0.0,
        notifications=incident.notifications,
        alerts=alerts,
        runbooks=_runbooks(incident.names()),
        causes=explaining,
        other_faults=others,
        hypotheses=hypotheses,
        known=threads,
        evidence=evidence,
        steps=taken,
        timeline=surroundings.timeline(incident, answers, [*explaining, *others], window, seen.changes),
        blast_radius=radius,
        context=surroundings.context(answers, window, seen.changes),
        do_now=_do_now(verdict, explaining, incident.names()),
        do_for_good=list(dict.fromkeys(each.fix for each in explaining)),
        verify=_verify(explaining, incident.names()),
        collect=_collect(verdict, found, incident.names(), unseen),
        sources=list(seen.looked_at),
        not_looked_at=_not_looked_at(seen, taken, incident),
        complete=seen.is_whole and all(each.outcome != ERROR for each in taken),
        suggested_actions=surroundings.suggested(verdict, explaining, seen.asked),
        jaxobs=__version__,
    )
    return report.model_copy(update={"seconds": round(max(0.0, clock() - incident.asked_at), 3)})


def verify(incident: Incident, report: Report, where: Where, *, clock: Callable[[], float] = time.time) -> Verification:
    """Asks the same steps and diagnoses again, about the time since the alerts' end or the last verification."""
    now = clock()
    since = incident.checked_at or incident.resolved_at or now
    window = Window(end=now, seconds=max(now - since, 1.0), step=max(1.0, (now - since) / 20))
    seen, answers = _both(incident, where, window, [each for each in report.runbooks if each in runbooks.TABLE], since)
    after = looking.only_since(seen.evidence, since)
    again = {each.id for each in diagnose(after).causes} & {each.id for each in report.causes}
    firing = {each.name for each in after.of_kind(ALERT)} & {each.name for each in report.alerts}
    taken = [step for step, _ in answers]
    processes = next((step for step in taken if step.id == "processes"), None)
    unread = [each for each in after.sources if each.problem is not None]

    def outcome() -> tuple[str, str]:
        if again:
            return "not_recovered", f"The evidence since then shows the fault again: {', '.join(sorted(again))}."
        if firing:
            return "not_recovered", f"Prometheus reports alerts again: {', '.join(sorted(firing))}."
        if unread:
            return "no_data", f"It could not be checked: {unread[0].name}: {unread[0].problem}."
        if processes is None or processes.outcome in ("error", "no_data"):
            return "no_data", "Prometheus has no samples of its processes after the alerts had resolved."
        if processes.outcome == "abnormal":
            return "no_data", f"Its processes cannot be looked at. {processes.because}"
        return "recovered", "No alert fires, all its processes answer, and no later evidence shows the fault."

    told, because = outcome()
    return Verification.model_validate({"at": timestamp(now), "result": told, "because": because, "steps": taken})


def counted(report: Report, incident: Incident) -> Report:
    """Returns a report with the counts and the status of an incident as they are now."""
    alerts = [
        each.model_copy(
            update={
                "status": now.status, "notifications": now.notifications,
                "ends_at": None if now.ends_at is None else timestamp(now.ends_at),
            }
        )
        if (now := incident.alerts.get(each.fingerprint)) is not None
        else each
        for each in report.alerts
    ]  # fmt: skip
    resolved = None if incident.resolved_at is None else timestamp(incident.resolved_at)
    return report.model_copy(
        update={
            "alerts": alerts, "notifications": incident.notifications, "resolved_at": resolved,
            "state": "open" if resolved is None else "resolved",
        }
    )  # fmt: skip


def _both(
    incident: Incident, where: Where, window: Window, alerts: Sequence[str], since: float
) -> tuple[Seen, list[tuple[Step, Answer]]]:
    """Looks and asks the steps at the same time: neither waits for the other."""
    bounds = where.bounds
    past = Window(end=window.end, seconds=max(window.seconds, where.window))
    subject = looking.in_series(where.prometheus, incident.whose(), past, bounds.answer / 2)
    asked = steps.questions(subject, alerts)
    look: Callable[[], Any] = functools.partial(
        looking.look, where.prometheus, where.targets, subject, incident.instances(), window, bounds, where.pods, since
    )
    ask: Callable[[], Any] = functools.partial(
        steps.ask, where.prometheus, asked, window, since, timeout=bounds.answer, budget=bounds.all
    )
    looked, answered = deadlines.at_once([look, ask], bounds.all + 3 * bounds.answer)
    if looked is None or answered is None:
        raise TimeoutError("neither Prometheus nor the processes could be asked in time")
    return looked, answered


def _is_unseen(seen: Seen, answers: Sequence[tuple[Step, Answer]]) -> bool:
    """Returns whether nothing is known of the job's work: that something answers Prometheus does not say how it is."""
    answered = any(each.kind == "target" and each.problem is None for each in seen.evidence.sources)
    shown = any(each.name != UP for each in seen.evidence.of_kind(METRIC))
    return not (answered or shown or any(step.series and "jax_" in step.query for step, _ in answers))


def _is_gone(answers: Sequence[tuple[Step, Answer]]) -> bool:
    """Returns whether Prometheus has nothing at all, not even that it was looked for."""
    return all(step.outcome in (NO_DATA, ERROR) for step, _ in answers)


def _was_seen(incident: Incident, where: Where, window: Window) -> bool:
    """Returns whether the job had metrics before the window: one that has ended has none any more."""
    subject = incident.whose()
    return subject.is_known and looking.was_seen(where.prometheus, subject, window.end, where.bounds.answer / 2)


# ------------------------------------------------------------------------------------------------------ what is said


def _verdict(
    found: Diagnosis, explaining: Sequence[Cause], others: Sequence[Cause], alerts: Sequence[AlertSeen], is_known: bool
) -> Verdict:
    """Returns `cause` or `likely` only if what was found can explain the alerts and says whom it is about."""
    if explaining:
        sure = is_known or any(each.explains_alert for each in explaining)
        return ("likely" if found.verdict == result.LIKELY else "cause") if sure else "inconclusive"
    if others:
        return "inconclusive"
    fires = any(each.confirmed and each.name in runbooks.TABLE and each.severity != "info" for each in alerts)
    if found.verdict == result.NO_FAULT and fires:
        return "inconclusive"
    return "no_fault" if found.verdict == result.NO_FAULT else "inconclusive"


class _Evidence:
    """The quotes of a report, each once, with ids. Alerts are left out: the report explains them by other evidence."""

    def __init__(self, seen: Seen) -> None:
        self.found: list[Evidence] = []
        self._alerts = {(one.source, one.place, one.quoted) for one in seen.evidence.of_kind(ALERT)}
        self._ids: dict[Quote, str] = {}

    def ids(self, quotes: Iterable[Quote]) -> list[str]:
        ids = []
        for quote in quotes:
            if (quote.source, quote.place, quote.text) in self._alerts:
                continue
            if quote not in self._ids:
                if len(self.found) >= MOST_EVIDENCE:
                    continue
                self._ids[quote] = f"e{len(self.found) + 1}"
                fields = {name: getattr(quote, name) for name in ("source", "place", "time", "process", "text")}
                self.found.append(Evidence(id=self._ids[quote], **fields))
            ids.append(self._ids[quote])
        return ids


def _causes(found: Diagnosis, names: Sequence[str], book: _Evidence) -> list[Cause]:
    return [
        Cause(
            id=each.id, title=each.title, component=each.component, where=each.where, onset=each.onset,
            impact=each.impact, confidence=each.confidence, first_action=each.first_action,
            evidence=book.ids(each.evidence), fix=each.fix, runbook=each.runbook, victims=list(each.victims),
            consequences=list(each.consequences), explains_alert=_explains(each, names),
        )
        for each in found.causes
        if book.ids(each.evidence)
    ]  # fmt: skip


def _explains(cause: result.Cause | Cause, names: Sequence[str]) -> bool | None:
    """Returns whether a cause explains any of the alerts; None if nobody can know."""
    told = [runbooks.explains(cause, each) for each in names]
    if any(told):
        return True
    return False if told and all(each is False for each in told) else None


def _kept(before: Report, names: Sequence[str]) -> list[Cause]:
    """Returns the causes of an earlier report that explain these alerts."""
    told = [each.model_copy(update={"explains_alert": _explains(each, names)}) for each in before.causes]
    return [each for each in told if each.explains_alert is not False]


def _hypotheses(found: Diagnosis, names: Sequence[str], book: _Evidence) -> list[Hypothesis]:
    """Returns the faults that something speaks for or against, and those that the runbooks expect."""
    in_table = [each for each in names if each in runbooks.TABLE]
    expected = {name for each in in_table for name in runbooks.expected(each)}
    return [
        Hypothesis.model_validate(
            {
                "id": each.id, "status": each.status, "because": each.because, "evidence": book.ids(each.evidence),
                "expected": each.id in expected,
            }
        )
        for each in found.hypotheses
        if each.id in expected or each.evidence
    ]  # fmt: skip


def _alert(kept: Kept, seen: Seen) -> AlertSeen:
    read = [each for each in seen.evidence.sources if each.kind == "prometheus" and each.problem is None]
    reported = [each for each in seen.evidence.of_kind(ALERT) if each.name == kept.name]
    own = [each for each in reported if _same(each.data.get("instance"), kept.labels.get("instance"))]
    return AlertSeen(
        name=kept.name, labels=kept.labels, summary=kept.summary, severity=kept.labels.get("severity", ""),
        status=kept.status, starts_at=None if kept.starts_at is None else timestamp(kept.starts_at),
        ends_at=None if kept.ends_at is None else timestamp(kept.ends_at), fingerprint=kept.fingerprint,
        notifications=kept.notifications, confirmed=bool(own) if read else None, runbook=runbooks.page(kept.name),
    )  # fmt: skip


def _same(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _fingerprint(key: str, causes: Sequence[str]) -> str:
    return hashlib.sha256(f"{key}:{','.join(sorted(causes))}".encode()).hexdigest()[:16]


def _runbooks(names: Sequence[str]) -> list[str]:
    return [each for each in names if each in runbooks.TABLE] or [runbooks.GENERAL]


def _do_now(verdict: str, causes: Sequence[Cause], names: Sequence[str]) -> list[str]:
    """Returns the first action of each cause that does more than slow the job, then mitigations; nothing if well.

    The mitigations are those of the cause's own runbook, else of the alerts'.
    """
    if verdict == result.NO_FAULT:
        return []
    pages = [known()[each.id].runbook for each in causes] or list(names)
    books = [runbooks.declared()[each] for each in pages if each in runbooks.declared()]
    if not books and causes:
        return list(dict.fromkeys(each.fix for each in causes))
    first = [each.first_action for each in causes if each.first_action and each.impact != SLOW]
    more = [runbooks.told(step, each) for each in books for step in each.runbook.mitigation]
    return list(dict.fromkeys([*first, *more]))[:10]


def _verify(causes: Sequence[Cause], names: Sequence[str]) -> list[str]:
    pages = [*names, *(known()[each.id].runbook for each in causes)]
    books = [runbooks.declared()[each] for each in pages if each in runbooks.declared()]
    return list(dict.fromkeys(runbooks.told(each.runbook.verify, each) for each in books))[:5]


def _collect(verdict: str, found: Diagnosis, names: Sequence[str], unseen: bool) -> list[str]:
    if verdict in (result.CAUSE, result.LIKELY):
        return []
    books = [runbooks.declared()[each] for each in names if each in runbooks.declared()]
    more = [runbooks.told(text, each) for each in books for text in each.runbook.evidence]
    first = [
        "Prometheus has no metrics of jaxobs from it within the window: compare the labels of the alert with those of "
        "the series, and see whether its processes run under jaxobs."
    ] * unseen
    return list(dict.fromkeys([*first, *found.missing, *(more if verdict == result.INCONCLUSIVE else ())]))[:20]


def _not_looked_at(seen: Seen, taken: Sequence[Step], incident: Incident) -> list[str]:
    told = ["Event logs: the agent reads none; give them to `jaxobs diagnose --event-log FILE`.", *seen.not_looked_at]
    told += [f"{each.kind} {each.name}: {each.problem}" for each in seen.evidence.sources if each.problem]
    told += [f"Step {each.id}: {each.because}" for each in taken if each.outcome == "error"]
    if incident.left_out:
        told.append(f"{incident.left_out} more alerts than an incident keeps.")
    return list(dict.fromkeys(told))[:30]
