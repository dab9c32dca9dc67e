"""The endpoint, asked over real sockets: every path, every refusal, bad clients, many clients, and its end."""

import base64
import contextlib
import errno
import gzip
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from helpers.endpoints import answers, ask, connect, serving
from helpers.made_by_hand import compilation, full_store
from helpers.waiting import until

from jaxobs.base import guard
from jaxobs.base.config import Settings
from jaxobs.base.errors import PortTakenError, SettingError
from jaxobs.exporters.forms.exposition import OPENMETRICS, TEXT
from jaxobs.facts.kinds import event_types
from jaxobs.session import lifecycle
from jaxobs.state import store
from jaxobs.state.store import Store
from jaxobs.web import connections, page, server
from jaxobs.web.server import Handle

pytestmark = pytest.mark.usefixtures("fresh")

PATHS = ["/", "/metrics", "/healthz", "/api/v1/snapshot", "/api/v1/events", "/api/v1/verdict"]


@pytest.fixture
def endpoint() -> Iterator[Handle]:
    """An endpoint over a store that knows something of everything."""
    with serving() as handle:
        yield handle


# --------------------------------------------------------------------------------------------------- paths


def test_metrics_as_text_and_as_openmetrics(endpoint: Handle) -> None:
    response, body = ask(endpoint)
    assert (response.status, response.headers["Content-Type"]) == (200, TEXT)
    assert re.search(rb'^jax_function_calls_total{function="train.step"} 3(\.0)?$', body, re.MULTILINE)
    response, body = ask(endpoint, Accept="application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3")
    assert response.headers["Content-Type"] == OPENMETRICS
    assert body.endswith(b"# EOF\n")


def test_the_page_allows_itself_nothing_but_itself(endpoint: Handle) -> None:
    """The policy that the page was written for is the one that is sent."""
    response, body = ask(endpoint, "/")
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = response.headers["Content-Security-Policy"]
    assert ("Content-Security-Policy", policy) == page.header()
    assert body == page.render()
    for script in re.findall(rb"<script>(.*?)</script>", body, re.DOTALL):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" in policy
    assert policy.count("sha256-") == body.count(b"<script>") and "unsafe" not in policy.replace(
        "style-src 'unsafe-", ""
    )


def test_health(endpoint: Handle) -> None:
    """For a liveness probe: no work at all."""
    response, body = ask(endpoint, "/healthz")
    assert (response.status, body) == (200, b"ok\n")


def test_the_snapshot_as_json(endpoint: Handle) -> None:
    """The response is `snapshot()` in the words of the dataclasses."""
    response, body = ask(endpoint, "/api/v1/snapshot")
    assert response.headers["Content-Type"] == "application/json"
    answer = json.loads(body)
    [function] = answer["functions"]
    assert function["compilations"] == {"first_call": {"miss": 1}, "shape": {"hit": 1}}
    assert answer["process"]["pid"] == os.getpid()
    assert answer["devices"][0]["memory"]["in_use_bytes"] == 3
    assert answer["last_sequence"] == 6


def test_events_since_a_number_and_of_a_kind(endpoint: Handle) -> None:
    """`next` is what to ask with next time; nothing comes twice and nothing is left out."""
    answer = json.loads(ask(endpoint, "/api/v1/events")[1])
    assert [event["sequence"] for event in answer["events"]] == [1, 2, 3, 4, 5, 6]
    assert (answer["next"], answer["dropped"]) == (6, 0)
    assert all({"time", "event", "process_index", "pid"} <= set(event) for event in answer["events"])
    answer = json.loads(ask(endpoint, "/api/v1/events?since=1&kind=compilation")[1])
    assert [(event["sequence"], event["event"]) for event in answer["events"]] == [(2, "compilation")]
    assert json.loads(ask(endpoint, "/api/v1/events?since=6")[1])["events"] == []


@pytest.mark.parametrize("kind", event_types())
def test_every_kind_of_the_contract_can_be_asked_for(endpoint: Handle, kind: str) -> None:
    assert ask(endpoint, f"/api/v1/events?kind={kind}")[0].status == 200


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_its_length_and_says_not_to_keep_it(endpoint: Handle, path: str) -> None:
    """No cache between us and Prometheus; no guessing at types; no address handed on; a HEAD gets that alone."""
    response, body = ask(endpoint, path)
    head, nothing = ask(endpoint, path, "HEAD")
    known = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
    known["Content-Length"] = str(len(body))
    assert {name: response.headers[name] for name in known} == known
    assert (head.status, nothing) == (200, b"")
    if path not in ("/api/v1/snapshot", "/metrics"):  # these two tell the time
        assert head.headers["Content-Length"] == str(len(body))


