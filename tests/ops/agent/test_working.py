"""The agent without its HTTP server: what may fail inside, how long accepting takes it, and that it repeats itself."""

from __future__ import annotations

import contextlib
import json
import pathlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from helpers.stub_prometheus import Stub, serving
from helpers.waiting import until

from jaxobs.base.errors import SettingError
from jaxobs.ops import connections
from jaxobs.ops.agent import investigating, notifications, sending, working
from jaxobs.ops.agent import serving as serving_side
from jaxobs.ops.agent.incidents import Incident
from jaxobs.ops.agent.investigating import Where
from jaxobs.ops.agent.notifications import RefusedError
from jaxobs.ops.agent.report import Delivery, Report
from jaxobs.ops.agent.sending import Destinations
from jaxobs.ops.agent.serving import listening
from jaxobs.ops.agent.store import Store
from jaxobs.ops.agent.working import Agent

NOW = 1_769_850_000.0
LABELS = {"alertname": "JaxNonFiniteValues", "job": "train", "instance": "a:9464", "severity": "warning"}


def notification(*labels: dict[str, str], status: str = "firing", **more: str) -> notifications.Notification:
    alerts = [{"status": status, "labels": each} for each in labels or ({**LABELS, **more},)]
    return notifications.parse(json.dumps({"version": "4", "alerts": alerts}).encode())


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A Prometheus with a fault of one process, at the time of these tests."""
    with serving() as found:
        own = {"job": "train", "instance": "a:9464"}
        found.alerts = [LABELS]
        found.series = {
            "up": [(own, 1.0)],
            "jax_build_info": [({**own, "jax": "0.10.2"}, 1.0)],
            "jax_nonfinite_total": [({**own, "name": "loss"}, 5.0), ({"job": "other", "instance": "b"}, 9.0)],
        }
        yield found


def test_equal_answers_give_an_equal_report(stub: Stub) -> None:
    found: list[dict[str, Any]] = []
    for _ in range(3):
        incident = Incident(id="x", subject=[("job", "train")], opened_at=NOW, asked_at=NOW)
        incident.take(list(notification().alerts), NOW, 0)
        report = investigating.investigate(incident, Where(prometheus=stub.url), clock=lambda: NOW).model_dump()
        for step in report["steps"]:
            step.pop("seconds")
        found.append(report)
    assert found[0]["causes"] and found[0] == found[1] == found[2]


def test_series_of_other_jobs_are_not_looked_at(stub: Stub) -> None:
    incident = Incident(id="x", subject=[("job", "train")], opened_at=NOW, asked_at=NOW)
    incident.take(list(notification().alerts), NOW, 0)
    report = investigating.investigate(incident, Where(prometheus=stub.url), clock=lambda: NOW)
    assert {each.process for each in report.evidence} == {"a:9464"}
    stub.series["jax_nonfinite_total"].pop(0)
    stub.alerts = []
    report = investigating.investigate(incident, Where(prometheus=stub.url), clock=lambda: NOW)
    assert (report.verdict, report.evidence) == ("no_fault", [])


def test_a_cause_outlives_the_processes_that_showed_it(stub: Stub) -> None:
    """In its incident, as when somebody repaired it; not if a process started later, or another alert fires."""
    own = {"job": "train", "instance": "a:9464"}
    incident = Incident(id="x", subject=[("job", "train")], opened_at=NOW, asked_at=NOW)
    incident.take(list(notification().alerts), NOW, 0)

    def look(before: Report | None, up: float, started: float) -> Report:
        stub.series["up"] = [(own, up)]
        stub.series["jax_process_start_timestamp_seconds"] = [(own, started)]
        return investigating.investigate(incident, Where(prometheus=stub.url), before, clock=lambda: NOW)

    first = look(None, 1.0, NOW - 900)
    stub.series["jax_nonfinite_total"] = []
    kept = look(first, 0.0, NOW - 900)
    assert (kept.verdict, kept.headline, kept.evidence) == (first.verdict, first.headline, first.evidence)
    assert kept.do_now == first.do_now and "An earlier look found this cause" in kept.what_happened
    assert look(first, 1.0, NOW - 900).causes == kept.causes
    assert look(first, 0.0, NOW + 60).verdict == look(first, 1.0, NOW + 60).verdict == "inconclusive"
    earlier = first.model_copy(update={"id": "w"})
    assert look(earlier, 0.0, NOW - 900).causes == kept.causes
    assert look(earlier, 1.0, NOW - 900).verdict == "inconclusive"
    incident.take(list(notification({**LABELS, "alertname": "JaxStraggler"}).alerts), NOW, 0)
    assert look(first, 1.0, NOW - 900).verdict == "inconclusive"
    assert look(None, 0.0, NOW - 900).verdict == "inconclusive"
    stub.targets = [("http://127.0.0.1:9/metrics", own, "up")]  # nobody listens there
    assert look(first, 1.0, NOW - 900).causes == kept.causes


def test_an_investigation_that_fails_is_a_report_too(
    tmp_path: pathlib.Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    working_well = investigating.investigate

    def fails(*_: object) -> None:
        raise KeyError("made on purpose \x1b[31m")

    monkeypatch.setattr(investigating, "investigate", fails)
    monkeypatch.setattr(working, "AGAIN", 0.1)
    store = Store(str(tmp_path))
    agent = Agent(store, Where(prometheus=stub.url))
    agent.start()
    try:
        (name,) = agent.accept(notification())
        report = until(lambda: store.report(name))
        assert report is not None and (report.verdict, report.alerts[0].name) == ("inconclusive", "JaxNonFiniteValues")
        assert any("KeyError" in each and each.isprintable() for each in report.not_looked_at)
        monkeypatch.setattr(investigating, "investigate", working_well)
        until(lambda: (found := store.report(name)) is not None and found.verdict == "cause")
    finally:
        agent.stop()
    assert not agent.is_alive


def test_nothing_is_asked_before_a_webhook_is_accepted(tmp_path: pathlib.Path, stub: Stub) -> None:
    """The agent has not been started: it accepts, keeps, and asks nobody."""
    store = Store(str(tmp_path))
    agent = Agent(store, Where(prometheus=stub.url))
    names = agent.accept(notification(*({**LABELS, "job": f"job-{number}"} for number in range(50))))
    assert len({*names}) == 50 and stub.asked == []
    assert sorted(each.id for each in store.open_incidents()) == sorted(names)


def test_there_is_a_bound_on_open_incidents(
    tmp_path: pathlib.Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "MOST_OPEN", 2)
    agent = Agent(Store(str(tmp_path)), Where(prometheus=stub.url))
    agent.accept(notification(*({**LABELS, "job": f"job-{number}"} for number in range(2))))
    with pytest.raises(RefusedError) as caught:
        agent.accept(notification({**LABELS, "job": "one-more"}))
    assert caught.value.reason == "too_many_incidents"
    assert agent.accept(notification({**LABELS, "job": "job-1"}))


def test_the_subject_of_a_file_cannot_lead_out_of_the_folder(tmp_path: pathlib.Path, stub: Stub) -> None:
    agent = Agent(Store(str(tmp_path / "reports")), Where(prometheus=stub.url))
    evil = ["../../x", "/etc/passwd", "..", ".", "a\x00b", "x" * 300, "nul", "-rf"]
    agent.accept(notification(*({**LABELS, "job": each} for each in evil)))
    assert [each.name for each in tmp_path.iterdir()] == ["reports"]
    assert len(list((tmp_path / "reports" / "state").iterdir())) == len(evil)


def test_a_port_of_somebody_else_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SettingError, match="--listen"):
        listening("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(SettingError, match="--listen"):
        listening("no-such-host.invalid", 1)


# ---------------------------------------------------------------------------------------------------- at the same time


def test_an_older_state_never_replaces_a_newer_one(tmp_path: pathlib.Path, stub: Stub) -> None:
    first, go_on = threading.Event(), threading.Event()

    class Slow(Store):
        def keep(self, incident: Incident) -> None:
            if not first.is_set():
                first.set()
                go_on.wait(30)
            super().keep(incident)

    agent = Agent(Slow(str(tmp_path)), Where(prometheus=stub.url))
    one = threading.Thread(target=agent.accept, args=(notification(),))
    one.start()
    assert first.wait(30)
    two = threading.Thread(target=agent.accept, args=(notification(alertname="JaxStepsStalled"),))
    two.start()
    two.join(0.3)
    go_on.set()
    one.join()
    two.join()
    (kept,) = Store(str(tmp_path)).open_incidents()
    assert {*kept.names()} == {"JaxNonFiniteValues", "JaxStepsStalled"}


def test_a_message_that_is_sent_meanwhile_does_not_open_a_closed_report(
    tmp_path: pathlib.Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = threading.Event()

    class Slow(Store):
        def report(self, name: str) -> Report | None:
            found = super().report(name)
            if is_sending.is_set() and not reads.is_set() and threading.current_thread().name == "jaxobs-agent-2":
                reads.set()
                time.sleep(1)
            return found

    is_sending = threading.Event()

    def send(*_: object, **__: object) -> Delivery:
        is_sending.set()
        return Delivery(destination="notify", about="reported", at="", result="sent", attempts=1, problem="")

    monkeypatch.setattr(sending, "send", send)
    store = Slow(str(tmp_path))
    agent = Agent(store, Where(prometheus=stub.url), Destinations(notify="http://127.0.0.1:9", gather=0), settle=0)
    agent.start()
    try:
        (name,) = agent.accept(notification())
        assert reads.wait(60)
        agent.accept(notification(status="resolved"))
        until(lambda: not store.open_incidents())
    finally:
        agent.stop()
    report = Store(str(tmp_path)).report(name)
    assert report is not None and (report.state, report.verification is not None) == ("closed", True)


def test_forged_incidents_do_not_keep_a_true_one_out(
    tmp_path: pathlib.Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prometheus knows none of their alerts: they are closed when there is no room, those that it confirms are not."""
    monkeypatch.setattr(working, "MOST_OPEN", 3)
    store = Store(str(tmp_path))
    agent = Agent(store, Where(prometheus=stub.url))
    agent.start()
    try:
        (true_one,) = agent.accept(notification())
        forged = [agent.accept(notification(job=f"forged-{number}", instance="x"))[0] for number in range(2)]
        until(lambda: all(store.report(each) for each in (true_one, *forged)))

        def accepted() -> list[str]:
            with contextlib.suppress(RefusedError):  # Alertmanager sends it again, too.
                return agent.accept(notification(job="another"))
            return []

        assert until(accepted)
        until(lambda: all((found := store.report(each)) is not None and found.state == "closed" for each in forged))
        assert true_one in {each.id for each in agent.incidents()}
    finally:
        agent.stop()


