"""`collect_bundle`: the agent puts what the processes and Prometheus say of an incident into one file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from jaxobs.base import private_files
from jaxobs.ops.agent.acting.declarations import (
    Declaration,
    Outcome,
    Plan,
    RefusedError,
    Request,
    Surroundings,
)  # fmt: skip
from jaxobs.ops.agent.acting.policy import Policy
from jaxobs.ops.diagnosis import Inputs, bundles
from jaxobs.ops.diagnosis.gathering.answers import shown

DECLARATION = Declaration(
    name="collect_bundle",
    about="The agent puts what the processes and Prometheus say of an incident into one file, before they are gone.",
    kind="A1",
    seconds=120.0,
    bytes=2**28,
    cooldown=600.0,
    touches_process=False,
    idempotent=False,
    undo="Remove the file.",
    verify="`jaxobs diagnose --bundle FILE` gives the same diagnosis anywhere.",
)
FOLDER = "bundles"
MOST_FILES = 50
MOST_BYTES = 2 * 2**30
MOST_PROCESSES = 8

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def plan(request: Request, policy: Policy, surroundings: Surroundings) -> Plan:
    """Which sources, and which file.

    Raises:
      RefusedError: there is no incident, nothing to collect, or no room.
    """
    if not _NAME.fullmatch(request.incident):
        raise RefusedError("A bundle is for an incident, and the request names none.")
    processes = sorted(surroundings.processes, key=lambda url: url != request.target)[:MOST_PROCESSES]
    if not processes and not surroundings.prometheus:
        raise RefusedError("There is nothing to collect: no process and no Prometheus is known.")
    folder = surroundings.directory / FOLDER
    sizes = [each.stat().st_size for each in folder.glob("*.tar.gz")] if folder.is_dir() else []
    if len(sizes) >= MOST_FILES or sum(sizes) + DECLARATION.bytes > MOST_BYTES:
        raise RefusedError(f"{folder} has {len(sizes)} bundles of {sum(sizes):,} bytes. Move some of them away.")
    path = _free(folder, request.incident)
    asked = [*processes, *([surroundings.prometheus] if surroundings.prometheus else [])]
    return Plan(
        text=f"Ask {', '.join(map(shown, asked))}, and write {path}.",
        arguments={"processes": processes, "prometheus": surroundings.prometheus, "path": str(path)},
    )


def run(plan: Plan, request: Request, policy: Policy, stopped: Callable[[], bool]) -> Outcome:
    """Asks and writes."""
    prometheus = plan.arguments["prometheus"]
    path = Path(plan.arguments["path"])
    private_files.make_folders(path.parent)
    inputs = Inputs(targets=tuple(plan.arguments["processes"]), prometheus=(prometheus,) if prometheus else ())
    made = bundles.write(inputs, str(path))
    return Outcome(result="done", detail=f"Verdict: {made.diagnosis.verdict}.", path=made.path, bytes=made.size)


def _free(folder: Path, incident: str) -> Path:
    names = (incident, *(f"{incident}-{number}" for number in range(2, MOST_FILES + 2)))
    return next(path for name in names if not (path := folder / f"{name}.tar.gz").exists())
