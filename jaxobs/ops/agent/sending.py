"""Sends what was found on: to a webhook that takes Slack's payload, and as an annotation to Grafana.

A destination that is slow, wrong or gone costs a few bounded attempts, and never the report.
"""

from __future__ import annotations

import datetime
import html
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from jaxobs.facts.events import timestamp
from jaxobs.ops.agent.report import Delivery, Report
from jaxobs.ops.agent.texts import slack
from jaxobs.ops.diagnosis.evidence import clean
from jaxobs.ops.in_time import Deadline
from jaxobs.views import access

TIMEOUT = 5.0
ATTEMPTS = 3
PAUSE = 1.0
"""Seconds before the second attempt; twice as many before the third."""
REPORTED, CLOSED = "reported", "closed"
_SIGNS = {
    "cause": ":rotating_light:", "likely": ":mag:", "inconclusive": ":grey_question:", "no_fault": ":white_check_mark:",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Destinations:
    """Addresses that get results; empty for nowhere."""

    notify: str = ""
    """A webhook that takes Slack's payload."""
    grafana: str = ""
    """The address of a Grafana."""
    grafana_token: str = ""
    url: str = ""
    """Address at which people reach the agent; without it, nothing links to reports."""

    def link(self, report: Report) -> str:
        """Returns the address of a report; empty if it is unknown."""
        return f"{self.url.rstrip('/')}/incidents/{report.id}" if self.url else ""


def send(report: Report, about: str, where: Destinations, *,
         pause: Callable[[float], object] = time.sleep) -> list[Delivery]:  # fmt: skip
    """Sends a report to each destination; returns what became of each message."""
    found = []
    if where.notify:
        found.append(_post("notify", about, where.notify, slack_payload(report, about, where.link(report)), {}, pause))
    if where.grafana:
        headers = {"Authorization": f"Bearer {where.grafana_token}"} if where.grafana_token else {}
        address = f"{where.grafana.rstrip('/')}/api/annotations"
        found.append(_post("grafana", about, address, annotation(report, about, where.link(report)), headers, pause))
    return found


def slack_payload(report: Report, about: str, address: str = "") -> dict[str, Any]:
    """Returns a message as Slack's incoming webhooks take it; others such as Mattermost and Rocket.Chat take it too."""
    if about == CLOSED and report.verification is not None:
        head = f"Closed, {report.verification.result}: {slack(report.headline)}"
    else:
        head = f"{_SIGNS[report.verdict]} {slack(report.headline)}"
    lines = [slack(report.what_happened, 1500)]
    lines += [f"• do now: {slack(each, 400)}" for each in report.do_now[:3]]
    lines += [f"• <{address}|report>"] if address else []
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


def annotation(report: Report, about: str, address: str = "") -> dict[str, Any]:
    """Returns an annotation of Grafana, over the time of the incident."""
    tags = ["jaxobs", report.verdict, *(each.id for each in report.causes[:3])]
    tags += [f"{name}:{clean(value, 60)}" for name, value in sorted(report.subject.labels.items())]
    body: dict[str, Any] = {"time": _milliseconds(report.opened_at), "tags": tags}
    if about == CLOSED and report.closed_at is not None:
        body["timeEnd"] = _milliseconds(report.closed_at)
        tags.append(report.verification.result if report.verification else "closed")
    text = slack(f"{report.headline} ({report.id})", 500)
    if address:
        text += f' <a href="{html.escape(address)}">report</a>'
    return {**body, "text": text}


def _milliseconds(moment: str) -> int:
    return int(datetime.datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() * 1000)


def _post(
    destination: str, about: str, address: str, body: Mapping[str, Any], headers: Mapping[str, str],
    pause: Callable[[float], object],
) -> Delivery:  # fmt: skip
    problem, attempt = "", 0
    for attempt in range(1, ATTEMPTS + 1):
        problem, again = _attempt(address, json.dumps(body).encode(), headers)
        if not problem or not again:
            break
        if attempt < ATTEMPTS:
            pause(PAUSE * 2 ** (attempt - 1))
    return Delivery.model_validate(
        {
            "destination": destination, "about": about, "at": timestamp(time.time()), "attempts": attempt,
            "result": "failed" if problem else "sent", "problem": problem,
        }
    )  # fmt: skip


def _attempt(address: str, body: bytes, headers: Mapping[str, str]) -> tuple[str, bool]:
    """Returns the problem, empty if there is none, and whether another attempt may help."""
    direct = [urllib.request.ProxyHandler({})] if access.is_local(address) else []
    opener = urllib.request.build_opener(access.NoRedirect, *direct)
    request = urllib.request.Request(address, data=body, headers={"Content-Type": "application/json", **headers})
    try:
        with Deadline(opener, TIMEOUT), opener.open(request, timeout=TIMEOUT) as answer:
            answer.read1(1024)
            return "", False
    except urllib.error.HTTPError as error:
        error.close()
        return f"HTTP {error.code}", error.code == 429 or error.code >= 500
    except (OSError, ValueError, HTTPException) as error:
        cause = getattr(error, "reason", error)
        return clean(getattr(cause, "strerror", None) or str(cause) or type(cause).__name__), True
