"""Clients that are slow, greedy or hostile: each is ended within its bounds, and a scrape gets through meanwhile."""

import contextlib
import os
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.certificates import Authority
from helpers.endpoints import answers, connect, read_all, serving
from helpers.made_by_hand import compilation, full_store
from helpers.waiting import until

from jaxobs.base.config import Settings
from jaxobs.state.store import Store
from jaxobs.web import connections, server
from jaxobs.web.protection import Protection

pytestmark = pytest.mark.usefixtures("fresh")

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
TIMEOUT = 3600.0
"""Seconds that a request may take, of which no test waits a single one: `passes` lets them pass."""


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds pass for the endpoint, which sees it when the next client comes."""
    passed: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + sum(passed), sleep=time.sleep)
    monkeypatch.setattr(connections, "time", clock)
    return passed.append


def dropped(store: Store, reason: str) -> int:
    """Returns the counted drops."""
    return store.snapshot().observer.dropped.get(reason, 0)


@pytest.mark.parametrize(
    "begun",
    [
        b"", b"GET /metr", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"POST /api/v1/actions/memory HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n\r\n",
        b"POST /api/v1/actions/memory HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n",
    ],
    ids=["nothing", "line", "header", "body", "long body"],
)  # fmt: skip
def test_a_client_that_sends_a_byte_now_and_then_is_ended(begun: bytes, passes: Callable[[float], None]) -> None:
    """Slowloris: each byte comes in time, and the request never. The time is that of the whole request."""
    store = full_store()
    store.configure(Settings(actions=True, action_token="act"))
    with serving(store, request_timeout=TIMEOUT) as handle, connect(handle, begun) as client:
        for _ in range(2):
            assert answers(handle) and dropped(store, "request_timeout") == 0
            client.sendall(b"a")
            passes(0.6 * TIMEOUT)
        assert answers(handle)
        assert read_all(client) == b""
        until(lambda: dropped(store, "request_timeout") == 1)


def test_a_handshake_that_does_not_go_on_holds_nobody_up(tmp_path: Path, passes: Callable[[float], None]) -> None:
    """Twenty clients begin TLS and stop, or say nothing at all; another one is served, and they are ended."""
    authority, store = Authority(tmp_path), full_store()
    pair = authority.sign("endpoint")
    files = {"tls_certificate": str(pair.certificate), "tls_key": str(pair.key)}
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with serving(store, request_timeout=TIMEOUT, **files) as handle, contextlib.ExitStack() as clients:
        for number in range(20):
            clients.enter_context(connect(handle, (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00")[number % 3]))
        assert answers(handle, context)
        passes(TIMEOUT)
        assert answers(handle, context)
        until(lambda: dropped(store, "request_timeout") == 20)
        until(lambda: not handle._server._connections)


@pytest.fixture(scope="module")
def large() -> Store:
    """A store whose events are more than a socket takes at once."""
    store = Store()
    for number in range(900):
        store.record(compilation(f"f{number}", reason="x" * 20_000))
    return store


EVENTS = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_the_endpoint_wakes_up_for_who_is_overdue(large: Store) -> None:
    """No other client has to come for it."""
    before = dropped(large, "request_timeout")
    with serving(large, request_timeout=0.1) as handle, connect(handle), connect(handle, EVENTS):
        until(lambda: dropped(large, "request_timeout") == before + 2)
        until(lambda: not handle._server._connections)


def test_a_response_that_is_not_read_is_ended(large: Store, passes: Callable[[float], None]) -> None:
    """A client that reads a little now and then is cut off like one that does not read."""
    before = dropped(large, "request_timeout")
    with serving(large, request_timeout=TIMEOUT) as handle:
        with connect(handle, EVENTS) as client:
            for _ in range(2):
                assert client.recv(1) and dropped(large, "request_timeout") == before
                passes(0.6 * TIMEOUT)
            assert answers(handle)
            until(lambda: not handle._server._connections)
        assert dropped(large, "request_timeout") == before + 1


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"b" * 5000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: %s\r\n" % (n, b"y" * 90) for n in range(60)) + b"\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    ],
    ids=["path", "header", "headers", "too many headers"],
)  # fmt: skip
def test_a_request_beyond_the_bounds_is_refused_unread(sent: bytes) -> None:
    """In total, however it is cut into lines; a hundred headers are enough for everybody."""
    with serving(max_request_bytes=4096) as handle:
        with connect(handle, sent) as client:
            got = read_all(client)
            assert got == b"" or got.split()[1] in (b"414", b"431"), got[:100]
        assert answers(handle)


def test_http_2_is_refused() -> None:
    """The preface of HTTP/2 asks for a protocol that we do not speak."""
    with serving() as handle, connect(handle, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00") as client:
        assert b"Error code: 505" in read_all(client)


def test_what_follows_a_request_is_not_read_as_another() -> None:
    """A connection serves one request: nothing is smuggled behind a body that a proxy counts otherwise."""
    with serving() as handle:
        for first in (GET, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde"):
            with connect(handle, first + b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n") as client:
                got = read_all(client)
            assert got.count(b"HTTP/1.") <= 1 and b"jax_" not in got


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"Content-Length: 5\r\nContent-Length: 6",
        b"Host: evil.example", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    ],
    ids=["both", "two lengths", "two hosts", "two encodings"],
)  # fmt: skip
def test_a_request_that_can_be_understood_in_two_ways_is_refused(headers: bytes) -> None:
    sent = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n"
    with serving() as handle, connect(handle, sent) as client:
        assert read_all(client).split()[1] == b"400"


def test_who_has_sent_a_request_does_not_make_way_for_who_has_not() -> None:
    """A scrape that takes its time survives a crowd of silent clients, of which some are ended instead."""
    store, asked, go = full_store(), threading.Event(), threading.Event()

    def freshen() -> None:
        asked.set()
        go.wait(120)

    store.freshen = freshen
    with serving(store, max_connections=4) as handle, contextlib.ExitStack() as clients:
        scrape = clients.enter_context(connect(handle, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        asked.wait(120)
        store.freshen = None
        for _ in range(20):
            clients.enter_context(connect(handle))
        until(lambda: dropped(store, "max_connections") == 17)
        go.set()
        assert read_all(scrape).startswith(b"HTTP/1.0 200 OK")


def test_a_process_without_descriptors_does_not_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system lets nobody in: the thread that accepts waits between attempts, and goes on afterwards."""
    refused: list[float] = []
    slept: list[float] = []
    accept = server.Server.get_request

    def refuse(self: Any) -> Any:
        if len(refused) < 3:
            refused.append(len(slept))
            raise OSError(24, "Too many open files")
        return accept(self)

    with serving() as handle:
        monkeypatch.setattr(server.Server, "get_request", refuse)
        monkeypatch.setattr(connections, "time", SimpleNamespace(monotonic=time.monotonic, sleep=slept.append))
        assert answers(handle)
    assert (refused, slept) == ([0, 1, 2], [connections._EXHAUSTED_SECONDS] * 3)


def test_idle_clients_leave_the_program_its_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 of them where a process may open 80: ten are kept, the others are closed, and none is left in the end."""
    before = descriptors()
    monkeypatch.setattr(os, "sysconf", lambda name: 80)
    with serving(request_timeout=TIMEOUT) as handle, contextlib.ExitStack() as clients:
        own = descriptors()
        for _ in range(300):
            clients.enter_context(connect(handle))
        until(lambda: descriptors() == own + 300 + 10)
        assert answers(handle)
        clients.close()
        until(lambda: descriptors() == own)
    until(lambda: descriptors() == before)


@pytest.mark.parametrize("limit", [(-1, 64), (2**31, 64), (1024, 64), (256, 32), (8, 4)])
def test_connections_are_a_part_of_what_the_process_may_open(
    limit: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: limit[0])
    assert Protection(Settings(), "127.0.0.1", True).most_connections == limit[1]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
