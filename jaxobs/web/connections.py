"""The endpoint's sockets: bounded in number, time and bytes, each served by a daemon thread of its own.

The thread that accepts connections reads nothing from them: TLS handshakes and requests are the business of the
connection's own thread. A connection serves one request and is closed, so that nothing can follow in its shadow.
"""

import contextlib
import errno
import http.client
import io
import os
import selectors
import socket
import socketserver
import ssl
import time
from collections.abc import Callable
from typing import Any, ClassVar
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer

from jaxobs.base import threads
from jaxobs.base.descriptors import Kept
from jaxobs.web.protection import Protection

MOST_BODY = 4096
"""Bytes of a request's body that are read."""

_MOST_LINE = 2**16
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_EXHAUSTED_SECONDS = 0.2
_FAREWELL_SECONDS = 1.0
_SPARE_SECONDS = 5.0
_MOST_UNREAD = 8
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)  # neither leaves a descriptor to children


class _Connection:
    """Open connection: the time at which it is ended, and whether its request has come."""

    __slots__ = ("received", "until")

    def __init__(self, until: float) -> None:
        self.until = until
        self.received = False


class Server(socketserver.ThreadingMixIn, WSGIServer):
    """Accepts connections until it is closed."""

    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int]) -> None:
        # Before the base class binds: where that fails, it closes what there is.
        self._woken, self._wake = socket.socketpair()
        super().__init__(address, Handler)
        self.socket.setblocking(False)
        self._kept = tuple((each, Kept(each.fileno())) for each in (self.socket, self._woken, self._wake))
        self.protection: Protection
        self.dropped: Callable[[str], None] = lambda reason: None
        """Called with the reason why a connection is ended by us: the bound, or the handshake."""
        self.complain: Callable[[str], None] = lambda sentence: None
        self._connections: dict[Any, _Connection] = {}
        self._lock = threads.Lock()
        self._closing = False

    def server_bind(self) -> None:
        """Binds without the reverse look-up of the host's name that the base class makes: it can take seconds."""
        socketserver.TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()

    def serve_until_closed(self) -> None:
        """Accepts connections. Sleeps while there are none, where the base class wakes up several times a second."""
        with _Selector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._closing:
                ready = selector.select(self._next_look())
                self._let_go_of_closed()
                self._cut_overdue()
                if ready and not self._closing:
                    self._accept()

    def _let_go_of_closed(self) -> None:
        """Ends if the program has closed our sockets: it may have others under their numbers."""
        for each, kept in self._kept:
            if not kept.is_ours():
                self._closing = True
                each.detach()

    def _next_look(self) -> float | None:
        """Returns seconds until the first connection whose time is known is overdue; None without connections."""
        with self._lock:
            first = min((each.until for each in self._connections.values()), default=None)
        if first is None:
            return None
        # Of a connection that is being answered it is known later, but it will be as long as this, at least.
        return min(max(0.0, first - time.monotonic()), self.protection.seconds)

    def _accept(self) -> None:
        try:
            connection, address = self.get_request()
        except OSError as error:
            if error.errno in _EXHAUSTED:  # the client waits and the selector would return at once
                time.sleep(_EXHAUSTED_SECONDS)
            return
        try:
            self.process_request(connection, address)
        except Exception:  # no thread to be had
            self.shutdown_request(connection)

    def get_request(self) -> tuple[Any, Any]:
        """Returns the next connection; the handshake comes later, on its own thread."""
        connection, address = super().get_request()
        if type(connection) is not threads.Socket:
            connection = threads.Socket(fileno=connection.detach())
            connection.setblocking(True)
        context = self.protection.context
        if context is not None:
            connection = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def stop(self) -> None:
        """Ends `serve_until_closed`, from another thread."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._wake.send(b"x")

    def process_request(self, request: Any, client_address: Any) -> None:
        """Starts a thread for a connection. If there are too many, one that is slow or stuck is closed."""
        surplus = None
        with self._lock:
            self._connections[request] = _Connection(time.monotonic() + self.protection.seconds)
            if len(self._connections) > self.protection.most_connections:
                silent = (each for each, state in self._connections.items() if not state.received)
                surplus = next(silent, request)
                del self._connections[surplus]
        if surplus is not None:
            _hang_up(surplus)
            self.dropped("max_connections")
        threads.Thread(self.process_request_thread, "jaxobs-request", (request, client_address)).start()

    def _cut_overdue(self) -> None:
        now = time.monotonic()
        with self._lock:
            overdue = [each for each, state in self._connections.items() if state.until <= now]
            for each in overdue:
                del self._connections[each]
        for connection in overdue:
            _hang_up(connection)
            self.dropped("request_timeout")

    def received(self, request: Any) -> None:
        """Notes that a connection's request has come: what takes time from now on is ours."""
        state = self._connections.get(request)
        if state is not None:
            state.until, state.received = float("inf"), True

    def sending(self, request: Any) -> None:
        """Notes that the response goes out: the client has to take it in time."""
        state = self._connections.get(request)
        if state is not None:
            state.until = time.monotonic() + self.protection.seconds

    def shutdown_request(self, request: Any) -> None:
        """Closes a connection."""
        with self._lock:
            self._connections.pop(request, None)
        if isinstance(request, ssl.SSLSocket):
            with contextlib.suppress(OSError, ValueError):
                request.settimeout(0)
                request.unwrap()  # says that this was all; the client's word to that is not awaited
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Closes the sockets that nobody serves any more."""
        super().server_close()
        self._woken.close()
        self._wake.close()

    def forget(self) -> None:
        """Closes what a forked child inherited. Open connections are the parent's, which continues with them."""
        self.server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                # `close` would wait for the files that the parent's threads have made of it.
                os.close(connection.detach())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a client that hung up."""


class ServerV6(Server):
    """Server at an address of IPv6."""

    address_family = socket.AF_INET6


def _hang_up(connection: socket.socket) -> None:
    """Ends a connection under its thread, which notices: without TLS's farewell, for which it might have to wait."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


