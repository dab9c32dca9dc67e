"""`warm_cache`: compiles into a cache what a run recorded, with the files that the policy names and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import IO

from jaxobs.base import json_lines
from jaxobs.ops.agent.acting.declarations import Declaration, Outcome, Plan, RefusedError, Request, Surroundings
from jaxobs.ops.agent.acting.policy import Policy

DECLARATION = Declaration(
    name="warm_cache",
    about="Compiles into the persistent cache what a run recorded in its event log, so that the next start is fast.",
    kind="A2",
    seconds=1800.0,
    bytes=8 * 2**30,
    cooldown=86_400.0,
    touches_process=False,
    idempotent=True,
    undo="Remove the entries that are newer than the action from the cache directory.",
    verify="`jaxobs cache inspect DIRECTORY` lists the entries, and the next start of the job reports hits.",
)

_MOST_SAID = 400
_MOST_READ = 8 * 2**20


def plan(request: Request, policy: Policy, surroundings: Surroundings) -> Plan:
    """The command line.

    Raises:
      RefusedError: the policy does not say what to compile.
    """
    chosen = policy.warm_cache
    if chosen is None:
        raise RefusedError("The policy has no `[warm_cache]` that says which event log and program to compile.")
    command = ["cache", "warm", chosen.event_log, "--cache-dir", chosen.cache_dir, "--json"]
    command += ["--script", chosen.script] if chosen.script else []
    command += ["--module", chosen.module] if chosen.module else []
    return Plan(text=f"Run `jaxobs {' '.join(command)}`.", arguments={"command": command})


def run(plan: Plan, request: Request, policy: Policy, stopped: Callable[[], bool]) -> Outcome:
    """Runs the command beside the agent, and ends it when its time is up."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as wrong:
        process = subprocess.Popen(
            [sys.executable, "-m", "jaxobs", *plan.arguments["command"]],
            stdin=subprocess.DEVNULL, stdout=said, stderr=wrong, start_new_session=True,
        )  # fmt: skip
        until = time.monotonic() + DECLARATION.seconds
        while process.poll() is None and time.monotonic() < until and not stopped():
            time.sleep(0.1)
        ended = process.poll()
        if ended is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Outcome(result="failed", detail="It was stopped." if stopped() else "It took too long.")
        text, problem = _read(said), _read(wrong)
    if ended != 0:
        said_so = " ".join(each for each in (_told(text), problem[-_MOST_SAID:]) if each)
        return Outcome(result="failed", detail=f"Exit code {ended}: {said_so}")
    return Outcome(result="done", detail=_told(text), path=plan.arguments["command"][4])


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MOST_READ).decode(errors="replace").strip()


def _told(text: str) -> str:
    """How many signatures are in the cache now, of those that were recorded."""
    try:
        every = [bool(each["warmed"]) for each in json_lines.loads(text)["signatures"]]
    except (ValueError, KeyError, TypeError):
        return ""
    return f"{sum(every)} of {len(every)} recorded signatures are in the cache."
