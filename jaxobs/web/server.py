"""The HTTP endpoint: a WSGI application over the exporters' routes, in daemon threads.

Served by the standard library's `wsgiref`, as prometheus_client does. Closed by default: loopback, GET only (but for
actions, where they are allowed), and no request for a host name that is not ours (which is how a web page would reach a
server on loopback). TLS and a token are in `protection`, bounds on what clients may take in `connections`.
"""

import errno
import gzip
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from jaxobs.actions.capturing import routes as action_routes
from jaxobs.base import callers, discovery, threads
from jaxobs.base.config import Settings
from jaxobs.base.errors import PortTakenError, SettingError
from jaxobs.base.guard import internal_error
from jaxobs.exporters import RoutesModule
from jaxobs.exporters.forms.http_types import (
    BadRequest,
    Post,
    Request,
    Response,
    Route,
    accepted,
    json_response,
    problem,
)
from jaxobs.facts.events import as_event, plain
from jaxobs.facts.kinds import event_types
from jaxobs.findings.fleet.support.addresses import Addresses
from jaxobs.findings.verdict import judged
from jaxobs.state.store import Store
from jaxobs.web import page
from jaxobs.web.connections import MOST_BODY, Server, ServerV6
from jaxobs.web.protection import Protection

StartResponse = Callable[[str, list[tuple[str, str]]], Any]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]

_MOST_DRAINED = 2**16
_LEAST_COMPRESSED = 1024
_HEALTH = "/healthz"
_SECURITY = [("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer")]


