"""Entrance of an ASGI server: a request is let in or refused by its headers, before anything of its body is read."""

from collections.abc import Callable

from jaxobs.base.errors import MissingExtraError

try:
    from starlette.datastructures import Headers
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send
except ImportError as error:
    raise MissingExtraError("jaxobs agent", "starlette", "agent") from error


class Entrance:
    """Middleware that asks a function for the refusal of each request."""

    def __init__(self, app: ASGIApp, refusal: Callable[[Headers], Response | None]) -> None:
        self._app, self._refusal = app, refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request with its refusal, or lets the application answer."""
        refused = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)
