"""Ports on which this process listens: for jaxobs' own endpoint, and for libtpu."""

import errno
import re
from collections.abc import Iterator

from jaxobs.base import config
from jaxobs.base.errors import JaxobsError
from jaxobs.ops.doctor.checks.distributed import COORDINATOR, INDEX, bind_error
from jaxobs.ops.doctor.machine import Finding, Machine, ok

_PORTS = re.compile(r"(JAX|TPU|MEGASCALE)_(\w+_)?PORTS?")
OF_LIBTPU = ("TPU_PROCESS_PORT", "TPU_RUNTIME_METRICS_PORTS", "MEGASCALE_PORT")


def check(machine: Machine) -> Iterator[Finding]:
    """By a trial: the port is bound and given back at once."""
    for name in filter(_PORTS.fullmatch, machine.environment):
        wrong = [each for each in machine.environment[name].split(",") if not each.isdecimal() or int(each) > 65535]
        if wrong:
            yield Finding(
                severity="critical", title=f"{name} is not a port", entity=name, evidence=f"{name}={','.join(wrong)}",
                why="The processes cannot connect.", fix=f"unset {name}",
            )  # fmt: skip
    for name in OF_LIBTPU if machine.tpu_devices else ():
        for port in machine.environment.get(name, "").split(","):
            if port.isdecimal() and (taken := bind_error("", int(port))) is not None:
                yield Finding(
                    severity="critical", title=f"Port {port} of libtpu is taken", entity=name,
                    evidence=f"{name}={machine.environment[name]}: {taken}", why="TPU initialization fails.",
                    fix=f"ss -ltnp 'sport = :{port}'",
                )  # fmt: skip
    try:
        settings = config.resolve({}, machine.environment)
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
    coordinator = machine.environment.get(COORDINATOR, "")
    if machine.environment.get(INDEX) == "0" and coordinator.endswith(f":{settings.port}"):
        yield Finding(
            severity="critical", title=f"Port {settings.port} is for two servers of this process", entity=where,
            evidence=f"JAXOBS_PORT={settings.port}, {COORDINATOR}={coordinator}",
            why="Whichever comes second cannot listen: the coordinator, or the endpoint.",
            fix=f"export JAXOBS_PORT={settings.port + 1}",
        )  # fmt: skip
        return
    if (refused := bind_error(settings.addr, settings.port)) is not None:
        if refused.errno != errno.EADDRINUSE:
            yield Finding(
                severity="info", title=f"The endpoint cannot listen on {settings.addr}", entity=where,
                evidence=f"{where}: {refused}", why="The program runs without an endpoint.",
                fix="export JAXOBS_ADDR=127.0.0.1",
            )  # fmt: skip
            return
        yield Finding(
            # Whoever names the port has something that asks there.
            severity="warning" if machine.environment.get("JAXOBS_PORT") else "info", entity=where,
            title=f"Port {settings.port} is taken", evidence=f"JAXOBS_PORT, {where}: {refused}",
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