@pytest.mark.parametrize(
    ("accept", "compressed"),
    [
        ("gzip", True), ("gzip, deflate, br, zstd", True), ("GZIP;q=0.5", True), ("deflate;q=1, gzip;q=0.1", True),
        ("gzip;q=0", False), ("gzip; q=0.0", False), ("identity", False), ("x-gzip-like", False), ("", False),
    ],
)  # fmt: skip
def test_answers_are_compressed_for_those_who_take_it(endpoint: Handle, accept: str, compressed: bool) -> None:
    response, body = ask(endpoint, "/", Accept_Encoding=accept)
    assert (response.headers.get("Content-Encoding") == "gzip") is compressed
    assert response.headers["Content-Length"] == str(len(body))
    assert (gzip.decompress(body) if compressed else body) == page.render()
    assert "Accept-Encoding" in response.headers["Vary"]


def test_a_small_answer_is_not_compressed(endpoint: Handle) -> None:
    assert "Content-Encoding" not in ask(endpoint, "/healthz", Accept_Encoding="gzip")[0].headers


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "path", ["/metric", "/metrics/", "/api/v1/actions/dump", "/../etc/passwd", "/%00", "/" + "x" * 60_000]
)
def test_an_unknown_path_is_told_the_known_ones(endpoint: Handle, path: str) -> None:
    response, body = ask(endpoint, path)
    assert response.status == 404
    assert len(body) < 1000, "a long path does not come back whole"
    message = json.loads(body)["error"]
    assert all(known in message for known in PATHS)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(endpoint: Handle, method: str) -> None:
    """There is nothing to change here: no action is registered, and its path is as unknown as any."""
    for path in ("/metrics", "/nope"):
        response, body = ask(endpoint, path, method)
        assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
        assert "GET" in json.loads(body)["error"]
    assert ask(endpoint, "/api/v1/actions/profile", method)[0].status == 404


@pytest.mark.parametrize("since", ["-1", "1.5", "x", "", "0x10", "²", "9" * 5000, "1 OR 1=1"])
def test_a_number_that_is_none_is_a_bad_request(endpoint: Handle, since: str) -> None:
    response, body = ask(endpoint, f"/api/v1/events?since={urllib.parse.quote(since)}")
    assert response.status == 400
    message = json.loads(body)["error"]
    assert "`since` is" in message
    assert len(message) < 300
    assert guard.internal_errors().keys() == {"place"}


def test_an_unknown_kind_is_told_the_known_ones(endpoint: Handle) -> None:
    response, body = ask(endpoint, "/api/v1/events?kind=compile")
    assert response.status == 400
    assert json.loads(body)["error"] == f"`kind` is 'compile'. Known kinds: {', '.join(event_types())}."


def test_parameters_that_nobody_knows_do_no_harm(endpoint: Handle) -> None:
    """A proxy or a browser may add its own; of one given twice the first counts."""
    assert ask(endpoint, "/metrics?x=1&name[]=y&&&=")[0].status == 200
    assert json.loads(ask(endpoint, "/api/v1/events?since=2&since=x")[1])["next"] == 6


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9464", "127.0.0.1.evil.example", "[::2]:80", "localhost,e"]
)
def test_on_loopback_a_request_for_another_host_is_refused(endpoint: Handle, host: str) -> None:
    """A web page could read the endpoint by a name of its own that resolves to 127.0.0.1."""
    for path in PATHS:
        response, body = ask(endpoint, path, Host=host)
        assert response.status == 403
        assert "localhost" in json.loads(body)["error"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9464", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:9464"])
def test_on_loopback_requests_for_loopback_are_answered(endpoint: Handle, host: str) -> None:
    """Loopback names are answered, also through a tunnel that has another port."""
    assert ask(endpoint, "/healthz", Host=host)[0].status == 200


def test_opened_to_the_network_any_host_is_answered() -> None:
    """Prometheus asks for the pod's address or name."""
    with serving(addr="0.0.0.0") as handle:
        assert handle.url == f"http://127.0.0.1:{handle.port}/"
        assert ask(handle, "/healthz", Host="pod-7.training.svc:9464")[0].status == 200


def test_a_failure_of_ours_is_told_counted_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """500 with a sentence, without a traceback; the other paths go on."""
    broken = Store()
    with serving(broken) as handle:
        monkeypatch.setattr(broken, "snapshot", lambda: {}["gone"])
        for _ in range(2):
            response, body = ask(handle, "/metrics")
            assert response.status == 500
            assert "Traceback" not in body.decode()
        assert ask(handle, "/healthz")[0].status == 200
    assert guard.internal_errors() == {"http /metrics": 2}
    assert len([record for record in caplog.records if record.name == "jaxobs"]) == 1


