"""Requests that end in time, though each piece of what a server sends comes in time."""

import contextlib
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest

from jaxobs.ops.diagnosis.gathering import http as bounded_http
from jaxobs.ops.in_time import Deadline


@contextlib.contextmanager
def dripping(*pieces: bytes) -> Iterator[str]:
    """A server that sends the first piece at once, then the next one again and again."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            with contextlib.suppress(OSError), listening.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(pieces[0])
                for _ in range(80 * (len(pieces) - 1)):
                    connection.sendall(pieces[1])
                    time.sleep(0.25)

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        thread.join()


def test_headers_that_never_end() -> None:
    """Headers that break off are not an answer, and not an empty one either."""
    with dripping(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n") as url:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        began = time.monotonic()
        with pytest.raises(OSError), Deadline(opener, 1):
            opener.open(url, timeout=1)
        assert time.monotonic() - began < 15


def test_a_prometheus_that_drips_headers_does_not_answer() -> None:
    with (
        dripping(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n") as url,
        pytest.raises(bounded_http.NoAnswerError, match="no answer within 1 s"),
    ):
        bounded_http.fetch(url, 1)


def test_an_answer_in_time_is_whole() -> None:
    with dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok") as url:
        assert bounded_http.fetch(url, 30) == b"ok"
