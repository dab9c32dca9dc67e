"""The actions: what each one does, its bounds, and what somebody asks of it.

Class A1 observes: its cost is bounded, and it writes a file. A2 changes something, by adding to it. What destroys has
no class, so it cannot be declared.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxobs.base import json_lines, private_files
from jaxobs.ops.agent.acting.policy import Class, Name, Policy
from jaxobs.ops.agent.acting.processes import RefusedError
from jaxobs.ops.diagnosis import Inputs, bundles
from jaxobs.ops.diagnosis.gathering.answers import shown
from jaxobs.views import captures
from jaxobs.views.captures import Outcome, failed

CLASSES: Mapping[Class, str] = {
    "A1": "observes at a bounded cost, and writes a file",
    "A2": "adds to what is stored; a person approves each one",
}
BUNDLES = "bundles"
MOST_BUNDLES = 50
BUNDLE_BYTES, MOST_BYTES = 2**28, 2 * 2**30
MOST_PROCESSES = 8

_INCIDENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MOST_SAID = 400

Stopped = Callable[[], bool]
"""Says whether what is under way has to end."""


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


@dataclass(frozen=True, slots=True)
class Around:
    """Facts that the agent knows by itself."""

    policy: Policy
    directory: Path
    """Directory of its reports."""
    processes: tuple[str, ...]
    """URLs of the processes of the request's job."""
    prometheus: str
    """The Prometheus that it asks; empty for none."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Exactly what would be done."""

    text: str
    """A whole sentence, with everything that `run` depends on; a dry run reports it."""
    run: Callable[[Stopped], Outcome]

    def id(self, request: Request) -> str:
        """Returns the same for the same plan on the same target for the same incident; an approval is for this."""
        told = [request.action, request.target, request.incident, self.text]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action and its bounds."""

    name: Name
    about: str
    """Sentence that says what it does."""
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


def _capture_profile(request: Request, around: Around) -> Plan:
    steps = around.policy.steps
    text = f"POST {request.target}/api/v1/actions/profile with steps={steps}, for at most 30 s."
    return Plan(text, lambda stopped: _capture("profile", {"steps": steps, "seconds": 30.0}, request, around, stopped))


def _dump_memory(request: Request, around: Around) -> Plan:
    text = f"POST {request.target}/api/v1/actions/memory."
    return Plan(text, lambda stopped: _capture("memory", {}, request, around, stopped))


def _capture(
    kind: str, parameters: Mapping[str, float], request: Request, around: Around, stopped: Stopped
) -> Outcome:  # fmt: skip
    most, variable = ACTIONS[request.action].seconds, around.policy.token_variable
    return captures.capture(request.target, kind, parameters, variable, most, stopped)


def _collect_bundle(request: Request, around: Around) -> Plan:
    if not _INCIDENT.fullmatch(request.incident):
        raise RefusedError("A bundle is for an incident, and the request names none.")
    asked = sorted(around.processes, key=lambda url: url != request.target)[:MOST_PROCESSES]
    prometheus = [around.prometheus] if around.prometheus else []
    if not asked and not prometheus:
        raise RefusedError("There is nothing to collect: no process and no Prometheus is known.")
    folder = around.directory / BUNDLES
    sizes = [each.stat().st_size for each in folder.glob("*.tar.gz")] if folder.is_dir() else []
    if len(sizes) >= MOST_BUNDLES or sum(sizes) + BUNDLE_BYTES > MOST_BYTES:
        raise RefusedError(f"{folder} has {len(sizes)} bundles of {sum(sizes):,} bytes. Move some of them away.")
    names = [request.incident, *(f"{request.incident}-{number}" for number in range(2, MOST_BUNDLES + 2))]
    path = next(path for name in names if not (path := folder / f"{name}.tar.gz").exists())

    def run(stopped: Stopped) -> Outcome:
        private_files.make_folders(folder)
        made = bundles.write(Inputs(targets=tuple(asked), prometheus=tuple(prometheus)), str(path))
        return Outcome("done", f"Verdict: {made.diagnosis.verdict}.", made.path)

    return Plan(f"Ask {', '.join(map(shown, [*asked, *prometheus]))}, and write {path}.", run)


def _warm_cache(request: Request, around: Around) -> Plan:
    chosen = around.policy.warm_cache
    if chosen is None:
        raise RefusedError("The policy has no `[warm_cache]` that says which event log and program to compile.")
    command = ["cache", "warm", chosen.event_log, "--cache-dir", chosen.cache_dir, "--json"]
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
            told = " ".join(each for each in (_warmed(said), problem.strip()[-_MOST_SAID:]) if each)
            return failed(f"Exit code {process.returncode}: {told}")
        return Outcome("done", _warmed(said), chosen.cache_dir)

    return Plan(f"Run `jaxobs {' '.join(command)}`.", run)


def _warmed(text: str) -> str:
    try:
        every = [bool(each["warmed"]) for each in json_lines.loads(text)["signatures"]]
    except (ValueError, KeyError, TypeError):
        return ""
    return f"{sum(every)} of {len(every)} recorded signatures are in the cache."


ACTIONS: dict[str, Action] = {
    each.name: each
    for each in (
        Action(
            name="capture_profile",
            about="A process traces a few of its steps, for XProf or Perfetto.",
            kind="A1", seconds=60.0, cooldown=1800.0, touches_process=True, plan=_capture_profile,
            verify="The directory has a trace (`*.xplane.pb`), and steps take as long as before.",
        ),
        Action(
            name="collect_bundle",
            about="The agent puts what the processes and Prometheus say of an incident into one file, before they are "
                  "gone.",
            kind="A1", seconds=120.0, cooldown=600.0, touches_process=False, plan=_collect_bundle,
            verify="`jaxobs diagnose --bundle FILE` gives the same diagnosis anywhere.",
        ),
        Action(
            name="dump_memory",
            about="A process writes JAX's device memory profile, with the stack that allocated each buffer, and a "
                  "summary.",
            kind="A1", seconds=75.0, cooldown=900.0, touches_process=True, plan=_dump_memory,
            verify="The directory has `memory.pb.gz` and `memory.txt`.",
        ),
        Action(
            name="warm_cache",
            about="Compiles into the persistent cache what a run recorded in its event log, so that the next start is "
                  "fast.",
            kind="A2", seconds=1800.0, cooldown=86_400.0, touches_process=False, plan=_warm_cache,
            verify="`jaxobs cache inspect DIRECTORY` lists the entries, and the next start of the job reports hits.",
        ),
    )
}  # fmt: skip