# --------------------------------------------------------------------------------------- clients of all sorts


def test_a_client_that_never_reads_a_large_answer_is_given_up_in_silence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed into the program's output, not even `wsgiref`'s traceback."""
    monkeypatch.setattr(connections.Handler, "timeout", 0.3)
    big = Store()
    for number in range(900):
        big.record(compilation(f"f{number}", reason="x" * 20_000))
    with serving(big) as handle, connect(handle, b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n") as client:
        assert client.recv(1)
        until(lambda: not handle._server._connections)
        assert answers(handle)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n", b"nonsense\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"b" * 70_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % n for n in range(200)) + b"\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: nonsense\r\n\r\n",
        b"GET /%ff%fe?%ff=%fe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=lambda sent: ascii(sent[:16]),
)  # fmt: skip
def test_nonsense_is_answered_or_dropped_and_the_next_client_served(
    endpoint: Handle, sent: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    """Port scanners, TLS hellos, requests beyond every bound."""
    with contextlib.suppress(ConnectionError), connect(endpoint, sent) as client:
        client.shutdown(socket.SHUT_WR)
        while client.recv(65536):
            pass
    assert answers(endpoint)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert guard.internal_errors().keys() == {"place"}


def test_a_client_that_hangs_up_at_once_is_no_error(endpoint: Handle, capfd: pytest.CaptureFixture[str]) -> None:
    """Reset in the middle of the answer, fifty times."""
    for _ in range(50):
        client = connect(endpoint, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    assert answers(endpoint)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_threads_are_bounded_and_the_oldest_connection_makes_way(endpoint: Handle) -> None:
    """Two hundred clients that say nothing cost 64 threads, and a scrape still gets through."""
    before = threading.active_count()
    clients = [connect(endpoint, b"") for _ in range(200)]
    try:
        assert answers(endpoint)
        until(lambda: threading.active_count() - before <= Settings().max_connections + 1)
        with contextlib.suppress(ConnectionError):
            assert clients[0].recv(1) == b""
        assert b'reason="max_connections"' in ask(endpoint)[1]
    finally:
        for client in clients:
            client.close()


def test_fifty_scrapes_at_once_while_something_compiles() -> None:
    """All answered, all whole, all of them telling no less than the one before."""
    handle = lifecycle.start(port=0)
    assert handle is not None
    stop = threading.Event()

    def compile_things() -> None:
        size = 1
        while not stop.is_set():
            jax.jit(lambda x: jnp.sin(x) + 1)(jnp.zeros(size))
            size += 1

    scraped: list[tuple[int, bytes]] = []

    def scrape() -> None:
        response, body = ask(handle, "/metrics", Accept_Encoding="gzip")
        scraped.append((response.status, gzip.decompress(body)))

    compiler = threading.Thread(target=compile_things)
    scrapers = [threading.Thread(target=scrape) for _ in range(50)]
    compiler.start()
    for thread in scrapers:
        thread.start()
    for thread in scrapers:
        thread.join()
    stop.set()
    compiler.join()
    assert [status for status, _ in scraped] == [200] * 50
    assert all(b"\njaxobs_capability{" in body and body.endswith(b"\n") for _, body in scraped)
    assert guard.internal_errors() == {}


# ----------------------------------------------------------------------------------------- ports, end and exit


def test_port_zero_takes_a_free_one_and_says_which() -> None:
    """Two endpoints at once, each over its own store."""
    with serving() as one, serving(Store()) as two:
        assert one.port != two.port
        assert one.url == f"http://127.0.0.1:{one.port}/"
        assert repr(one) == f"<jaxobs endpoint {one.url}>"
        assert b"train.step" in ask(one)[1]
        assert b"train.step" not in ask(two)[1]


@pytest.mark.parametrize("addr", ["localhost", "LocalHost", "::1"])
def test_each_name_for_loopback_is_loopback(addr: str) -> None:
    """Each is checked like 127.0.0.1; IPv6 has the brackets that an address needs in a URL."""
    with contextlib.ExitStack() as stack:
        try:
            handle = stack.enter_context(serving(addr=addr))
        except SettingError as error:
            pytest.skip(f"no IPv6 here: {error}")
        assert addr != "::1" or handle.url == f"http://[::1]:{handle.port}/"
        assert ask(handle, "/healthz")[0].status == 200
        assert ask(handle, "/healthz", Host="evil.example")[0].status == 403


def test_a_taken_port_is_named_with_what_to_do() -> None:
    """The port, the address, three ways to choose another, and how to find who has it."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError) as caught:
            server.serve(full_store(), port, "127.0.0.1")
    message = str(caught.value)
    for part in (f"Port {port} on 127.0.0.1 is taken", "--port", "JAXOBS_PORT", "port=", f"sport = :{port}"):
        assert part in message