@contextlib.contextmanager
def _nothing() -> Iterator[None]:
    yield


def test_connections_that_ask_nothing_are_ended(
    tmp_path: pathlib.Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_SECONDS", 0.5)
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(serving_side._Server, "capture_signals", lambda self: _nothing())
    servers: list[serving_side._Server] = []
    made = serving_side._Server.__init__

    def noting(self: serving_side._Server, config: uvicorn.Config) -> None:
        servers.append(self)
        made(self, config)

    monkeypatch.setattr(serving_side._Server, "__init__", noting)
    listens = serving_side.listening("127.0.0.1", 0)
    address = listens.getsockname()
    agent = Agent(Store(str(tmp_path)), Where(prometheus=stub.url))
    thread = threading.Thread(
        target=serving_side.serve, args=(agent, listens, serving_side.application(agent)), daemon=True
    )
    thread.start()
    half = [socket.create_connection(address, timeout=30) for _ in range(10)]
    try:
        for each in half:
            each.sendall(b"POST /webhook HTTP/1.1\r\nX: ")
        assert all(each.recv(1) == b"" for each in half)
        with socket.create_connection(address, timeout=30) as asks:
            asks.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert asks.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        for each in half:
            each.close()
        servers[0].should_exit = True
        thread.join(30)
        listens.close()
