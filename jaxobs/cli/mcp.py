"""`jaxobs mcp`: read-only tools for an assistant."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jaxobs.base.errors import JaxobsError
from jaxobs.cli import diagnose, token_in
from jaxobs.views import client

if TYPE_CHECKING:
    from jaxobs.ops.agent.acting.desk import Desk

HELP = "serve tools for assistants, by the Model Context Protocol; they only read"

FINE = 0

_EPILOG = """\
Without --http, the server uses standard input and output, and an assistant starts it. The server reads only the
sources that the options name; an assistant gives names, never addresses or paths. It changes nothing without
--actions.
Exit codes: 0 the client has left, 2 usage."""
_LEAST_TOKEN = 16


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EPILOG
    diagnose.add_sources(parser, window=False)
    parser.add_argument("--reports", metavar="DIR", help="the directory with the agent's incident reports")
    parser.add_argument(
        "--actions", metavar="FILE",
        help="policy of safe actions, for tools that act once a person has approved; needs --reports",
    )  # fmt: skip
    parser.add_argument("--job", metavar="NAME", default="unnamed", help="the job of the targets, for --actions")
    parser.add_argument(
        "--http", metavar="ADDR:PORT",
        help="serve streamable HTTP at /mcp instead of standard input and output; clients must send the token",
    )  # fmt: skip
    parser.add_argument("--token-file", metavar="FILE", help="file with the token for --http, in one line")
    parser.add_argument(
        "--allow-host", metavar="NAME", action="append", default=[],
        help="a host name that requests may use, besides the address and loopback; repeatable",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Serves until the client leaves.

    Raises:
      JaxobsError: an argument does not fit, or a package is missing.
    """
    from jaxobs.ops.assistants import serving
    from jaxobs.ops.assistants.answers import Sources

    for url in args.target:
        client.endpoint_url(url)
    if args.reports is not None and not os.path.isdir(args.reports):
        raise JaxobsError(f"--reports: `{args.reports}` is not a directory.")
    sources = Sources(inputs=diagnose.given_inputs(args), reports=args.reports, desk=_desk(args), job=args.job)
    if args.http is None:
        serving.run_stdio(sources)
        return FINE
    host, port = _address(args.http)
    token = _token(args.token_file)
    print(f"jaxobs: MCP at http://{args.http}{serving.PATH}", file=sys.stderr, flush=True)
    serving.run_http(sources, host.strip("[]"), port, token, args.allow_host)
    return FINE


def _desk(args: argparse.Namespace) -> Desk | None:
    if args.actions is None:
        return None
    if args.reports is None:
        raise JaxobsError("--actions needs --reports: the record of what was done is kept there.")
    from jaxobs.ops.agent.acting import policy
    from jaxobs.ops.agent.acting.desk import Desk

    urls = [client.endpoint_url(each) for each in args.target]
    prometheus = args.prometheus[0] if args.prometheus else ""
    chosen = policy.read(Path(args.actions))
    return Desk(directory=Path(args.reports), policy=chosen, targets=lambda job: urls, prometheus=prometheus)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise JaxobsError(f"--http: `{text}` is not an address such as 127.0.0.1:8765.")
    return host or "127.0.0.1", int(port)


def _token(path: str | None) -> str:
    """Returns the token, which no message repeats."""
    advice = (
        f"--http needs --token-file FILE, with a token of at least {_LEAST_TOKEN} characters in it. Make one with: "
        "python -c 'import secrets; print(secrets.token_urlsafe())' > token"
    )
    token = "" if path is None else token_in("--token-file", path)
    if len(token) < _LEAST_TOKEN:
        raise JaxobsError(advice)
    return token