@pytest.mark.parametrize(
    ("port", "addr", "complaint"),
    [
        (70_000, "127.0.0.1", r"`port` is 70000, but must be from 0 to 65535"),
        (-1, "127.0.0.1", r"`port` is -1"),
        (0, "203.0.113.7", r"Cannot listen on '203.0.113.7'.*Is `addr` an address of this machine"),
        (0, "no-such-host.invalid", r"Cannot listen on 'no-such-host.invalid'"),
        (0, "x" * 70, r"Cannot listen on"),
        (0, "a\0b", r"Cannot listen on"),
        (0, "2001:db8::1", r"Cannot listen on"),
    ],
)
def test_an_address_that_is_not_ours_is_named(port: int, addr: str, complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        server.serve(full_store(), port, addr)


def test_a_port_that_needs_privileges_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run with all privileges, so the system's answer is given here."""

    def refuse(self: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(connections.Server, "server_bind", refuse)
    with pytest.raises(SettingError, match=r"Port 80 on 127\.0\.0\.1 needs privileges"):
        server.serve(full_store(), 80, "127.0.0.1")


def test_closing_frees_the_port_at_once_and_may_be_done_twice() -> None:
    before = threading.active_count()
    handle = server.serve(full_store(), 0, "127.0.0.1")
    ask(handle)
    handle.close()
    handle.close()
    assert handle.closed
    again = server.serve(full_store(), handle.port, "127.0.0.1")
    again.close()
    until(lambda: threading.active_count() <= before)


def test_closing_lets_an_answer_be_finished() -> None:
    """A scrape that is under way when the program ends the endpoint gets all of it."""
    slow, asked, go = full_store(), threading.Event(), threading.Event()

    def freshen() -> None:
        asked.set()
        go.wait(120)

    slow.freshen = freshen
    handle = server.serve(slow, 0, "127.0.0.1")
    answered = []
    client = threading.Thread(target=lambda: answered.append(ask(handle)))
    client.start()
    asked.wait(120)
    handle.close()
    go.set()
    client.join()
    [(response, body)] = answered
    assert (response.status, response.headers["Content-Length"]) == (200, str(len(body)))


def test_an_idle_endpoint_does_not_wake_up() -> None:
    """The base class polls; ours sleeps until somebody comes."""
    with serving(Store()) as handle:
        ask(handle, "/healthz")
        thread = handle._thread.native_id

        def sleeps() -> bool:
            switches = _switches(thread)
            time.sleep(0.6)
            return _switches(thread) == switches

        until(sleeps, lambda: "it woke up at least once in each span of 0.6 seconds")


def _switches(thread: int | None) -> str:
    path = Path(f"/proc/self/task/{thread}/status")
    if not path.exists():
        pytest.skip("needs /proc")
    return next(line for line in path.read_text().splitlines() if line.startswith("voluntary_ctxt_switches"))


OPEN_REQUEST = "import socket; s = socket.create_connection(('127.0.0.1', handle.port)); s.send(b'GET /')"


@pytest.mark.parametrize("meanwhile", ["", OPEN_REQUEST], ids=["idle", "asked"])
def test_the_endpoint_never_keeps_the_process_alive_and_leaves_no_warning(meanwhile: str) -> None:
    """Nobody closes it, and in one case a request is open: the program ends at once all the same, and cleanly."""
    program = f"""
import time, jaxobs
handle = jaxobs.serve(port=0)
{meanwhile}
time.sleep(0.2)
{"s.close()" if meanwhile else ""}
"""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_in_a_server_of_ones_own() -> None:
    """`application` is WSGI: who has a server already mounts it there."""
    application = server.application(full_store())
    started: list[tuple[str, dict[str, str]]] = []
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/metrics", "HTTP_HOST": "anything.example"}
    body = b"".join(application(environ, lambda status, headers: started.append((status, dict(headers)))))
    [(status, headers)] = started
    assert status == "200 OK"
    assert headers["Content-Length"] == str(len(body))


def test_serving_needs_no_install_and_is_ended_with_everything() -> None:
    """`serve` alone shows what wrappers count; `uninstall` ends it."""
    handle = lifecycle.serve(port=0)
    assert handle is not None
    next(store.current().call_stats("mine").counter)
    assert b'jax_function_calls_total{function="mine"} 1' in ask(handle)[1]
    lifecycle.uninstall()
    assert handle.closed
