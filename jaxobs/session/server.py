"""The HTTP endpoint: a WSGI application over the exporters' routes, in daemon threads.

Served by the standard library's `wsgiref`, as prometheus_client does. Closed by default: loopback, GET only (but for
actions, where they are allowed), and no request for a host name that is not ours (which is how a web page would reach a
server on loopback).
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import ipaddress
import os
import selectors
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from jaxobs.actions.capturing import routes as action_routes
from jaxobs.base import discovery
from jaxobs.base.errors import PortTakenError, SettingError
from jaxobs.base.guard import internal_error, logger
from jaxobs.exporters.forms.http_types import BadRequest, Post, Request, Response, Route, accepted, problem
from jaxobs.findings.fleet.support.addresses import Addresses
from jaxobs.state.store import Store

StartResponse = Callable[[str, list[tuple[str, str]]], Any]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]

MOST_CONNECTIONS = 64
"""Connections that are served at once, each by a thread of its own."""

MOST_BODY = 4096
"""Bytes of a request's body that are read."""

_MOST_DRAINED = 2**16
_LEAST_COMPRESSED = 1024
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)  # neither leaves a descriptor to children
_SECURITY = [
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
]


def application(store: Store, hosts: frozenset[str] | None = None) -> Application:
    """The endpoint as a WSGI application, for those who serve it from a server of their own.

    Args:
      hosts: host names that requests may be for; None for any.
    """
    routes: dict[str, Route] = {"/healthz": lambda request: Response(b"ok\n", "text/plain; charset=utf-8")}
    for module in discovery.modules("jaxobs.exporters", internal_error):
        if hasattr(module, "routes"):
            routes.update(module.routes(store))

    def serve(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if hosts is None or _host(environ) in hosts:
            response = _answer(store, routes, environ)
        else:
            response = problem("403 Forbidden", f"This endpoint only answers requests to {', '.join(sorted(hosts))}.")
        body, headers = response.body, [("Content-Type", response.content_type), *_SECURITY, *response.headers]
        if len(body) >= _LEAST_COMPRESSED and _accepts_gzip(environ):
            body = gzip.compress(body, compresslevel=1)
            headers.append(("Content-Encoding", "gzip"))
        headers += [("Vary", "Accept, Accept-Encoding"), ("Content-Length", str(len(body)))]
        start_response(response.status, headers)
        return [b"" if environ.get("REQUEST_METHOD") == "HEAD" else body]

    return serve


def _host(environ: Mapping[str, Any]) -> str:
    host = str(environ.get("HTTP_HOST", "localhost"))
    return host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0].lower()


def _accepts_gzip(environ: Mapping[str, Any]) -> bool:
    return any(each.name == "gzip" and each.quality > 0 for each in accepted(environ.get("HTTP_ACCEPT_ENCODING")))


def _answer(store: Store, routes: Mapping[str, Route], environ: dict[str, Any]) -> Response:
    path = environ.get("PATH_INFO") or "/"
    is_action = path.startswith(action_routes.PREFIX)
    if is_action and action_routes.registered(store):
        return _act(store, path, environ)
    if not is_action and environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
        return problem("405 Method Not Allowed", "This endpoint only answers GET.", (("Allow", "GET, HEAD"),))
    route = routes.get(path)
    if route is None:
        return problem("404 Not Found", f"No such path: {path!r:.200}. Paths: {', '.join(sorted(routes))}.")
    request = Request(path, _query(environ), environ.get("HTTP_ACCEPT"))
    return _answered(path, lambda: route(request))


def _act(store: Store, path: str, environ: dict[str, Any]) -> Response:
    if environ.get("REQUEST_METHOD") != "POST":
        return problem("405 Method Not Allowed", "Request an action with POST.", (("Allow", "POST"),))
    length = str(environ.get("CONTENT_LENGTH") or "0")
    if not length.isdecimal() or environ.get("HTTP_TRANSFER_ENCODING"):
        return problem("411 Length Required", "The body needs a Content-Length.")
    if len(length) > 9 or int(length) > MOST_BODY:
        environ["wsgi.input"].read(min(int(length[:9]), _MOST_DRAINED))  # who is still sending reads no answer
        return problem("413 Content Too Large", f"The body has {length:.20} bytes, but the maximum is {MOST_BODY}.")
    post = Post(
        path, _query(environ), environ["wsgi.input"].read(int(length)), environ.get("CONTENT_TYPE"),
        environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN"), environ.get("HTTP_AUTHORIZATION"),
    )  # fmt: skip
    return _answered(action_routes.PREFIX, lambda: action_routes.act(store, post))


def _query(environ: Mapping[str, Any]) -> dict[str, str]:
    return dict(reversed(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)))


