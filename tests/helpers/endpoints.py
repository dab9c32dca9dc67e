"""An endpoint over a store, and clients of it: one with manners, and bare sockets."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import urllib.parse
from collections.abc import Iterator
from typing import Any

from helpers.made_by_hand import full_store
from jaxobs.base.config import Settings
from jaxobs.state.store import Store
from jaxobs.web import server
from jaxobs.web.server import Handle


@contextlib.contextmanager
def serving(store: Store | None = None, addr: str = "127.0.0.1", **settings: Any) -> Iterator[Handle]:
    """An endpoint until the end of the block."""
    handle = server.serve(store or full_store(), 0, addr, Settings(**settings))
    with contextlib.closing(handle):
        yield handle


def ask(
    handle: Handle, path: str = "/metrics", method: str = "GET", context: ssl.SSLContext | None = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    """Sends one request on a connection of its own; underscores in header names stand for hyphens."""
    host = urllib.parse.urlsplit(handle.url).hostname or ""
    connection: http.client.HTTPConnection = http.client.HTTPConnection(host, handle.port, timeout=120)
    if handle.url.startswith("https"):
        connection = http.client.HTTPSConnection(host, handle.port, timeout=120, context=context)
    with contextlib.closing(connection):
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response, response.read()


def answers(handle: Handle, context: ssl.SSLContext | None = None) -> bool:
    """Whether a client with manners is served."""
    return ask(handle, context=context)[0].status == 200


def connect(handle: Handle, sent: bytes = b"") -> socket.socket:
    """A connection that has sent something."""
    connection = socket.create_connection(("127.0.0.1", handle.port), timeout=120)
    connection.sendall(sent)
    return connection


def read_all(connection: socket.socket) -> bytes:
    """All up to the end, by whomever that was made."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            got += piece
    return got
