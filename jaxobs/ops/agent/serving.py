"""The HTTP side: Alertmanager's webhook in, reports, health and metrics out."""

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Iterator
from types import FrameType

import uvicorn
from prometheus_client import generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from jaxobs.base import callers
from jaxobs.base.errors import SettingError
from jaxobs.ops import connections
from jaxobs.ops.agent import notifications
from jaxobs.ops.agent.notifications import RefusedError
from jaxobs.ops.agent.pages import reading
from jaxobs.ops.agent.working import Agent
from jaxobs.ops.entrance import Entrance

_LOGGER = logging.getLogger("jaxobs.agent")

MOST_BYTES = 2**20
"""Bytes of a webhook's body."""
MOST_SECONDS = 10.0
"""Seconds for a body to arrive."""
LOG_EVERY = 60.0
"""Seconds from one line about refusals of a kind to the next."""
_STATUS = {
    "unauthorized": 401,
    "browser": 403,
    "slow": 408,
    "too_large": 413,
    "host": 421,
    "content_type": 415,
    "too_many_incidents": 503,
}
"""HTTP status by the reason of a refusal; 400 for others. Alertmanager tries again after 5xx only."""


def application(
    agent: Agent, token: str = "", known: frozenset[str] | None = None, *, read_token: str = "", is_shown: bool = True
) -> Starlette:
    """Returns the ASGI application of the agent.

    Args:
      token: what a webhook has to bring as its bearer token; none is needed if it is empty.
      known: hosts that a request may name; None for any.
      read_token: what a reader of reports has to show.
      is_shown: whether reports are shown to readers without a token, if there is none.
    """

    told: dict[str, float] = {}

    def stranger(headers: Headers) -> Response | None:
        if callers.is_asked_for(headers.getlist("host"), known):
            return None
        return refused("host", f"The agent answers requests to {', '.join(sorted(known or {'one host'}))} only.")

    async def webhook(request: Request) -> Response:
        try:
            if token and not callers.is_token(callers.shown_token(request.headers.get("authorization")), token):
                raise RefusedError("unauthorized", "The bearer token is missing or wrong.")
            _refuse_browsers(request)
            body = await asyncio.wait_for(_body(request), MOST_SECONDS)
            ids = await run_in_threadpool(lambda: agent.accept(notifications.parse(body)))
        except (TimeoutError, ClientDisconnect):
            return refused("slow", "The body did not arrive in time.")
        except RefusedError as error:
            return refused(error.reason, str(error))
        return JSONResponse({"accepted": True, "incidents": ids}, status_code=202)

    def refused(reason: str, message: str) -> Response:
        agent.metrics.refused.labels(reason).inc()
        now = time.monotonic()
        if now - told.get(reason, -LOG_EVERY) >= LOG_EVERY:
            told[reason] = now
            _LOGGER.warning("A request is refused: %s The next ones are only counted.", message)
        return JSONResponse({"accepted": False, "reason": reason, "message": message}, _STATUS.get(reason, 400))

    async def metrics(request: Request) -> Response:
        return Response(generate_latest(agent.metrics.registry), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n") if agent.is_alive else PlainTextResponse("its threads have ended\n", 503)

    async def readyz(request: Request) -> Response:
        return PlainTextResponse("ok\n") if agent.is_ready else PlainTextResponse("not ready\n", 503)

    return Starlette(
        routes=[
            *reading.routes(agent, read_token, is_shown=is_shown),
            Route("/webhook", webhook, methods=["POST"]),
            Route("/metrics", metrics, methods=["GET"]),
            Route("/healthz", healthz, methods=["GET"]),
            Route("/readyz", readyz, methods=["GET"]),
        ],
        middleware=[Middleware(Entrance, refusal=stranger)],
    )


def _refuse_browsers(request: Request) -> None:
    """Refuses what a web page can send: a browser names its origin, or asks before it sends JSON."""
    if "origin" in request.headers:
        raise RefusedError("browser", "Browsers send no webhooks: the request has the header `Origin`.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError("content_type", f"The `Content-Type` is {kind[:80]!r}. Send application/json.")


async def _body(request: Request) -> bytes:
    """Returns the whole body; never more of it in memory than may be."""
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared[:12]) > MOST_BYTES:
        raise RefusedError("too_large", f"The body is larger than {MOST_BYTES:,} bytes.")
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > MOST_BYTES:
            raise RefusedError("too_large", f"The body is larger than {MOST_BYTES:,} bytes.")
    return bytes(found)


class _Server(uvicorn.Server):
    """Ends with exit code 0 after SIGTERM: a process manager that stops it has asked for just that."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        def end(number: int, frame: FrameType | None) -> None:
            self.should_exit = True

        before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def listening(host: str, port: int) -> socket.socket:
    """Returns a socket that listens there.

    Raises:
      SettingError: the host is unknown, or the port belongs to another process.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise SettingError(f"--listen {host}:{port} is not possible: {error.strerror or error}.") from None


def serve(agent: Agent, listens: socket.socket, application: Starlette) -> None:
    """Serves an application of the agent until SIGTERM or SIGINT."""
    config = uvicorn.Config(application, lifespan="off", timeout_graceful_shutdown=5, **connections.BOUNDS)
    agent.start()
    try:
        _Server(config).run(sockets=[listens])
    finally:
        agent.stop()