def _answered(place: str, answer: Callable[[], Response]) -> Response:
    try:
        return answer()
    except BadRequest as error:
        return problem("400 Bad Request", str(error))
    except Exception as error:
        internal_error(f"http {place}", error)
        return problem("500 Internal Server Error", "jaxobs failed to answer; the program's log says why.")


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Before the base class binds: where that fails, it closes what there is.
        self._woken, self._wake = socket.socketpair()
        super().__init__(*args, **kwargs)
        self.socket.setblocking(False)
        self._connections: dict[Any, None] = {}
        self._lock = threading.Lock()
        self._closing = False
        self.cut_off: Callable[[], None] = lambda: None
        """Called when a connection is ended because there are too many."""

    def server_bind(self) -> None:
        """Binds without the reverse look-up of the host's name that the base class makes: it can take seconds."""
        socketserver.TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()

    def serve_until_closed(self) -> None:
        """Accepts connections without ever waking up for nothing, which the base class does several times a second."""
        with _Selector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._closing:
                selector.select()
                if not self._closing:
                    self.handle_request()

    def stop(self) -> None:
        """Ends `serve_until_closed`, from another thread."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._wake.send(b"x")

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for each connection. Where there are too many, the oldest makes way: it is slow, or stuck."""
        with self._lock:
            self._connections[request] = None
            oldest = next(iter(self._connections)) if len(self._connections) > MOST_CONNECTIONS else None
            self._connections.pop(oldest, None)
        if oldest is not None:
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
            self.cut_off()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Closes a connection."""
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Closes the sockets that nobody serves any more."""
        super().server_close()
        self._woken.close()
        self._wake.close()

    def forget(self) -> None:
        """In a forked child: closes what it inherited. Open connections are the parent's, which goes on with them."""
        self.server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                # `close` would wait for the files that the parent's threads have made of it.
                os.close(connection.detach())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no error of ours."""


class _ServerV6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = 30

    def log_message(self, format: str, *args: Any) -> None:
        """The endpoint is silent."""

    def get_stderr(self) -> Any:
        """Where `wsgiref` prints the traceback of a client that stopped reading: nowhere."""
        return io.StringIO()

    def address_string(self) -> str:
        return str(self.client_address[0])


class Handle:
    """A running endpoint."""

    def __init__(self, server: _Server, addr: str) -> None:
        self._server = server
        self.addr = addr
        self.closed = False
        self.told = False
        """Whether its address was printed."""
        self.closing: Callable[[], None] = lambda: None
        """Called when it is closed."""
        shown = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(addr, addr)
        shown = f"[{shown}]" if ":" in shown else shown
        self.port: int = server.server_port
        self.url = f"http://{shown}:{self.port}/"
        """Where the page is; `/metrics` beside it."""
        self._thread = threading.Thread(target=server.serve_until_closed, name="jaxobs-http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the endpoint and frees the port; answers that are under way are finished. Idempotent."""
        if not self.closed:
            self.closed = True
            self.closing()
            self._server.stop()
            self._thread.join(timeout=5)
            self._server.server_close()

    def forget(self) -> None:
        """In a forked child: closes the inherited sockets; the serving thread did not come along."""
        self.closed = True
        self._server.forget()

    def __repr__(self) -> str:
        return f"<jaxobs endpoint {self.url}>"


def serve(store: Store, port: int, addr: str) -> Handle:
    """Serves the store's endpoint in daemon threads; port 0 takes a free one.

    Raises:
      PortTakenError: somebody listens on the port already.
      SettingError: the port or address is none of this machine's.
    """
    if not 0 <= port <= 65535:
        raise SettingError(f"`port` is {port}, but must be from 0 to 65535.")
    family = _Server if ":" not in addr else _ServerV6
    try:
        server = family((addr, port), _Handler)
    except (OSError, TypeError, ValueError) as error:
        raise _cannot_listen(error, port, addr) from None
    loopback = ipaddress.ip_address(str(server.server_address[0]).partition("%")[0]).is_loopback
    unmet = action_routes.unmet(store)
    if unmet is not None and store.note(unmet):
        logger.warning("%s", unmet)
    server.cut_off = lambda: store.drop("max_connections")
    server.set_app(application(store, _LOOPBACK | {addr.lower()} if loopback else None))
    handle, addresses = Handle(server, addr), store.part(Addresses)
    addresses.opened(addr, handle.port)
    handle.closing = lambda: addresses.closed(handle.port)
    return handle


def _cannot_listen(error: OSError | TypeError | ValueError, port: int, addr: str) -> Exception:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        return PortTakenError(
            f"Port {port} on {addr} is taken: something already listens there. Choose another with `--port N`, "
            f"`JAXOBS_PORT=N` or `port=N`, or see what has it with: ss -ltnp 'sport = :{port}'"
        )
    if number == errno.EACCES:
        return SettingError(f"Port {port} on {addr} needs privileges that this process lacks. Use 1024 or higher.")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return SettingError(f"Cannot listen on {addr!r}, port {port}: {reason}. Is `addr` an address of this machine?")
