"""Messages in the forms of those who take them: Slack, Grafana, PagerDuty, Opsgenie, and a template."""

import datetime
import html
import json
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.base.errors import SettingError
from jaxobs.findings.compilations.support.case import plural
from jaxobs.ops.agent.report import Report
from jaxobs.ops.agent.texts import slack
from jaxobs.ops.diagnosis.evidence import clean

REPORTED, CLOSED = "reported", "closed"
MOST_JOBS = 20
"""Jobs that a message names."""
_SIGNS = {
    "cause": ":rotating_light:", "likely": ":mag:", "inconclusive": ":grey_question:", "no_fault": ":white_check_mark:",
}  # fmt: skip
_SEVERITIES = {"critical": "critical", "warning": "warning", "info": "info"}
_PRIORITIES = {"critical": "P1", "warning": "P3", "info": "P5"}
FIELDS = (
    "about", "key", "id", "headline", "verdict", "severity", "job", "jobs", "incidents", "cause", "component", "since",
    "what_happened", "url", "first_action", "alerts",
)  # fmt: skip
"""Names that a template can have."""
Payload = Callable[["Message"], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message about incidents, the worst one first."""

    key: str
    """Id of the incident by which the destination knows them: the first one that it got."""
    about: str
    reports: tuple[Report, ...]
    is_mixed: bool = False
    """Reason why they are in one message: they have one cause; or, if set, there were too many messages."""
    url: str = ""
    """Address at which people reach the agent; empty if it is unknown."""

    @property
    def first(self) -> Report:
        """The report of the worst incident."""
        return self.reports[0]

    @property
    def address(self) -> str:
        """Address of the report, or of the list if there are several; empty if it is unknown."""
        base = self.url.rstrip("/")
        return base and (f"{base}/incidents/{self.first.id}" if len(self.reports) == 1 else f"{base}/")

    @property
    def headline(self) -> str:
        """First sentence of the message, as plain text."""
        more = len(self.reports) - 1
        others = f", and {plural(more, 'more incident' if self.is_mixed else 'more job')}" if more else ""
        others += " with the same cause" if more and not self.is_mixed else ""
        ended = self.about == CLOSED and self.first.verification
        return f"{f'Closed, {ended.result}: ' if ended else ''}{self.first.headline}{others}"

    @property
    def jobs(self) -> list[str]:
        """Names of the jobs, as many as fit."""
        names = list(dict.fromkeys(clean(each.subject.name, 100) for each in self.reports))
        return names[:MOST_JOBS] + ([f"{len(names) - MOST_JOBS} more"] if len(names) > MOST_JOBS else [])

    def fields(self) -> dict[str, str]:
        """Returns what a template can name."""
        report, cause = self.first, self.first.causes[0] if self.first.causes else None
        return {
            "about": self.about, "key": self.key, "id": report.id, "headline": clean(self.headline, 500),
            "verdict": report.verdict, "severity": report.severity, "job": clean(report.subject.name, 200),
            "jobs": ", ".join(self.jobs), "incidents": str(len(self.reports)), "cause": cause.id if cause else "",
            "component": clean(cause.component, 200) if cause else "", "since": report.opened_at,
            "what_happened": clean(report.what_happened, 1500), "url": self.address,
            "first_action": clean((cause and cause.first_action) or next(iter(report.do_now), ""), 500),
            "alerts": ", ".join(dict.fromkeys(clean(each.name, 60) for each in report.alerts[:5])),
        }  # fmt: skip


def slack_payload(message: Message) -> dict[str, Any]:
    """Returns a message as Slack's incoming webhooks take it; others such as Mattermost and Rocket.Chat take it too."""
    report, sign = message.first, f"{_SIGNS[message.first.verdict]} " if message.about == REPORTED else ""
    head = f"{sign}{slack(message.headline, 500)}"
    lines = [slack(report.what_happened, 1500)]
    if len(message.reports) > 1:
        lines.append(f"• jobs: {slack(', '.join(message.jobs), 1000)}")
    lines += [f"• do now: {slack(each, 400)}" for each in report.do_now[:3]]
    lines += [f"• <{message.address}|{'report' if len(message.reports) == 1 else 'incidents'}>"] * bool(message.address)
    lines += [f"• runbook: {each.runbook}" for each in report.causes[:1]]
    alerts = ", ".join(slack(each.name, 60) for each in report.alerts[:5])
    return {
        "text": head,
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": head}},
            {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:2900]}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": f"{report.id} · {alerts}"}]},
        ],
    }


