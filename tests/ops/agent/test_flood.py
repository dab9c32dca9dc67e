"""Floods of webhooks: what is written is bounded, and a true alert gets through."""

import json
import logging
import math
import pathlib
import time
from collections.abc import Iterator

import pytest
from helpers.stub_prometheus import Stub, serving
from helpers.waiting import until
from starlette.testclient import TestClient

from jaxobs.ops.agent import flood
from jaxobs.ops.agent.flood import Flood
from jaxobs.ops.agent.incidents import REPORTED
from jaxobs.ops.agent.investigating import Where
from jaxobs.ops.agent.serving import application
from jaxobs.ops.agent.store import Store
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.agent.working import Agent

LABELS = {"alertname": "JaxNonFiniteValues", "job": "train", "instance": "a:9464", "severity": "warning"}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving() as found:
        found.alerts = [LABELS, {"alertname": "Watchdog"}]
        yield found


class Posts:
    """An agent whose clock stands still, and what it has written."""

    def __init__(self, folder: pathlib.Path, stub: Stub, keep_bytes: float = math.inf) -> None:
        self.store = Store(str(folder), keep_bytes=keep_bytes)
        self.agent = Agent(self.store, Where(prometheus=stub.url), settle=0)
        self.client = TestClient(application(self.agent))
        self.written: list[int] = []
        self.agent._flood._clock = lambda: 0.0
        charge = self.store.wrote
        self.store.wrote = lambda count: (self.written.append(count), charge(count))[1]

    def post(self, *labels: dict[str, str], status: str = "firing") -> int:
        alerts = [{"status": status, "labels": each} for each in labels]
        return self.client.post("/webhook", json={"version": "4", "alerts": alerts}).status_code


def forged(first: int, count: int) -> list[dict[str, str]]:
    return [{**LABELS, "job": f"forged-{number}"} for number in range(first, first + count)]


