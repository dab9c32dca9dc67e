"""Several things at the same time: nobody's change of a state or a report gets lost."""

from __future__ import annotations

import contextlib
import json
import pathlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from helpers.stub_prometheus import Stub, serving
from helpers.waiting import until

from jaxobs.ops.agent import sending, working
from jaxobs.ops.agent import serving as http_side
from jaxobs.ops.agent.incidents import Incident
from jaxobs.ops.agent.investigating import Where
from jaxobs.ops.agent.notifications import Notification, RefusedError, parse
from jaxobs.ops.agent.report import Delivery, Report
from jaxobs.ops.agent.sending import Destinations
from jaxobs.ops.agent.store import Store
from jaxobs.ops.agent.working import Agent

OWN = {"job": "train", "instance": "a:9464"}
LABELS = {**OWN, "alertname": "JaxNonFiniteValues", "severity": "critical"}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving() as found:
        found.alerts = [LABELS]
        found.series = {"up": [(OWN, 1.0)], "jax_nonfinite_total": [({**OWN, "name": "loss"}, 5.0)]}
        yield found


def notification(status: str = "firing", **more: str) -> Notification:
    return parse(json.dumps({"alerts": [{"status": status, "labels": {**LABELS, **more}}]}).encode())


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

    def send(*_: object, **__: object) -> list[Delivery]:
        is_sending.set()
        return []

    monkeypatch.setattr(sending, "send", send)
    store = Slow(str(tmp_path))
    agent = Agent(store, Where(prometheus=stub.url), Destinations(notify="http://127.0.0.1:9"), settle=0)
    agent.start()
    try:
        (name,) = agent.accept(notification())
        assert reads.wait(60)
        agent.accept(notification("resolved"))
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
    monkeypatch.setattr(http_side, "MOST_SECONDS", 0.5)
    monkeypatch.setattr(http_side, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(http_side._Server, "capture_signals", lambda self: _nothing())
    servers: list[http_side._Server] = []
    made = http_side._Server.__init__

    def noting(self: http_side._Server, config: uvicorn.Config) -> None:
        servers.append(self)
        made(self, config)

    monkeypatch.setattr(http_side._Server, "__init__", noting)
    listens = http_side.listening("127.0.0.1", 0)
    address = listens.getsockname()
    agent = Agent(Store(str(tmp_path)), Where(prometheus=stub.url))
    thread = threading.Thread(target=http_side.serve, args=(agent, listens), daemon=True)
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
