"""`wsgi`: each request of a WSGI application as a `request`, with all that passes left as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jaxobs.base.guard import guarded
from jaxobs.instruments import requests, route_names, streams

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]


def wsgi(app: Application, *, route: Callable[[Environ], str] | None = None) -> Any:
    """The WSGI application with each of its requests counted, timed, and told cold or not.

        app.wsgi_app = jaxobs.wsgi(app.wsgi_app)    # Flask
        application = jaxobs.wsgi(application)      # Django and any other

    A request lasts until its answer is exhausted or closed. Its route is Flask's or Bottle's rule, else the path with
    numbers and ids left out. The first part of text that is streamed is its first token, unless the program says when
    that was: its handlers reach the request by `jaxobs.request.current()`.

    Args:
      app: the application; attributes that are asked of the result are its own.
      route: gives the label for an `environ` that has been answered, where neither will do.
    """
    return app if requests.off else WsgiMiddleware(app, route)


class WsgiMiddleware(requests.Middleware):
    """A WSGI application around another."""

    app: Application

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serves one request, unless it is counted further out."""
        exchange: _Exchange | None = None
        with guarded("wsgi"):
            if not requests.under_way(environ):
                exchange = _Exchange(environ, start_response, self._jaxobs_route)
        if exchange is None:
            return self.app(environ, start_response)
        try:
            body = self.app(environ, exchange.start_response)
        except BaseException as error:
            exchange.over(error)
            raise
        return exchange.answered(body)


class _Exchange:
    """A request and its answer, as they pass."""

    def __init__(self, environ: Environ, start_response: StartResponse, route: Callable[[Environ], str] | None) -> None:
        self._environ, self._start_response, self._route = environ, start_response, route
        self._path = str(environ.get("SCRIPT_NAME") or "") + str(environ.get("PATH_INFO") or "") or "/"
        self._status: int | None = None
        self._named: str | None = None
        self._headers: Any = None
        self.parts = streams.Parts()
        self.request = requests.Served(self._path, self._name_so_far)
        self.request.begin(environ)

    def start_response(self, status: str, *rest: Any, **named: Any) -> Any:
        """Hands the status and the headers on; the last call counts, as with `exc_info`."""
        with guarded("wsgi"):
            self._status = int(status[:3])
            self._headers = rest[0] if rest else named.get("headers", named.get("response_headers"))
            self._named = self._name()  # now, for Flask forgets its rule before its answer is sent
        return self._start_response(status, *rest, **named)

    def answered(self, body: Iterable[bytes]) -> Iterable[bytes]:
        """The answer to give on: as it is where it is whole already, or the server knows how to send it."""
        with guarded("wsgi"):
            self.request.leave()
            wrapper = self._environ.get("wsgi.file_wrapper")
            if isinstance(body, list | tuple | bytes) or (isinstance(wrapper, type) and isinstance(body, wrapper)):
                self.over(None)
                return body
            self.parts.over = hasattr(body, "__len__")
            return _SizedBody(body, self) if self.parts.over else _Body(body, self)
        return body

    def sends(self, part: Any) -> None:
        """A part of an answer that is not there as a whole goes to the server."""
        if self.parts.carries_text(self._headers, part):
            self.request.first_part(self.parts.sent())

    def over(self, error: BaseException | None, *, given_up: bool = False) -> None:
        """Ends the request: its answer is exhausted or closed, or something was raised."""
        with guarded("wsgi"):
            if not self.request.is_open:
                return
            outcome = "cancelled" if given_up else requests.outcome_of_status(self._status)
            outcome = outcome if error is None else requests.outcome_of(error)
            http = self._environ.get("REQUEST_METHOD"), self._environ.get("wsgi.url_scheme"), self._status
            self.request.end(lambda: self._named or self._name(), outcome, error, http)
            self.request.leave()

    def _name_so_far(self) -> str | None:
        """The route while the application is answering; None where the program names it, and has not yet."""
        if self._named is not None or self._route is not None:
            return self._named
        return route_names.of_wsgi(self._environ, self._path, None)

    def _name(self) -> str:
        with guarded("wsgi.route"):
            if self._route is not None:
                return str(self._route(self._environ))
            return route_names.of_wsgi(self._environ, self._path, self._status)
        return route_names.collapsed(self._path)


class _Body:
    """The application's answer part by part. The request is current only while the application works on a part."""

    def __init__(self, body: Iterable[bytes], exchange: _Exchange) -> None:
        self._body, self._exchange = body, exchange
        self._parts: Iterator[bytes] | None = None

    def __iter__(self) -> _Body:
        return self

    def __next__(self) -> bytes:
        with guarded("wsgi"):
            self._exchange.request.enter_again()
        try:
            if self._parts is None:
                self._parts = iter(self._body)
            part = next(self._parts)
        except StopIteration:
            self._exchange.over(None)
            raise
        except BaseException as error:
            self._exchange.over(error)
            raise
        with guarded("wsgi"):
            self._exchange.request.leave()
            if not self._exchange.parts.over:
                self._exchange.sends(part)
        return part

    def close(self) -> None:
        """Closes the application's answer; one that was not exhausted was given up by the client."""
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._exchange.over(None, given_up=True)


class _SizedBody(_Body):
    """An answer that reports how many parts it has, from which a server may tell the length."""

    def __len__(self) -> int:
        return len(self._body)  # type: ignore[arg-type]
