"""The port of jaxobs' own endpoint."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

from jaxobs.base import config
from jaxobs.base.errors import JaxobsError
from jaxobs.ops.doctor.findings import Finding, ok
from jaxobs.ops.doctor.machine import Machine

ABOUT = "Whether the port of the metrics endpoint is free, and who can reach it."


def check(machine: Machine) -> Iterator[Finding]:
    """By a trial: the port is bound and given back at once."""
    try:
        settings = config.resolve({})
    except JaxobsError as error:
        yield Finding(
            severity="warning", title="A setting of jaxobs is not valid", entity="jaxobs", evidence=str(error),
            why="The program runs without it.", fix="jaxobs run --help",
        )  # fmt: skip
        return
    if not settings.port:
        yield ok("No endpoint is wanted", "port 0")
        return
    where = f"{settings.addr}:{settings.port}"
    try:
        with socket.socket(socket.AF_INET6 if ":" in settings.addr else socket.AF_INET) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((settings.addr, settings.port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            yield Finding(
                severity="info", title=f"The endpoint cannot listen on {settings.addr}", entity=where,
                evidence=f"{where}: {error}", why="The program runs without an endpoint.",
                fix="export JAXOBS_ADDR=127.0.0.1",
            )  # fmt: skip
            return
        yield Finding(
            severity="info", title=f"Port {settings.port} is taken", entity=where, evidence=f"{where}: {error}",
            why="`jaxobs.start` warns and takes the next free port, which a fixed scrape target does not find.",
            fix=f"ss -ltnp 'sport = :{settings.port}'; or export JAXOBS_PORT={settings.port + 1}",
        )  # fmt: skip
        return
    exposed = settings.addr in ("0.0.0.0", "::") and not settings.read_token
    if exposed:
        yield Finding(
            severity="info", title="Everybody who reaches this host can read the endpoint", entity=where,
            evidence=f"{where}, and JAXOBS_READ_TOKEN is not set",
            why="It shows names of functions, shapes and figures of the job.",
            fix="export JAXOBS_ADDR=127.0.0.1, or JAXOBS_READ_TOKEN=<a secret>",
        )  # fmt: skip
    else:
        yield ok(f"Port {settings.port} is free", where)
