"""The server, over standard input and output or over HTTP with a token: tools that read, and allowed actions."""

from __future__ import annotations

import functools
import hmac
import logging
from collections.abc import Callable, Sequence
from typing import Any

from jaxobs.base.errors import JaxobsError, MissingExtraError
from jaxobs.base.version import __version__
from jaxobs.ops.assistants import acting_tools
from jaxobs.ops.assistants.answers import Answer, NotGivenError, RefusedError, no_data, silent
from jaxobs.ops.assistants.quoting import NOTICE
from jaxobs.ops.assistants.sources import Sources
from jaxobs.ops.assistants.tools import tools

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.types import ToolAnnotations
except ImportError:
    raise MissingExtraError("jaxobs mcp", "mcp", "mcp") from None

PATH = "/mcp"
INSTRUCTIONS = (
    "Facts about JAX jobs: their compilations, memory, steps, findings, incidents. Begin with list_processes, or with "
    "list_incidents after an alert; ask diagnose for a cause before you guess. Tools only read, unless one says that "
    f"a person is asked first. `no_data` means that nothing is known: report it as that, and not as health. {NOTICE}"
)
READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def server(sources: Sources) -> MCPServer:
    """Returns a server with all tools that read, and the actions that a policy allows: no resources, no prompts."""
    made = MCPServer("jaxobs", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    for name, run in tools(sources).items():
        made.add_tool(_guarded(run), name=name, annotations=READ_ONLY)
    if sources.desk is not None:
        acting_tools.add(made, sources, sources.desk, sources.job)
    return made


def _guarded(run: Callable[..., Answer]) -> Callable[..., Answer]:
    """Tells the assistant what does not fit, and hides what fails in jaxobs."""

    @functools.wraps(run)
    def tool(*args: Any, **kwargs: Any) -> Answer:
        try:
            return run(*args, **kwargs)
        except RefusedError as error:
            raise ToolError(str(error)) from None
        except NotGivenError as error:
            return no_data(str(error))
        except JaxobsError as error:
            return silent(error)

    return tool


def run_stdio(sources: Sources) -> None:
    """Serves until standard input ends. Standard output is the wire: what else is printed goes to standard error."""
    server(sources).run("stdio")


def http_app(sources: Sources, token: str, hosts: Sequence[str]) -> Any:
    """Returns the ASGI application for streamable HTTP.

    Args:
      token: what a client has to send as `Authorization: Bearer TOKEN`.
      hosts: what a request may name as its host, without a port.
    """
    allowed = [each for host in hosts for each in (host, f"{host}:*")]
    security = TransportSecuritySettings(
        allowed_hosts=allowed,
        allowed_origins=[f"{scheme}://{each}" for each in allowed for scheme in ("http", "https")],
    )
    app = server(sources).streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, transport_security=security
    )
    return _with_token(app, token)


def _with_token(app: Any, token: str) -> Any:
    wanted = f"Bearer {token}".encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(given, wanted):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b""})
                return
        await app(scope, receive, send)

    return guarded


def run_http(sources: Sources, host: str, port: int, token: str, hosts: Sequence[str]) -> None:
    """Serves until it is interrupted.

    Raises:
      JaxobsError: the port is taken.
    """
    import uvicorn

    logging.getLogger("mcp").setLevel(logging.WARNING)
    config = uvicorn.Config(http_app(sources, token, hosts), host=host, port=port, log_level="warning", lifespan="on")
    try:
        uvicorn.Server(config).run()
    except SystemExit:
        raise JaxobsError(
            f"Nothing can listen on {host}:{port}: another program does, or the address is wrong."
        ) from None
