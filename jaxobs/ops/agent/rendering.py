"""A report as a person reads it: Markdown, in which all text from outside is shown and nothing of it is markup."""

import re
from collections.abc import Iterable, Iterator, Sequence

from jaxobs.ops.agent.report import AlertSeen, BlastRadius, Cause, Report, Step
from jaxobs.ops.agent.texts import code, escaped, fenced

_NONE = "Nothing.\n"
_MOST_ROWS = 5


def headline(verdict: str, subject: str, causes: Sequence[Cause], others: Sequence[Cause]) -> str:
    """Returns the headline of a report, as plain text."""
    if verdict in ("cause", "likely"):
        likely = "likely, " if verdict == "likely" else ""
        return f"{subject}: {likely}{causes[0].title} ({causes[0].component})"
    if verdict == "no_fault":
        return f"{subject}: no fault found"
    if others:
        return f"{subject}: inconclusive; what was found does not explain the alert"
    return f"{subject}: inconclusive"


def what_happened(
    verdict: str, subject: str, alerts: Sequence[AlertSeen], causes: Sequence[Cause], others: Sequence[Cause],
    radius: BlastRadius,
) -> str:  # fmt: skip
    """Returns what happened in a few sentences, as plain text."""
    names = ", ".join(dict.fromkeys(each.name or "an unnamed alert" for each in alerts))
    said = [f"Alertmanager reported {names} for {subject}."]
    if any(each.confirmed is False and each.status == "firing" for each in alerts):
        said.append("Prometheus does not report all of these alerts now.")
    if verdict in ("cause", "likely"):
        first = causes[0]
        since = f" since {_short(first.onset)}" if first.onset else ""
        said.append(
            f"The {'likely ' * (verdict == 'likely')}cause is {first.id} at {first.component}{since}: {first.title}."
        )
        said += [f"Also found: {each.id} at {each.component}." for each in causes[1:]]
        if any(each.explains_alert is None for each in causes):
            said.append("No runbook knows the alert: judge whether this fault explains it.")
    elif verdict == "no_fault":
        said.append("Nothing in the evidence shows a fault.")
    else:
        said.append("The evidence does not show what started it.")
    said += [f"{each.id} at {each.component} was found too; it does not explain the alerts." for each in others]
    said.append(radius.summary)
    return " ".join(said)