def application(store: Store, protection: Protection | None = None) -> Application:
    """Returns the endpoint as a WSGI application for servers of others, unprotected if none is given."""
    routes: dict[str, Route] = {_HEALTH: lambda request: Response(b"ok\n", "text/plain; charset=utf-8")}
    routes.update(_own_routes(store))
    for module in discovery.modules(RoutesModule, internal_error):
        routes.update(module.routes(store))

    def serve(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        known = None if protection is None else protection.hosts
        if protection is None or callers.is_asked_for(_headers(environ, "HTTP_HOST"), known):
            response = _answer(store, routes, environ, protection)
        else:
            named = "one host by its name" if known is None else ", ".join(sorted(known))
            response = problem("403 Forbidden", f"This endpoint only answers requests to {named}.")
        body, headers = response.body, [("Content-Type", response.content_type), *_SECURITY, *response.headers]
        encodings = [each.name for each in accepted(environ.get("HTTP_ACCEPT_ENCODING")) if each.quality > 0]
        if len(body) >= _LEAST_COMPRESSED and "gzip" in encodings:
            body = gzip.compress(body, compresslevel=1)
            headers.append(("Content-Encoding", "gzip"))
        headers += [("Vary", "Accept, Accept-Encoding"), ("Content-Length", str(len(body)))]
        start_response(response.status, headers)
        return [b"" if environ.get("REQUEST_METHOD") == "HEAD" else body]

    return serve


def _own_routes(store: Store) -> dict[str, Route]:
    """Returns the paths of the live page and of the JSON API."""

    def events(request: Request) -> Response:
        since = request.query.get("since", "0")
        if not since.isdecimal() or len(since) > 18:
            raise BadRequest(
                f"`since` is {since!r:.100}, which is not an event number. Use the `next` of the last response."
            )
        kind = request.query.get("kind")
        if kind is not None and kind not in event_types():
            raise BadRequest(f"`kind` is {kind!r:.100}. Known kinds: {', '.join(event_types())}.")
        found, newest, lost = store.events(int(since), kind)
        return json_response({"events": [as_event(event) for event in found], "next": newest, "dropped": lost})

    return {
        "/": lambda request: Response(page.render(), "text/html; charset=utf-8", (page.header(),)),
        "/api/v1/snapshot": lambda request: json_response(plain(judged(store.snapshot()))),
        "/api/v1/events": events,
        "/api/v1/verdict": lambda request: json_response(plain(judged(store.snapshot()).verdict)),
    }


def _headers(environ: Mapping[str, Any], name: str) -> list[str]:
    """Returns a header of a request, which WSGI has once; empty without it."""
    return [str(environ[name])] if name in environ else []


def _answer(
    store: Store, routes: Mapping[str, Route], environ: dict[str, Any], protection: Protection | None
) -> Response:
    path = environ.get("PATH_INFO") or "/"
    is_action = path.startswith(action_routes.PREFIX)
    if is_action and action_routes.registered(store):
        return _act(store, path, environ)
    if protection is not None and path != _HEALTH:
        refusal = protection.refusal(environ.get("HTTP_AUTHORIZATION"))
        if refusal is not None:
            return refusal
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
        callers.is_own(_headers(environ, "HTTP_ORIGIN"), _headers(environ, "HTTP_HOST")),
        environ.get("HTTP_AUTHORIZATION"),
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


class Handle:
    """A running endpoint."""

    def __init__(self, store: Store, server: Server, addr: str) -> None:
        self._store = store
        self._server = server
        self.addr = addr
        self.closed = False
        self.told = False
        """Whether the endpoint's address was printed."""
        self.closing: Callable[[], None] = lambda: None
        """Function that is called when the endpoint is closed."""
        self.port: int = server.server_port
        self._thread = threads.Thread(target=server.serve_until_closed, name="jaxobs-http")
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the page; `/metrics` is below it."""
        shown = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.addr, self.addr)
        shown = f"[{shown}]" if ":" in shown else shown
        return f"{'http' if self._server.protection.context is None else 'https'}://{shown}:{self.port}/"

    @property
    def settings(self) -> Settings:
        """Settings in force for the endpoint."""
        return self._server.protection.settings

    def protect(self, settings: Settings) -> None:
        """Asks of the next requests what the settings want; raises `SettingError`, and then nothing changes."""
        _protect(self._store, self._server, self.addr, settings)

    def close(self) -> None:
        """Stops the endpoint and frees the port; answers that are under way are finished. Idempotent."""
        if not self.closed:
            self.closed = True
            self.closing()
            self._server.stop()
            self._thread.join(timeout=5)
            self._server.server_close()

    def forget(self) -> None:
        """Closes the inherited sockets in a forked child; the serving thread did not come along."""
        self.closed = True
        self._server.forget()

    def __repr__(self) -> str:
        return f"<jaxobs endpoint {self.url}>"


def serve(store: Store, port: int, addr: str, settings: Settings | None = None) -> Handle:
    """Serves the endpoint in daemon threads, port 0 a free one; raises `PortTakenError`, `SettingError`."""
    if not 0 <= port <= 65535:
        raise SettingError(f"`port` is {port}, but must be from 0 to 65535.")
    family = Server if ":" not in addr else ServerV6
    try:
        server = family((addr, port))
    except (OSError, TypeError, ValueError) as error:
        raise _cannot_listen(error, port, addr) from None
    try:
        _protect(store, server, addr, settings or Settings())
    except SettingError:
        server.server_close()
        raise
    unmet = action_routes.unmet(store)
    if unmet is not None:
        store.warn(unmet)
    server.dropped = store.drop
    server.complain = store.warn
    handle, addresses = Handle(store, server, addr), store.part(Addresses)
    addresses.opened(addr, handle.port)
    handle.closing = lambda: addresses.closed(handle.port)
    return handle


def _protect(store: Store, server: Server, addr: str, settings: Settings) -> None:
    protection = Protection(settings, addr, callers.is_loopback(str(server.server_address[0])))
    if protection.is_exposed:
        store.warn(
            f"`read_token` is set and the endpoint on {addr} speaks HTTP: the token crosses the network as plain text. "
            "Set `tls_certificate`."
        )
    server.set_app(application(store, protection))
    server.protection = protection
    store.part(Addresses).scheme = "http" if protection.context is None else "https"


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
