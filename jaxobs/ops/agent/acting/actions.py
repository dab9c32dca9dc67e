"""The actions: what each one does, its bounds, and what somebody asks of it.

Class A1 observes: its cost is bounded, and it writes a file. A2 changes something, by adding to it. What destroys has
no class, so it cannot be declared.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path

from jaxobs.base import private_files
from jaxobs.ops import captures
from jaxobs.ops.agent.acting.policy import Class, Name, Policy
from jaxobs.ops.captures import Outcome, failed
from jaxobs.ops.diagnosis import Inputs, bundles
from jaxobs.ops.diagnosis.gathering.http import shown

BUNDLES, MOST_BUNDLES = "bundles", 50
BUNDLE_BYTES, MOST_BYTES = 2**28, 2 * 2**30
MOST_PROCESSES = 8

_INCIDENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")

Stopped = Callable[[], bool]
"""Says whether what is under way has to end."""


class RefusedError(Exception):
    """An action cannot be done; the message says why and what to do, as a sentence for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Somebody wants an action."""

    action: str
    actor: str
    """`rule:<diagnosis>`, `human:<name>` or `mcp`."""
    target: str = ""
    """URL of a process that is known; empty for an action that concerns no process."""
    job: str = ""
    incident: str = ""
    """Id of the incident that it is for."""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Around:
    """Facts that the agent knows by itself."""

    directory: Path
    """Directory of its reports and of the record."""
    policy: Policy
    targets: Callable[[str], list[str]]
    """Gives the URLs of the processes of a job."""
    prometheus: str = ""
    """URL of the Prometheus that it asks; empty for none."""
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Plan:
    """Exactly what would be done."""

    text: str
    """A whole sentence, with everything that `run` depends on; a dry run reports it."""
    run: Callable[[Stopped], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action and its bounds."""

    name: Name
    about: str
    kind: Class
    seconds: float
    """How long it may take at most; it is stopped then."""
    cooldown: float
    """Seconds until it may be repeated on the same target, unless the policy says otherwise."""
    touches_process: bool
    """Whether a process of a job does the work, so that the process must not be busy with something delicate."""
    verify: str
    """How to see that it worked, as a sentence."""
    plan: Callable[[Request, Around], Plan]
    """Raises RefusedError if it cannot be done."""


def _capture(kind: str, request: Request, around: Around) -> Plan:
    """Plans a capture of a kind that the process knows: `profile` or `memory`."""
    steps, variable, most = around.policy.steps, around.policy.token_variable, ACTIONS[request.action].seconds
    given = {"steps": steps, "seconds": 30.0} if kind == "profile" else {}
    text = f"POST {request.target}/api/v1/actions/{kind}{f' with steps={steps}, for at most 30 s' if given else ''}."
    return Plan(text, lambda stopped: captures.capture(request.target, kind, given, variable, most, stopped))


def _collect_bundle(request: Request, around: Around) -> Plan:
    if not _INCIDENT.fullmatch(request.incident):
        raise RefusedError("A bundle is for an incident, and the request names none.")
    asked = sorted(around.targets(request.job), key=lambda url: url != request.target)[:MOST_PROCESSES]
    inputs = Inputs(targets=tuple(asked), prometheus=(around.prometheus,) if around.prometheus else ())
    addresses = ", ".join(map(shown, [*inputs.targets, *inputs.prometheus]))
    if not addresses:
        raise RefusedError("There is nothing to collect: no process and no Prometheus is known.")
    folder = around.directory / BUNDLES
    sizes = [each.stat().st_size for each in folder.glob("*.tar.gz")]
    if len(sizes) >= MOST_BUNDLES or sum(sizes) + BUNDLE_BYTES > MOST_BYTES:
        raise RefusedError(f"{folder} has {len(sizes)} bundles of {sum(sizes):,} bytes. Move some of them away.")
    names = [request.incident, *(f"{request.incident}-{number}" for number in range(2, MOST_BUNDLES + 2))]
    path = next(path for name in names if not (path := folder / f"{name}.tar.gz").exists())

    def run(stopped: Stopped) -> Outcome:
        private_files.make_folders(folder)
        made = bundles.write(inputs, str(path))
        return Outcome("done", f"Verdict: {made.diagnosis.verdict}.", made.path)

    return Plan(f"Ask {addresses}, and write {path}.", run)


def _warm_cache(request: Request, around: Around) -> Plan:
    chosen = around.policy.warm_cache
    if chosen is None:
        raise RefusedError("The policy has no `[warm_cache]` that says which event log and program to compile.")
    command = ["cache", "warm", chosen.event_log, "--cache-dir", chosen.cache_dir]
    command += ["--script", chosen.script] if chosen.script else []
    command += ["--module", chosen.module] if chosen.module else []

    def run(stopped: Stopped) -> Outcome:
        process = subprocess.Popen(
            [sys.executable, "-m", "jaxobs", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        until = time.monotonic() + ACTIONS["warm_cache"].seconds
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                said, problem = process.communicate(timeout=0.1)
                break
            if stopped() or time.monotonic() > until:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return failed("It was stopped." if stopped() else "It took too long.")
        if process.returncode != 0:
            return failed(f"Exit code {process.returncode}: {' '.join(f'{said} {problem}'.split())[-400:]}")
        return Outcome("done", said.strip().rpartition("\n\n")[2], chosen.cache_dir)

    return Plan(f"Run `jaxobs {' '.join(command)}`.", run)


_PLANS: dict[Name, Callable[[Request, Around], Plan]] = {
    "capture_profile": partial(_capture, "profile"), "collect_bundle": _collect_bundle,
    "dump_memory": partial(_capture, "memory"), "warm_cache": _warm_cache,
}  # fmt: skip
_TABLES = tomllib.loads((resources.files(__package__) / "actions.toml").read_text(encoding="utf-8"))
ACTIONS: dict[str, Action] = {name: Action(name=name, plan=plan, **_TABLES[name]) for name, plan in _PLANS.items()}
