"""The server, over standard input and output or over HTTP with a token: tools that read, and allowed actions."""

import contextlib
import functools
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

from jaxobs.base import callers, threads
from jaxobs.base.errors import JaxobsError, MissingExtraError
from jaxobs.base.version import __version__
from jaxobs.ops.assistants import acting_tools
from jaxobs.ops.assistants.answers import Answer, NotGivenError, RefusedError, Sources, no_data, silent
from jaxobs.ops.assistants.quoting import NOTICE
from jaxobs.ops.assistants.tools import tools
from jaxobs.ops.entrance import Entrance

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.types import ToolAnnotations
    from starlette.datastructures import Headers
    from starlette.responses import Response
except ImportError:
    raise MissingExtraError("jaxobs mcp", "mcp", "mcp") from None

PATH = "/mcp"
MOST_LINE = 4 * 2**20
"""Bytes of a message on standard input."""
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
    source, (read_end, write_end) = os.dup(0), os.pipe()
    os.dup2(read_end, 0)
    os.close(read_end)
    threads.Thread(_bounded, "jaxobs-mcp-input", (source, write_end)).start()
    server(sources).run("stdio")


def _bounded(source: int, target: int) -> None:
    """Copies lines until one is too long, which ends the input: the server would take a line of any length."""
    length = 0
    with contextlib.suppress(OSError):
        while length <= MOST_LINE and (piece := os.read(source, 2**16)):
            _, end, rest = piece.rpartition(b"\n")
            length = len(rest) if end else length + len(piece)
            piece = piece if piece.strip(b"\n") else b"\n"
            while piece:
                piece = piece[os.write(target, piece) :]
    os.close(target)


def http_app(sources: Sources, token: str, known: frozenset[str] | None) -> Any:
    """Returns the ASGI application for streamable HTTP.

    Args:
      token: what a client has to send as `Authorization: Bearer TOKEN`.
      known: hosts that a request may name.
    """

    def refusal(headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if not callers.is_asked_for(hosts, known):
            return Response("Unknown host: allow it with --allow-host.\n", 421)
        if not callers.is_own(headers.getlist("origin"), hosts):
            return Response("Web pages of other sites may not ask.\n", 403)
        if not callers.is_token(callers.shown_token(headers.get("authorization")), token):
            return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
        return None

    app = server(sources).streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # `refusal` has done that
    )  # fmt: skip
    return Entrance(app, refusal)


def is_failure(record: logging.LogRecord) -> bool:
    """Returns whether a record of MCP's server tells anything but that a client has left."""
    return not (record.exc_info and type(record.exc_info[1]).__name__ == "ClientDisconnect")


def run_http(sources: Sources, host: str, port: int, token: str, hosts: Sequence[str]) -> None:
    """Serves until it is interrupted.

    Raises:
      JaxobsError: the port is taken.
    """
    import uvicorn

    from jaxobs.ops import connections

    logging.getLogger("mcp").setLevel(logging.WARNING)
    logging.getLogger("mcp.server.streamable_http").addFilter(is_failure)
    app = http_app(sources, token, callers.known_hosts(host, hosts, closed=True))
    config = uvicorn.Config(app, host=host, port=port, lifespan="on", **connections.BOUNDS)
    try:
        uvicorn.Server(config).run()
    except SystemExit:
        raise JaxobsError(
            f"Nothing can listen on {host}:{port}: another program does, or the address is wrong."
        ) from None
