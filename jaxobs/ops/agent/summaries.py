"""Summary of the reports of some days, and the draft of a postmortem: Markdown."""

import collections
import datetime
import statistics
from collections.abc import Iterable, Iterator, Sequence

from jaxobs.facts.events import timestamp
from jaxobs.findings.compilations.support.case import plural
from jaxobs.ops.agent.report import Context, Report
from jaxobs.ops.agent.texts import code, escaped

MOST_LISTED = 50
_DAY = 86_400.0


def summary(reports: Iterable[Report], now: float, days: float = 7.0) -> str:
    """Returns a summary of the incidents that were opened in the last days.

    Args:
      now: seconds since the epoch.
    """
    since, before = timestamp(now - days * _DAY), timestamp(now - 2 * days * _DAY)
    every = sorted(reports, key=lambda each: each.opened_at)
    found = [each for each in every if since <= each.opened_at <= timestamp(now)]
    earlier = [each for each in every if before <= each.opened_at < since]
    return "\n".join(_summary(found, earlier, since, timestamp(now))) + "\n"


def _summary(found: Sequence[Report], earlier: Sequence[Report], since: str, until: str) -> Iterator[str]:
    yield f"# Incidents from {_short(since)} to {_short(until)}\n"
    yield f"{plural(len(found), 'incident')}; {len(earlier)} in as many days before.\n"
    if not found:
        return
    yield "| verdict | incidents |"
    yield "|---|---:|"
    for verdict, count in collections.Counter(each.verdict for each in found).most_common():
        yield f"| {verdict} | {count} |"
    ended = [each for each in found if each.verification is not None]
    results = collections.Counter(each.verification.result for each in ended if each.verification is not None)
    lasted = [_seconds(each.opened_at, each.resolved_at) for each in found if each.resolved_at]
    yield ""
    if lasted:
        middle, longest = _length(statistics.median(lasted)), _length(max(lasted))
        yield f"- from the first webhook to the end of the last alert: {middle} (median), {longest} (longest)"
    yield f"- verified: {', '.join(f'{name} {count}' for name, count in results.most_common()) or 'none'}"
    yield f"- from the webhook to the report: {statistics.median(each.seconds for each in found):.1f} s (median)"
    yield "\n## By job\n"
    yield "| job | incidents | causes |"
    yield "|---|---:|---|"
    by_job = collections.Counter(each.subject.name for each in found)
    for name, count in by_job.most_common(MOST_LISTED):
        causes = collections.Counter(
            cause.id for each in found if each.subject.name == name for cause in each.causes[:1]
        )  # fmt: skip
        said = ", ".join(f"{code(cause)} {times}" for cause, times in causes.most_common())
        yield f"| {escaped(name, 100)} | {count} | {said or 'none named'} |"
    yield from _alerts(found)
    again = [each for each in found if each.verification and each.verification.result == "not_recovered"]
    yield from _listed("Not recovered", again)
    yield from _listed(
        "Inconclusive: what would help is in each report", [e for e in found if e.verdict == "inconclusive"]
    )
    yield "\n## Cache and versions\n"
    yield "| incident | hits of the persistent cache | versions | changes |"
    yield "|---|---:|---|---|"
    for each in found[-MOST_LISTED:]:
        yield f"| {code(each.id)} | {_hits(each.context)} | {_versions(each.context)} | {_changes(each.context)} |"


def _alerts(found: Sequence[Report]) -> Iterator[str]:
    yield "\n## By alert\n"
    yield "| alert | incidents | with a cause | no fault |"
    yield "|---|---:|---:|---:|"
    names = collections.Counter(name for each in found for name in {alert.name for alert in each.alerts})
    for name, count in names.most_common(MOST_LISTED):
        own = [each for each in found if any(alert.name == name for alert in each.alerts)]
        causes = sum(each.verdict in ("cause", "likely") for each in own)
        nothing = sum(each.verdict == "no_fault" for each in own)
        yield f"| {escaped(name, 100)} | {count} | {causes} | {nothing} |"


