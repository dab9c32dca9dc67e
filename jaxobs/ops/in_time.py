"""HTTP requests that end in time, whatever the server does: urllib's own timeout is for each piece of an answer.

A server that sends a line of a header now and then keeps `open` waiting for as long as it likes.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
import urllib.request
from http.client import HTTPConnection, HTTPResponse
from types import TracebackType
from typing import Any


class Deadline:
    """Ends the requests of an opener when their time is over: `with Deadline(opener, seconds): opener.open(...)`.

    What waits for the head of an answer gets a `TimeoutError`, or what `urllib` makes of a connection that breaks off.
    """

    def __init__(self, opener: urllib.request.OpenerDirector, seconds: float) -> None:
        """The opener is this deadline's own: it is used for nothing else."""
        self.is_over = False
        self._connections: list[HTTPConnection] = []
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        # Of all handlers, whoever made them: urllib has no other place where a connection is seen, and typeshed no
        # `handlers`.
        for handler in opener.handlers:  # type: ignore[attr-defined]
            if isinstance(handler, urllib.request.AbstractHTTPHandler):
                handler.do_open = functools.partial(self._open, handler.do_open)  # type: ignore[method-assign]

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._timer.cancel()

    def _open(self, do_open: Any, kind: Any, request: urllib.request.Request, **options: Any) -> HTTPResponse:
        def made(*args: Any, **more: Any) -> HTTPConnection:
            connection: HTTPConnection = kind(*args, **more)
            self._connections.append(connection)
            return connection

        answer: HTTPResponse = do_open(made, request, **options)
        if self.is_over:  # Headers that break off look like the end of all headers.
            answer.close()
            raise TimeoutError("timed out")
        return answer

    def _end(self) -> None:
        self.is_over = True
        for connection in self._connections:
            if connection.sock is not None:
                with contextlib.suppress(OSError):
                    # The method of the base class: that of TLS would take the connection's state away from its reader.
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
