"""Answering: what looks at a service's threads add up to, and which threads answer requests."""

import http.client
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from helpers.waiting import until

from jaxobs.facts.requests import AnsweringLine
from jaxobs.loops.answering import LEAST_SHOWN, MOST_SECONDS, Answering
from jaxobs.loops.spots import Spot, Spots

_PLACE = (((lambda: None).__code__, 0),)


def _spot(line: str = "app.py:9", **what: bool) -> Spot:
    return Spot(_PLACE, line, **({"in_jax": False, "reads": False, "waits": False, "answers": True} | what), at=(0, 0))


WAITS, LOCKED = _spot("app.py:7"), _spot("app.py:9", locks=True)
IN_JAX, WORKS = _spot("app.py:8", in_jax=True), _spot("app.py:8", works=True)
BACKGROUND = _spot("report.py:3", answers=False, works=True)


@pytest.mark.parametrize(
    ("spots", "computes", "line"),
    [
        ([LOCKED, IN_JAX], False, ("app.py:8", "jax")),
        ([LOCKED, WORKS], False, ("app.py:8", "host")),
        ([LOCKED, WORKS], True, ("app.py:8", "jax")),
        ([WAITS, LOCKED], False, ("app.py:9", "lock")),
        ([WAITS, LOCKED], True, ("app.py:9", "jax")),
        ([WAITS, BACKGROUND], False, ("app.py:7", "host")),
    ],
    ids=["in JAX", "works", "works, and a device computes", "locked", "locked while a device computes", "waits"],
)
def test_a_look_counts_at_one_line(spots: list[Spot], computes: bool, line: tuple[str, str]) -> None:
    answering = Answering()
    for now in range(3):
        answering.saw(spots, float(now), lambda: computes)
    (found,) = answering.lines()
    assert ((found.line, found.at), found.seconds, found.share) == (line, 2.0, 1.0)


def _looked(*looks: list[Spot]) -> Answering:
    """A look a second, while no device computes."""
    answering = Answering()
    for now, spots in enumerate(([], *looks)):
        answering.saw(spots, float(now), lambda: False)
    return answering


def test_the_seconds_add_up() -> None:
    """The time between requests, and all but two seconds of a pause of the process, do not count."""
    answering = _looked([LOCKED], [LOCKED, BACKGROUND], [BACKGROUND], [], [LOCKED], [IN_JAX], [WORKS])
    answering.saw([IN_JAX], 100.0, lambda: False)
    assert answering.lines() == (
        AnsweringLine(line="app.py:9", at="lock", seconds=3.0, share=3 / 7),
        AnsweringLine(line="app.py:8", at="jax", seconds=1.0 + MOST_SECONDS, share=3 / 7),
        AnsweringLine(line="app.py:8", at="host", seconds=1.0, share=1 / 7),
    )
    assert all(each.share >= LEAST_SHOWN for each in answering.lines())
    assert Answering().lines() == ()


@pytest.mark.parametrize(
    ("looks", "held_at"),
    [
        ([[LOCKED, BACKGROUND]] * 9 + [[IN_JAX]] * 9, "report.py:3"),
        ([[LOCKED, BACKGROUND]] * 3 + [[LOCKED]] * 6 + [[IN_JAX]] * 9, "report.py:3"),
        ([[LOCKED, BACKGROUND]] * 1 + [[LOCKED]] * 8 + [[IN_JAX]] * 40, None),
        ([[LOCKED, BACKGROUND]] * 9 + [[IN_JAX, BACKGROUND]] * 9, None),
        ([[LOCKED, BACKGROUND]] * 9 + [[IN_JAX, BACKGROUND]] * 5 + [[IN_JAX]] * 4, None),
        ([[LOCKED, BACKGROUND]] * 9 + [[WORKS]], "report.py:3"),
        ([[LOCKED, WAITS]] * 9 + [[IN_JAX]] * 9, None),
    ],
    ids=["always then", "often then", "hardly then", "always", "half of the others", "few others", "a request"],
)
def test_what_works_only_while_requests_wait_may_hold_the_lock(looks: list[list[Spot]], held_at: str | None) -> None:
    """A thread that is at the same line whether requests wait or not has nothing to do with the lock."""
    (locked,) = [each for each in _looked(*looks).lines() if each.at == "lock"]
    assert locked.held_at == held_at


class _Handler(BaseHTTPRequestHandler):
    lock, protocol_version = threading.Lock(), "HTTP/1.1"

    def do_GET(self) -> None:
        with self.lock:
            self.send_response(204)
            self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Prints nothing."""


def test_a_thread_answers_from_the_handler_on() -> None:
    """A thread that waits for the next request, and the one that accepts connections, do not."""
    server, spots = ThreadingHTTPServer(("127.0.0.1", 0), _Handler), Spots()

    def seen() -> list[Spot]:
        frames = sys._current_frames()
        return [spots.of(frames[each.ident]) for each in threading.enumerate() if each.ident in frames]

    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    client = http.client.HTTPConnection("127.0.0.1", server.server_port)
    try:
        with _Handler.lock:
            client.request("GET", "/")
            until(lambda: any(each.locks for each in seen()))
            (waits,) = [each for each in seen() if each.answers]
            assert waits.locks and not waits.works and waits.line.startswith(f"{__file__}:")
        assert client.getresponse().read() == b""
        until(lambda: not any(each.answers for each in seen()))
    finally:
        client.close()
        server.shutdown()
        server.server_close()
        serving.join()