def test_a_true_alert_gets_through_a_flood(tmp_path: pathlib.Path, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Webhooks of thousands of subjects: beyond the bound they are refused, and those that wait are not written."""
    monkeypatch.setattr(flood, "MOST_AT_ONCE", 200_000)
    posts = Posts(tmp_path, stub)
    posts.agent.start()
    try:
        assert {posts.post(*forged(200 * number, 200)) for number in range(20)} == {202, 503}
        until(lambda: not posts.agent._flood.has_room() and posts.agent._flood.reports(Subject.of(LABELS)))
        assert posts.post(*forged(9000, 1)) == 503
        assert posts.post(LABELS) == 202
        [incident] = [each for each in posts.agent.incidents() if dict(each.subject)["job"] == "train"]
        assert (tmp_path / "state" / f"{incident.id}.json").exists()
        until(lambda: posts.store.report(incident.id))
        assert sum(each.revision == 0 for each in posts.agent.incidents()) > 400, "they wait"
        assert sum(posts.written) < 600_000
    finally:
        posts.agent.stop()


def test_a_flood_fills_no_disk(tmp_path: pathlib.Path, stub: Stub) -> None:
    """Reports of forged incidents give way, open ones too; the true alert's report comes, and stays."""
    posts = Posts(tmp_path, stub, keep_bytes=200_000)
    posts.agent._flood._clock = time.monotonic  # There is room to write them.
    posts.agent.start()

    def is_quiet() -> bool:
        return all(each.phase == REPORTED for each in posts.agent.incidents())

    try:
        for number in range(3):
            assert posts.post(*forged(10 * number, 10)) == 202
            if number == 1:
                assert posts.post(LABELS) == 202
            until(is_quiet)
        assert posts.post(*forged(100, 1)) == 202
        until(lambda: is_quiet() and not posts.store.is_over)
    finally:
        posts.agent.stop()
    assert sum(path.stat().st_size for path in tmp_path.rglob("2*-*-*.*")) < 220_000, "a report more at most"
    assert "reports_removed_total 0.0" not in posts.client.get("/metrics").text
    [incident] = [each for each in posts.agent.incidents() if dict(each.subject)["job"] == "train"]
    report = posts.store.report(incident.id)
    assert report is not None and [each.confirmed for each in report.alerts] == [True]


def test_repeated_webhooks_of_one_incident_write_no_more_than_the_allowance(
    tmp_path: pathlib.Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts and states wait, whether the alert fires or resolves, until there is room or the agent ends."""
    monkeypatch.setattr(flood, "MOST_AT_ONCE", 50_000)
    posts = Posts(tmp_path, stub)
    unknown = {**LABELS, "job": "unknown", "instance": "x" * 250}
    for number in range(1000):
        assert posts.post(unknown, status=("firing", "resolved")[number % 2]) == 202
    assert sum(posts.written) < 60_000
    [incident] = posts.agent.incidents()
    assert incident.notifications == 1000
    posts.agent.stop()
    assert [each.notifications for each in posts.store.open_incidents()] == [1000]


def test_the_allowance_comes_back_after_any_storm(stub: Stub) -> None:
    now = [0.0]
    found = Flood(stub.url, lambda: now[0])
    assert found.has_room()
    found.wrote(10**12)
    assert not found.has_room()
    now[0] = 60 * flood.MOST_AT_ONCE / flood.PER_MINUTE + 1
    assert found.has_room()
    found.wrote(flood.PER_MINUTE)
    assert not found.has_room()
    now[0] += 10**6
    found.wrote(flood.MOST_AT_ONCE)
    assert not found.has_room(), "an idle agent saves up no more than it may write at once"


def test_an_alert_vouches_for_its_own_subject_alone(stub: Stub) -> None:
    """Labels that an Alertmanager sees and Prometheus does not are let pass: they are added on the way."""
    found = Flood(stub.url)
    assert not found.reports(Subject.of(LABELS))
    found.look()
    assert found.reports(Subject.of(LABELS)) and found.reports(Subject.of({**LABELS, "cluster": "eu"}))
    assert found.reports(Subject.of({"alertname": "Watchdog"}))
    stub.alerts = [{**LABELS, "namespace": "ml"}]
    found._look_at = 0.0
    found.look()
    assert found.reports(Subject.of({**LABELS, "namespace": "ml"}))
    for other in ({**LABELS, "namespace": "other"}, {**LABELS, "job": "other"}, {"alertname": "Watchdog"}):
        assert not found.reports(Subject.of(other))
    asked = len(stub.asked)
    found.look()
    assert len(stub.asked) == asked, "it was asked just now"


def test_prometheus_does_not_answer_and_the_flood_is_bounded_all_the_same(
    tmp_path: pathlib.Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flood, "MOST_AT_ONCE", 50_000)
    stub.body = b"no"
    posts = Posts(tmp_path, stub)
    posts.agent._flood.look()
    for number in range(20):
        posts.post(*forged(200 * number, 200))
    assert sum(posts.written) < 60_000 and posts.agent._take_due() is None


def test_refusals_are_counted_and_not_each_of_them_logged(
    tmp_path: pathlib.Path, stub: Stub, caplog: pytest.LogCaptureFixture
) -> None:
    posts = Posts(tmp_path, stub)
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            assert (
                posts.client.post("/webhook", content=b"{", headers={"Content-Type": "text/plain"}).status_code == 415
            )
            assert posts.client.post("/webhook", json=[]).status_code == 400
    assert len([each for each in caplog.records if "is refused" in each.getMessage()]) == 2
    assert 'reason="content_type"} 50.0' in posts.client.get("/metrics").text


def test_the_labels_of_an_alert_are_bounded_together(tmp_path: pathlib.Path, stub: Stub) -> None:
    posts = Posts(tmp_path, stub)
    posts.post({**LABELS, **{f"label_{number}": "x" * 300 for number in range(40)}})
    [incident] = posts.agent.incidents()
    [alert] = incident.alerts.values()
    assert len(json.dumps(alert.labels)) < 6000 and LABELS.items() <= alert.labels.items()