def _listed(title: str, reports: Sequence[Report]) -> Iterator[str]:
    if reports:
        yield f"\n## {title}\n"
        yield from (f"- {code(each.id)} {escaped(each.headline)}" for each in reports[:MOST_LISTED])


def postmortem(report: Report) -> str:
    """Returns a draft of a postmortem: it fills in what is known, and asks for what only people know."""
    return "\n".join(_postmortem(report)) + "\n"


def _postmortem(report: Report) -> Iterator[str]:
    lasted = _length(_seconds(report.opened_at, report.resolved_at)) if report.resolved_at else "not over"
    yield f"# Postmortem (draft): {escaped(report.headline)}\n"
    yield f"Incident {code(report.id)}, {_short(report.opened_at)}, {lasted}. A draft by `jaxobs agent`."
    yield "\n## Summary\n"
    yield escaped(report.what_happened, 2000)
    yield "\n## Impact\n"
    yield f"- {escaped(report.blast_radius.summary)}"
    yield f"- effect on the job: {report.impact or 'unknown'}"
    yield "- *Work lost, users affected, cost: to be filled in.*"
    yield "\n## Root cause\n"
    for cause in report.causes:
        where = f"at {code(cause.component)}, evidence {', '.join(cause.evidence)}"
        yield f"- {escaped(cause.title)} ({code(cause.id)}) {where}"
    if not report.causes:
        yield "- Not known. What would have shown it:"
        yield from (f"  - {escaped(each, 500)}" for each in report.collect[:10])
    yield "- *Why it could happen: to be filled in.*"
    yield "\n## Timeline\n"
    yield from (f"- {_short(each.time)} {escaped(each.what)}" for each in report.timeline)
    if report.verification is not None:
        told = f"{report.verification.result}. {escaped(report.verification.because)}"
        yield f"- {_short(report.verification.at)} Verified: {told}"
    yield "\n## Detection\n"
    yield f"- alerts: {', '.join(dict.fromkeys(escaped(each.name, 100) for each in report.alerts))}"
    onset = next((each.onset for each in report.causes if each.onset), None)
    if onset is not None:
        yield f"- from the first sign to the first webhook: {_length(_seconds(onset, report.opened_at))}"
    yield f"- from the webhook to the report: {report.seconds:g} s"
    yield "\n## Cache and versions\n"
    yield f"- hits of the persistent cache: {_hits(report.context)}"
    yield f"- versions: {_versions(report.context)}"
    yield f"- changes: {_changes(report.context)}"
    restarts = report.context.restarts
    yield f"- starts of processes within the window: {'unknown' if restarts is None else restarts}"
    yield "\n## Actions\n"
    yield from (f"- [ ] {escaped(each, 1000)}" for each in report.do_for_good)
    yield "- [ ] *What would have prevented it: to be filled in.*"
    yield "- [ ] *What would have shown it earlier: to be filled in.*"
    yield "\n## Evidence\n"
    for item in report.evidence:
        yield f"- {item.id} {code(f'{item.source}:{item.place}')} {code(item.text)}"


def _hits(context: Context) -> str:
    return "unknown" if context.cache_hits is None else f"{context.cache_hits:.0%} of {context.cache_requests:.0f}"


def _versions(context: Context) -> str:
    told = [f"{name} {' and '.join(code(each, 60) for each in values)}" for name, values in context.versions.items()]
    return ", ".join(told) or "unknown"


def _changes(context: Context) -> str:
    return ", ".join(code(each) for each in context.version_changes) or "none"


def _seconds(start: str, end: str | None) -> float:
    return 0.0 if end is None else max(0.0, (_moment(end) - _moment(start)).total_seconds())


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def _short(moment: str) -> str:
    return f"{moment[:19]}Z"


def _length(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
