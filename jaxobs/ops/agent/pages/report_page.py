"""The page of a report: what to do comes first, and what only some need is folded away."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from jaxobs.ops.agent.pages.markup import Html, joined, link, listed, page, sentence, tag, text
from jaxobs.ops.agent.report import Cause, Report, Step

_MOST_ROWS = 5
_MOST_NAMES = 20


def report_page(report: Report) -> str:
    """Returns the HTML page of a report."""
    return page(report.headline, *_parts(report))


def when(moment: str | None) -> str:
    """Returns a time without its fractions."""
    return re.sub(r"\.\d+", "", moment or "").replace("T", " ").replace("Z", " UTC")


def badge(word: str) -> Html:
    """Returns a word in the colour that belongs to it."""
    return tag("span", word.replace("_", " "), class_=f"badge {word}")


def _parts(report: Report) -> Iterator[str]:
    yield tag("nav", link("../", "All incidents"), " · ", link(f"../?job={_job(report)}", "of this job"))
    yield tag("h1", text(report.headline))
    badges = [badge(report.verdict), badge(report.state), *([badge(_word(report.severity))] if report.severity else [])]
    yield tag("p", *badges, tag("code", report.id))
    opened = f"Opened {when(report.opened_at)}, investigated {when(report.investigated_at)} in {report.seconds:g} s."
    yield tag("p", opened, class_="dim")
    yield tag("p", text(report.what_happened))
    if report.do_now:
        yield tag("section", tag("h2", "What to do now"), listed("ol", map(sentence, report.do_now)))
    yield from (_cause(each, explains=True) for each in report.causes)
    yield from (_cause(each, explains=False) for each in report.other_faults)
    if report.collect:
        yield tag("section", tag("h2", "What to collect"), listed("ul", map(text, report.collect)))
    if report.evidence:
        yield tag("section", tag("h2", "Evidence"), *_evidence(report))
    if report.timeline:
        rows = [(when(each.time), text(each.what), _refs(each.evidence)) for each in report.timeline]
        yield tag("section", tag("h2", "Timeline"), _table(rows))
    if report.known:
        known = [joined((text(f"{each.what} {each.cure}"), " ", link(each.thread, "thread"))) for each in report.known]
        yield tag("section", tag("h2", "Known incidents that read alike"), listed("ul", known))
    yield tag("section", tag("h2", "Verification"), *_verification(report))
    for title, inside in _folded(report):
        yield tag("details", tag("summary", title), *inside)
    yield tag("p", "The report for programs: ", link(f"./{report.id}.json", "JSON"), ", and as text: ",
              link(f"./{report.id}.md", "Markdown"), f". jaxobs {report.jaxobs}", class_="dim")  # fmt: skip


def _job(report: Report) -> str:
    return quote(report.subject.labels.get("job", report.subject.name), safe="")


def _word(severity: str) -> str:
    return severity if severity in ("critical", "warning", "info") else "severity unknown"


def _codes(names: Sequence[str]) -> Html:
    found = [tag("code", text(each)) for each in names[:_MOST_NAMES]]
    return joined(piece for number, each in enumerate(found) for piece in ((", ", each) if number else (each,)))


def _refs(ids: Sequence[str]) -> Html:
    return joined(piece for each in ids for piece in (link(f"#{each}", each), " "))


def _cause(cause: Cause, *, explains: bool) -> Html:
    since = f" since {when(cause.onset)}" if cause.onset else ""
    effect = f"Effect on the job: {cause.impact or 'unknown'}. Where: "
    lines = [joined((effect, tag("code", text(cause.component)), since))]
    if not explains:
        lines.insert(0, Html("It does not explain the alerts, or nobody knows whether it does."))
    if cause.where:
        lines.append(joined(("In the code: ", tag("code", text(cause.where)))))
    if cause.confidence is not None:
        lines.append(Html(f"Confidence {cause.confidence:.0%}."))
    if cause.victims:
        lines.append(joined(("Also affected: ", _codes(cause.victims))))
    lines.append(joined(("Fix: ", sentence(cause.fix), " ", link(cause.runbook, "Runbook"))))
    lines.append(joined(("Evidence: ", _refs(cause.evidence))))
    title = "Cause" if explains else "Found too"
    heading = tag("h2", f"{title}: ", text(cause.title), " ", tag("code", cause.id, class_="dim"))
    return tag("section", heading, *(tag("p", each) for each in lines))


def _evidence(report: Report) -> Iterator[Html]:
    for item in report.evidence:
        told = [f"{item.source}:{item.place}", when(item.time), item.process or ""]
        about = tag("span", text(" ".join(filter(None, told))), class_="dim")
        yield tag("p", tag("b", item.id), " ", about, Html("<br>"), tag("code", text(item.text)), id=item.id)


def _verification(report: Report) -> Iterator[Html]:
    if report.verification is not None:
        result = badge(report.verification.result)
        yield tag("p", result, when(report.closed_at), " ", text(report.verification.because))
    if report.verify:
        yield listed("ol", map(sentence, report.verify))


def _folded(report: Report) -> Iterator[tuple[str, list[Html]]]:
    alerts = [
        (text(each.name), each.status, f"{each.notifications} webhooks",
         {True: "Prometheus reports it", False: "Prometheus does not report it", None: ""}[each.confirmed],
         tag("code", text(", ".join(f"{key}={value}" for key, value in sorted(each.labels.items())))),
         link(each.runbook, "runbook"))
        for each in report.alerts
    ]  # fmt: skip
    yield "Alerts", [_table(alerts)]
    radius = report.blast_radius
    affected = [tag("p", text(radius.summary)), tag("p", _codes(radius.affected))]
    silent = [tag("p", "They do not answer: ", _codes(radius.unreachable))] if radius.unreachable else []
    yield "Who is affected", affected + silent
    if report.do_for_good:
        yield "What to do for good", [listed("ol", map(text, report.do_for_good))]
    yield "Steps", [_step(each) for each in report.steps]
    considered = [
        (tag("code", each.id), each.status.replace("_", " "), text(each.because), _refs(each.evidence))
        for each in report.hypotheses
        if each.status != "no_data"
    ]
    if considered:
        yield "Considered", [_table(considered)]
    versions = {name: ", ".join(values) for name, values in report.context.versions.items()}
    hits, requests = report.context.cache_hits, report.context.cache_requests
    if hits is not None:
        versions["hits of the persistent cache"] = f"{hits:.0%} of {requests:.0f} requests"
    said = [f"{name}: {value}" for name, value in versions.items()]
    said += [f"changed: {each}" for each in report.context.version_changes]
    yield "Cache and versions", [listed("ul", map(text, said))]
    for title, told in (("Sources", report.sources), ("Sources not read", report.not_looked_at)):
        if told:
            yield title, [listed("ul", map(text, told))]
    actions = [
        joined((each.action, " on ", tag("code", text(each.target)), ": ", text(each.why),
                tag("pre", tag("code", text(each.command)))))
        for each in report.suggested_actions
    ]  # fmt: skip
    taken = [text(f"{each.action} on {each.target}: {each.decision}. {each.reason}") for each in report.actions]
    if actions or taken:
        yield "Actions", [listed("ul", [*actions, *taken])]
    if report.deliveries:
        sent = [f"{when(each.at)} {each.destination}, {each.about}: {each.result} {each.problem}"
                for each in report.deliveries]  # fmt: skip
        yield "Sent on", [listed("ul", map(text, sent))]


def _step(step: Step) -> Html:
    shown = [
        f"{', '.join(f'{key}={value}' for key, value in sorted(row.labels.items()))} {row.first:.6g} -> {row.last:.6g}"
        for row in step.answer[:_MOST_ROWS]
    ]
    left = [f"{step.series - len(shown)} more"] if step.series > len(shown) else []
    answer = [tag("pre", *(joined((text(each), "\n")) for each in [*shown, *left]))] if shown else []
    said = tag("p", sentence(f"{step.do} {step.because}"))
    return tag("div", tag("h3", text(step.id), " ", badge(step.outcome)), said, tag("pre", text(step.query)), *answer)


def _table(rows: Sequence[Sequence[str]]) -> Html:
    return tag("div", tag("table", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows)), class_="wide")