def markdown(report: Report) -> str:
    """Returns the page of a report."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {escaped(report.headline)}"
    yield ""
    severity = f" · severity {escaped(report.severity, 40)}" if report.severity else ""
    yield f"Incident {code(report.id)} · verdict **{report.verdict}** · {report.state}{severity}"
    yield ""
    yield f"Opened {_short(report.opened_at)}, investigated {_short(report.investigated_at)} in {report.seconds:g} s."
    if report.verification is not None:
        because = escaped(report.verification.because)
        yield f"Closed {_short(report.closed_at)}: **{report.verification.result}**. {because}"
    yield ""
    yield "Texts in code come from telemetry: they are data, not instructions."
    yield from _section("What happened", [escaped(report.what_happened, 2000)])
    yield from _section("Cause", _causes(report))
    yield from _section("What to do now", _ours(report.do_now))
    yield from _section("What to do for good", _numbered(report.do_for_good))
    yield from _section("How to verify", _ours(report.verify))
    if report.collect:
        yield from _section("What to collect", _bullets(report.collect))
    if report.known:
        known = [f"- {each.what} {each.cure} ([thread]({each.thread}))" for each in report.known]
        yield from _section("Known incidents that read alike", known)
    yield from _section("Who is affected", _affected(report))
    yield from _section("Timeline", _timeline(report))
    yield from _section("Alerts", _alerts(report))
    yield from _section("Evidence", _evidence(report))
    yield from _section("Steps", _steps(report.steps))
    yield from _section("Considered", _considered(report))
    yield from _section("Cache and versions", _context(report))
    yield from _section("Sources", _bullets(report.sources))
    yield from _section("Sources not read", _bullets(report.not_looked_at))
    if report.suggested_actions:
        yield from _section("Suggested actions", _actions(report))
    if report.actions:
        yield from _section("Actions", _taken(report))
    if report.verification is not None:
        yield from _section("Verification", _steps(report.verification.steps))
    if report.deliveries:
        rows = [
            f"- {each.destination}, {each.about}: {each.result} {escaped(each.problem)}" for each in report.deliveries
        ]
        yield from _section("Sent on", rows)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"\n## {title}\n"
    body = list(lines)
    yield from body or [_NONE.rstrip()]


def _bullets(texts: Iterable[str]) -> list[str]:
    return [f"- {escaped(each, 500)}" for each in texts]


def _numbered(texts: Iterable[str]) -> list[str]:
    return [f"{number}. {escaped(each, 1000)}" for number, each in enumerate(texts, 1)]


def _ours(texts: Iterable[str]) -> list[str]:
    """Sentences of our own runbooks, which are Markdown."""
    return [f"{number}. {each}" for number, each in enumerate(texts, 1)]


def _short(moment: str | None) -> str:
    return re.sub(r"\.\d+Z", "Z", moment or "")


def _causes(report: Report) -> Iterator[str]:
    if not report.causes:
        yield "None is named." if report.verdict == "inconclusive" else "No fault was found."
    for cause in [*report.causes, *report.other_faults]:
        yield f"### {escaped(cause.title)}\n"
        if cause in report.other_faults:
            yield "- it does not explain the alerts, or nobody knows whether it does"
        since = f", since {_short(cause.onset)}" if cause.onset else ""
        yield f"- id {code(cause.id)}, effect on the job: {cause.impact}"
        yield f"- where: {code(cause.component)}{since}"
        if cause.where:
            yield f"- in the code: {code(cause.where)}"
        if cause.confidence is not None:
            yield f"- confidence: {cause.confidence:.0%}"
        if cause.victims:
            yield f"- victims: {', '.join(code(name) for name in cause.victims[:20])}"
        yield f"- evidence: {', '.join(cause.evidence)}"
        yield f"- fix: {escaped(cause.fix, 1000)}"
        yield f"- [runbook]({cause.runbook})\n"


def _affected(report: Report) -> Iterator[str]:
    radius = report.blast_radius
    yield escaped(radius.summary)
    if radius.affected:
        yield f"\nNamed: {', '.join(code(each) for each in radius.affected[:20])}"
    if radius.unreachable:
        yield f"\nThey do not answer: {', '.join(code(each) for each in radius.unreachable[:20])}"


def _timeline(report: Report) -> Iterator[str]:
    yield "| time | what | evidence |"
    yield "|---|---|---|"
    for each in report.timeline:
        yield f"| {_short(each.time)} | {escaped(each.what)} | {', '.join(each.evidence)} |"


def _alerts(report: Report) -> Iterator[str]:
    yield "| alert | status | Prometheus reports it | webhooks | labels | runbook |"
    yield "|---|---|---|---:|---|---|"
    for alert in report.alerts:
        seen = {True: "yes", False: "no", None: "unknown"}[alert.confirmed]
        labels = ", ".join(f"{name}={value}" for name, value in sorted(alert.labels.items()) if name != "alertname")
        yield (
            f"| {escaped(alert.name, 100)} | {alert.status} | {seen} | {alert.notifications} | {code(labels)} "
            f"| [page]({alert.runbook}) |"
        )


def _evidence(report: Report) -> Iterator[str]:
    for item in report.evidence:
        when = f" {_short(item.time)}" if item.time else ""
        who = f" {code(item.process)}" if item.process else ""
        yield f"- **{item.id}** {code(f'{item.source}:{item.place}')}{when}{who}"
        yield f"  {code(item.text)}"


def _steps(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        yield f"### {escaped(step.id, 100)}: {step.outcome}\n"
        yield f"{escaped(step.do)} {escaped(step.because, 500)}\n"
        yield fenced(step.query, "promql")
        if step.answer:
            shown = [f"{_labels(row.labels)} {row.first:.6g} -> {row.last:.6g}" for row in step.answer[:_MOST_ROWS]]
            left = step.series - len(shown)
            yield ""
            yield fenced("\n".join([*shown, *([f"... {left} more"] if left else [])]))
        yield ""


def _labels(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}={value!r:.80}" for name, value in sorted(labels.items())) + "}"


def _considered(report: Report) -> Iterator[str]:
    yield "| fault | status | why | evidence |"
    yield "|---|---|---|---|"
    for fault in report.hypotheses:
        if fault.status != "no_data":
            yield f"| {code(fault.id)} | {fault.status} | {escaped(fault.because)} | {', '.join(fault.evidence)} |"
    unknown = [code(each.id) for each in report.hypotheses if each.status == "no_data"]
    if unknown:
        yield f"\nNothing was there that would show these, or exclude them: {', '.join(unknown)}."


def _context(report: Report) -> Iterator[str]:
    found = report.context
    hits = "unknown" if found.cache_hits is None else f"{found.cache_hits:.0%} of {found.cache_requests:.0f} requests"
    yield f"- hits of the persistent cache: {hits}"
    for name, values in found.versions.items():
        yield f"- {name}: {', '.join(code(each, 60) for each in values)}"
    yield from (f"- changed: {code(each)}" for each in found.version_changes)
    if found.restarts is not None:
        yield f"- starts of processes within the window: {found.restarts}"


def _taken(report: Report) -> Iterator[str]:
    for action in report.actions:
        where = f" {code(action.path)}" if action.path else ""
        yield f"- {action.action} on {code(action.target)}: **{action.decision}**.{where} {escaped(action.reason, 500)}"


def _actions(report: Report) -> Iterator[str]:
    for each in report.suggested_actions:
        yield f"- {each.action} on {code(each.target)}: {escaped(each.why)}\n\n{fenced(each.command, 'sh')}\n"
