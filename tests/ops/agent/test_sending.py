"""Messages to Slack and Grafana: within bounds, whatever answers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.answering import Request, serving

from jaxobs.ops.agent import investigating, notifications, sending
from jaxobs.ops.agent.incidents import Incident
from jaxobs.ops.agent.investigating import Where
from jaxobs.ops.agent.looking import Bounds
from jaxobs.ops.agent.report import Report
from jaxobs.ops.agent.sending import Destinations

EVIL = "train <!channel> <http://evil|click> *now* @here"


@pytest.fixture(scope="module")
def report() -> Report:
    labels = {"alertname": "JaxStraggler", "job": EVIL}
    body = {"version": "4", "alerts": [{"status": "firing", "labels": labels}]}
    alerts = list(notifications.parse(json.dumps(body).encode()).alerts)
    now = time.time()
    incident = Incident(id="20260131-090500-x", subject=list(alerts[0].subject.labels), opened_at=now, asked_at=now)
    incident.take(alerts, now, 0)
    return investigating.investigate(incident, Where(prometheus="http://127.0.0.1:9", bounds=Bounds(answer=1, all=2)))


class Receiver:
    """A server that answers with the given statuses in turn, and keeps what it got."""

    url: str

    def __init__(self, statuses: list[int]) -> None:
        self.got: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.statuses = statuses

    def answer(self, request: Request) -> tuple[int, bytes, dict[str, str]]:
        self.got.append((request, dict(request.headers), json.loads(request.body)))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return status, b"", {"Location": f"{self.url}/elsewhere"}


@pytest.fixture
def receiver(request: pytest.FixtureRequest) -> Iterator[Receiver]:
    """With the statuses of the test's parameter."""
    found = Receiver(list(getattr(request, "param", [200])))
    with serving(found.answer) as found.url:
        yield found


def test_both_get_what_was_found(report: Report, receiver: Receiver) -> None:
    where = Destinations(notify=f"{receiver.url}/hook", grafana=f"{receiver.url}/", grafana_token="secret")
    sent = sending.send(report, sending.REPORTED, where)
    assert [(each.destination, each.result, each.attempts) for each in sent] == [
        ("notify", "sent", 1),
        ("grafana", "sent", 1),
    ]
    (_, _, slack), (path, headers, annotation) = receiver.got
    assert set(slack) == {"text", "blocks"} and not set("<>@") & set(json.dumps(slack, ensure_ascii=False))
    assert report.id in json.dumps(slack)
    assert path == "/api/annotations" and headers["Authorization"] == "Bearer secret"
    assert annotation["time"] > 1e12 and "inconclusive" in annotation["tags"]
    assert all(len(each) < 100 for each in annotation["tags"])


@pytest.mark.parametrize(
    ("receiver", "result", "attempts"),
    [
        ([500, 503, 200], "sent", 3),
        ([429, 200], "sent", 2),
        ([500], "failed", 3),
        ([403], "failed", 1),
        ([302], "failed", 1),
    ],
    indirect=["receiver"],
)
def test_attempts_are_bounded(report: Report, receiver: Receiver, result: str, attempts: int) -> None:
    pauses: list[float] = []
    (sent,) = sending.send(report, sending.REPORTED, Destinations(notify=receiver.url), pause=pauses.append)
    assert (sent.result, sent.attempts, len(receiver.got)) == (result, attempts, attempts)
    assert pauses == [1.0, 2.0][: attempts - 1]
    assert all(path != "/elsewhere" for path, _, _ in receiver.got)


def test_nobody_answers(report: Report) -> None:
    (sent,) = sending.send(report, sending.REPORTED, Destinations(notify="http://127.0.0.1:9"), pause=lambda _: None)
    assert (sent.result, sent.attempts) == ("failed", 3) and sent.problem


def test_the_end_closes_the_annotation(report: Report) -> None:
    verification = {"at": report.opened_at, "result": "recovered", "because": "", "steps": []}
    closed = Report.model_validate({**report.model_dump(), "verification": verification, "closed_at": report.opened_at})
    body = sending.annotation(closed, sending.CLOSED)
    assert body["timeEnd"] == body["time"] and "recovered" in body["tags"]
    assert sending.slack_payload(closed, sending.CLOSED)["text"].startswith("Closed, recovered: ")
