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


def test_the_thread_that_works_meanwhile_is_named() -> None:
    """If looks often find it at one line; the time between requests, and a pause of the process, do not count."""
    answering = Answering()
    for now, spots in enumerate([[LOCKED], [LOCKED, BACKGROUND], [BACKGROUND], [], [LOCKED], [IN_JAX], [WORKS]]):
        answering.saw(spots, float(now), lambda: False)
    answering.saw([IN_JAX], 100.0, lambda: False)
    assert answering.lines() == (
        AnsweringLine(line="app.py:9", at="lock", seconds=2.0, share=0.4, held_at="report.py:3"),
        AnsweringLine(line="app.py:8", at="jax", seconds=1.0 + MOST_SECONDS, share=0.4),
        AnsweringLine(line="app.py:8", at="host", seconds=1.0, share=0.2),
    )
    for now in range(101, 120):
        answering.saw([LOCKED], float(now), lambda: False)
    locked = answering.lines()[0]
    assert (locked.line, locked.held_at) == ("app.py:9", None), "it was seen once in 21 looks"
    assert all(each.share >= LEAST_SHOWN for each in answering.lines())
    assert Answering().lines() == ()


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