class _Bounded:
    """File of which at most `most` bytes can be read."""

    def __init__(self, file: Any, most: int) -> None:
        self._file = file
        self._room = most

    def readline(self, most: int) -> bytes:
        """Returns a line; raises `http.client.LineTooLong` if it goes beyond the bound."""
        line: bytes = self._file.readline(min(most, self._room + 1))
        self._room -= len(line)
        if self._room < 0:
            raise http.client.LineTooLong("request")
        return line

    def read(self, most: int) -> bytes:
        """Returns at most `most` bytes of a body, which has a bound of its own."""
        return self._file.read(most)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class Handler(WSGIRequestHandler):
    """Reads one request, and answers it."""

    server: Server
    timeout: ClassVar[float | None] = None

    def setup(self) -> None:
        """Makes the TLS handshake, if the connection has one."""
        protection = self.server.protection
        protection.renew(self.server.complain)
        # Of one read or write. It ends nothing that the server does not end before.
        patience = self.timeout or protection.seconds + _SPARE_SECONDS
        if isinstance(self.request, ssl.SSLSocket):
            self.request.settimeout(patience)
            try:
                self.request.do_handshake()
            except ssl.SSLError as error:
                if not isinstance(error, ssl.SSLEOFError):  # who only looks whether the port is open says nothing
                    self.server.dropped("tls_handshake")
                    self._let_read_why()
                raise
        super().setup()
        self.request.settimeout(patience)
        self.rfile: Any = _Bounded(self.rfile, protection.settings.max_request_bytes)

    def _let_read_why(self) -> None:
        """Reads what is left, because a close with something unread would take TLS's alert from the client."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.request, socket.SHUT_WR)
            self.request.settimeout(_FAREWELL_SECONDS)
            for _ in range(_MOST_UNREAD):
                if not socket.socket.recv(self.request, 2**16):
                    break

    def handle(self) -> None:
        """Serves one request."""
        self.requestline = self.request_version = self.command = ""
        try:
            self.raw_requestline = self.rfile.readline(_MOST_LINE + 1)
        except http.client.LineTooLong:
            self.raw_requestline = b"x" * (_MOST_LINE + 1)
        if len(self.raw_requestline) > _MOST_LINE:
            self.send_error(414)
            return
        if not self.raw_requestline or not self.parse_request():
            return
        if self._is_ambiguous():
            self.send_error(400, "Ambiguous length or host")
            return
        length = str(self.headers.get("Content-Length") or "0")
        body: Any = self.rfile
        if len(length) < 10 and length.isdecimal() and int(length) <= MOST_BODY:
            body = io.BytesIO(self.rfile.read(int(length)))
            self.server.received(self.request)
        answer = _Answer(body, self.wfile, self.get_stderr(), self.get_environ(), multithread=True)  # type: ignore[arg-type]
        answer.request_handler = self
        answer.begun = lambda: self.server.sending(self.request)
        answer.run(self.server.get_app())  # type: ignore[arg-type]

    def _is_ambiguous(self) -> bool:
        """Returns whether a proxy could have understood another request than we do."""
        twice = any(len(self.headers.get_all(each, [])) > 1 for each in ("Content-Length", "Host", "Transfer-Encoding"))
        return twice or ("Content-Length" in self.headers and "Transfer-Encoding" in self.headers)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""

    def get_stderr(self) -> Any:
        """Returns a stream for `wsgiref`'s tracebacks of clients that stopped reading, which nobody sees."""
        return io.StringIO()

    def address_string(self) -> str:
        return str(self.client_address[0])


class _Answer(ServerHandler):
    request_handler: Any = None
    begun: Callable[[], None] = staticmethod(lambda: None)

    def finish_response(self) -> None:
        self.begun()
        super().finish_response()
