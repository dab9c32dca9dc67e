"""Messages to Slack, Grafana, PagerDuty, Opsgenie and a webhook: in their forms, and within bounds whatever answers."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml
from helpers.answering import Request, serving
from helpers.written_reports import made

from jaxobs.base.errors import SettingError
from jaxobs.ops.agent import payloads, sending
from jaxobs.ops.agent.payloads import CLOSED, REPORTED, Message
from jaxobs.ops.agent.report import Report
from jaxobs.ops.agent.sending import Destinations

EVIL = 'train <!channel> <http://evil|click> *now* @here "\\ \n$url'
SCHEMAS = yaml.safe_load(pathlib.Path(__file__).with_name("payload_schemas.yaml").read_text())


def report(job: str = EVIL, **more: Any) -> Report:
    return made(1, subject={"name": job, "labels": {"job": job}}, headline=f"{job}: {'x' * 2000}", **more)


def message(about: str = REPORTED, *reports: Report, **more: Any) -> Message:
    return Message(key="first", about=about, reports=reports or (report(closed_at="2026-01-31T09:05:00Z"),), **more)


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


def test_each_gets_what_was_found_in_its_form(receiver: Receiver) -> None:
    to = receiver.url
    where = Destinations(
        notify=f"{to}/hook", grafana=f"{to}/", grafana_token="secret", pagerduty=to, pagerduty_key="key", opsgenie=to,
        opsgenie_key="genie", webhook=f"{to}/own", webhook_token="bearer", url="https://agent.example.org/",
        template='{"text": "$headline ($incidents)", "at": ["$url"]}',
    )  # fmt: skip
    told = message(url=where.url)
    for about in (REPORTED, CLOSED):
        sent = [sending.send(message(about, url=where.url), each) for each in where.named()]
        assert {(each.result, each.attempts, each.key) for each in sent} == {("sent", 1, "first")}
    by_path = {(path, number // 5): (headers, body) for number, (path, headers, body) in enumerate(receiver.got)}
    slack, ended = by_path["/hook", 0][1], by_path["/hook", 1][1]
    assert set(slack) == {"text", "blocks"} and "@" not in json.dumps(slack, ensure_ascii=False)
    assert f"<{told.address}|report>" in json.dumps(slack) and "<!channel" not in json.dumps(slack)
    assert ended["text"].startswith("Closed, recovered: ")
    headers, annotation = by_path["/api/annotations", 0]
    assert headers["Authorization"] == "Bearer secret" and f'<a href="{told.address}">' in annotation["text"]
    assert annotation["time"] > 1e12 and "cause" in annotation["tags"] and max(map(len, annotation["tags"])) < 100
    closed = by_path["/api/annotations", 1][1]
    assert closed["timeEnd"] > closed["time"] and "recovered" in closed["tags"]
    for number, action in enumerate(("trigger", "resolve")):
        event = by_path["/v2/enqueue", number][1]
        jsonschema.validate(event, SCHEMAS["pagerduty"])
        assert (event["event_action"], event["dedup_key"], event["routing_key"]) == (action, "first", "key")
    details = by_path["/v2/enqueue", 0][1]["payload"]["custom_details"]
    assert (details["cause"], details["url"]) == ("straggler", told.address) and "first_action" in details
    headers, alert = by_path["/v2/alerts", 0]
    jsonschema.validate(alert, SCHEMAS["opsgenie"])
    jsonschema.validate(by_path["/v2/alerts/first/close?identifierType=alias", 1][1], SCHEMAS["opsgenie_close"])
    assert (headers["Authorization"], alert["alias"], alert["priority"]) == ("GenieKey genie", "first", "P3")
    headers, own = by_path["/own", 0]
    assert headers["Authorization"] == "Bearer bearer" and own["at"] == [told.address]
    assert own["text"].startswith('train <!channel> <http://evil|click> *now* @here "\\ $url') and "(1)" in own["text"]


def test_several_jobs_are_named_in_one_message() -> None:
    reports = [report(f"job-{number}") for number in range(40)]
    for is_mixed, said in ((False, "and 39 more jobs with the same cause"), (True, "and 39 more incidents")):
        told = message(REPORTED, *reports, is_mixed=is_mixed, url="https://a.example.org")
        assert told.headline.endswith(said) and told.address == "https://a.example.org/"
        assert told.jobs[-2:] == ["job-19", "20 more"] and "job-19, 20 more" in json.dumps(payloads.slack_payload(told))
        jsonschema.validate(payloads.pagerduty("k")(told), SCHEMAS["pagerduty"])


@pytest.mark.parametrize(
    ("template", "said"), [('{"a": "$nothing"}', "names $nothing"), ('{"a": $job}', "not JSON"), ('"$', "not JSON")]
)
def test_a_template_that_does_not_fit_is_refused(template: str, said: str) -> None:
    with pytest.raises(SettingError, match=said.replace("$", r"\$")):
        payloads.templated(template)


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
def test_attempts_are_bounded(receiver: Receiver, result: str, attempts: int) -> None:
    pauses: list[float] = []
    (to,) = Destinations(notify=receiver.url).named()
    sent = sending.send(message(), to, pause=pauses.append)
    assert (sent.result, sent.attempts, len(receiver.got)) == (result, attempts, attempts)
    assert pauses == [1.0, 2.0][: attempts - 1]
    assert all(path != "/elsewhere" for path, _, _ in receiver.got)


def test_nobody_answers() -> None:
    (to,) = Destinations(notify="http://127.0.0.1:9").named()
    sent = sending.send(message(), to, pause=lambda _: None)
    assert (sent.result, sent.attempts) == ("failed", 3) and sent.problem