def annotation(message: Message) -> dict[str, Any]:
    """Returns an annotation of Grafana, over the time of the incident."""
    report = message.first
    tags = ["jaxobs", report.verdict, *(each.id for each in report.causes[:3])]
    tags += [f"{name}:{clean(value, 60)}" for name, value in sorted(report.subject.labels.items())]
    body: dict[str, Any] = {"time": _milliseconds(report.opened_at), "tags": tags}
    if message.about == CLOSED and report.closed_at is not None:
        body["timeEnd"] = _milliseconds(report.closed_at)
        tags.append(report.verification.result if report.verification else "closed")
    text = slack(f"{message.headline} ({report.id})", 500)
    if message.address:
        text += f' <a href="{html.escape(message.address)}">report</a>'
    return {**body, "text": text}


def _milliseconds(moment: str) -> int:
    return int(datetime.datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() * 1000)


def pagerduty(key: str) -> Payload:
    """Returns what makes an event of PagerDuty's Events API v2; `key` is the integration key of the service."""

    def event(message: Message) -> dict[str, Any]:
        named: dict[str, Any] = {"routing_key": key, "dedup_key": message.key}
        if message.about == CLOSED:
            return {**named, "event_action": "resolve"}
        said, address = message.fields(), message.address
        links = [{"href": address, "text": "report"}] if address else []
        links += [{"href": each.runbook, "text": "runbook"} for each in message.first.causes[:1]]
        return {
            **named,
            "event_action": "trigger",
            "client": "jaxobs agent",
            **({"client_url": address} if address else {}),
            "links": links,
            "payload": {
                "summary": clean(message.headline, 1000),
                "source": said["job"] or "jaxobs agent",
                "severity": _SEVERITIES.get(message.first.severity, "error"),
                "timestamp": message.first.opened_at,
                "component": said["component"] or "unknown",
                "group": said["job"],
                "class": said["cause"] or message.first.verdict,
                "custom_details": {**said, "do_now": [clean(each, 500) for each in message.first.do_now[:5]]},
            },
        }

    return event


def opsgenie(message: Message) -> dict[str, Any]:
    """Returns an alert of Opsgenie, or what closes one."""
    if message.about == CLOSED:
        return {"source": "jaxobs agent", "note": clean(message.headline, 500)}
    said, report = message.fields(), message.first
    lines = [said["what_happened"], *(f"- {clean(each, 500)}" for each in report.do_now[:5]), message.address]
    return {
        "message": clean(message.headline, 130), "alias": message.key, "description": "\n".join(filter(None, lines)),
        "details": said, "entity": said["component"] or said["job"], "source": "jaxobs agent",
        "priority": _PRIORITIES.get(report.severity, "P2"), "tags": ["jaxobs", report.verdict],
    }  # fmt: skip


def templated(template: str) -> Payload:
    """Returns what fills in a template of JSON, whose `$names` are in strings.

    Raises:
      SettingError: it is not JSON, or names a field that does not exist.
    """

    def filled(fields: Mapping[str, str]) -> Any:
        return json.loads(
            string.Template(template).substitute({name: json.dumps(value)[1:-1] for name, value in fields.items()})
        )

    try:
        filled(dict.fromkeys(FIELDS, "x"))
    except KeyError as error:
        raise SettingError(f"The template names ${error.args[0]}. Fields: {', '.join(FIELDS)}.") from None
    except ValueError as error:
        raise SettingError(f"The template is not JSON with $names in strings: {error}.") from None
    return lambda message: filled(message.fields())
