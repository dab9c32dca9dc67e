"""`asgi`: each HTTP request of an ASGI application as a `request`, with all that passes left as it is."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from jaxobs.base.guard import guarded
from jaxobs.instruments import requests, route_names, streams

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_BODIES = ("http.response.body", "http.response.zerocopysend")


def asgi(app: Application, *, route: Callable[[Scope], str] | None = None) -> Any:
    """The ASGI application with each of its HTTP requests counted, timed, and told cold or not.

        app = jaxobs.asgi(app)                  # around any ASGI application
        app.add_middleware(jaxobs.asgi)         # the same, as Starlette and FastAPI have it

    A request lasts until the last part of its answer is sent. Its route is the framework's template if that is known
    (FastAPI, Starlette, Litestar), else the path with numbers and ids left out. Websockets and lifespan events pass by.
    The first part of text that is streamed is its first token, unless the program says when that was: its handlers
    reach the request by `jaxobs.request.current()`.

    Args:
      app: the application; attributes that are asked of the result are its own.
      route: gives the label for a `scope` that has been answered, where neither will do.
    """
    return app if requests.off else AsgiMiddleware(app, route)


class AsgiMiddleware(requests.Middleware):
    """An ASGI application around another."""

    app: Application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection: what is not a HTTP request, or is counted further out, passes by."""
        exchange: _Exchange | None = None
        if scope["type"] == "http":
            with guarded("asgi"):
                if not requests.under_way(scope.get("headers")):
                    exchange = _Exchange(scope, receive, send, self._jaxobs_route)
        if exchange is None:
            await self.app(scope, receive, send)
            return
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except BaseException as error:
            with guarded("asgi"):
                exchange.over(error)
            raise
        with guarded("asgi"):
            exchange.over(None)


class _Exchange:
    """An HTTP request and its answer, as they pass."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, route: Callable[[Scope], str] | None) -> None:
        self._scope, self._receive, self._send, self._route = scope, receive, send, route
        self._path, self._root = str(scope.get("path") or "/"), str(scope.get("root_path") or "")
        self._status: int | None = None
        self._trailers = self._complete = self._gone = False
        self._headers: Any = None
        self._parts = streams.Parts()
        self._request = requests.Served(self._path, self._name_so_far)
        self._request.begin(scope.get("headers"))

    async def receive(self) -> Message:
        """Hands on what the client sends."""
        message = await self._receive()
        with guarded("asgi"):
            self._gone = self._gone or message.get("type") == "http.disconnect"
        return message

    async def send(self, message: Message) -> None:
        """Hands on what the application answers; with the last of it the request is over."""
        last = carries = False
        with guarded("asgi"):
            last = self._ends_with(message)
            carries = not self._parts.over and self._carries_text(message)
        try:
            await self._send(message)
        except OSError:
            self._gone = True
            raise
        if carries:
            with guarded("asgi"):
                self._request.first_part(self._parts.sent())
        if last:
            with guarded("asgi"):
                # A framework that hears of the client's end closes its stream as if it were whole.
                self._complete = not self._gone or streams.is_sized(self._headers)
                self._finish(None)

    def _ends_with(self, message: Message) -> bool:
        kind = message.get("type")
        if kind == "http.response.start":
            self._status, self._trailers = message.get("status"), bool(message.get("trailers"))
            self._headers = message.get("headers")
        elif kind in _BODIES:
            return not message.get("more_body", False) and not self._trailers
        elif kind == "http.response.trailers":
            return not message.get("more_trailers", False)
        return kind == "http.response.pathsend" and not self._trailers

    def _carries_text(self, message: Message) -> bool:
        return message.get("type") == "http.response.body" and self._parts.carries_text(
            self._headers, message.get("body"), last=not message.get("more_body", False)
        )

    def over(self, error: BaseException | None) -> None:
        """The application has returned, or raised."""
        try:
            self._finish(error)
        finally:
            self._request.leave()

    def _finish(self, error: BaseException | None) -> None:
        if not self._request.is_open:
            return
        outcome = requests.outcome_of_status(self._status) if self._complete else "error"
        if error is not None:
            outcome = requests.outcome_of(error)
        if self._gone and not self._complete:
            outcome = "cancelled"
        http = self._scope.get("method"), self._scope.get("scheme"), self._status
        self._request.end(self._name, outcome, error, http)

    def _name_so_far(self) -> str | None:
        """The route while the application is answering; None where the program names it, and has not yet."""
        return None if self._route is not None else route_names.of_asgi(self._scope, self._path, self._root, None)

    def _name(self) -> str:
        with guarded("asgi.route"):
            if self._route is not None:
                return str(self._route(self._scope))
            return route_names.of_asgi(self._scope, self._path, self._root, self._status)
        return route_names.collapsed(self._path)
