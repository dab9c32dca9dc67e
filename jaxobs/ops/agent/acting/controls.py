"""What a person does about actions, on the agent's machine: approve, deny, close the breaker, stop everything."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxobs.base import private_files
from jaxobs.base.errors import ParameterError
from jaxobs.ops.agent.acting import approvals, limits
from jaxobs.ops.agent.acting.audit import Audit
from jaxobs.ops.agent.acting.desk import STOP_FILE, stopped

MINUTES = 24 * 60.0
"""How long a question is shown. Whether an answer still holds is the policy's word (`approval_minutes`)."""


def decide(
    directory: Path, plan: str, approve: bool, by: str, minutes: float = MINUTES, now: float | None = None
) -> str:  # fmt: skip
    """Approves or denies a plan that waits for a person's word; returns what it would do.

    Raises:
      ParameterError: no such plan waits.
      OSError: the record cannot be written.
    """
    now = time.time() if now is None else now
    audit = Audit(directory)
    waiting = approvals.wanted(audit.lines(), now, minutes)
    if plan not in waiting:
        listed = ", ".join(waiting) or "none"
        raise ParameterError(f"No plan `{plan[:40]}` waits for approval. Waiting: {listed}.")
    line = waiting[plan]
    kept = {name: line[name] for name in ("action", "target", "job", "incident", "plan") if name in line}
    audit.add(now, {"decision": "approved" if approve else "denied", "id": plan, "actor": f"human:{by}", **kept})
    return str(line.get("plan", ""))


def reset(directory: Path, by: str, now: float | None = None) -> int:
    """Closes the breaker; returns how many failures there were in a row.

    Raises:
      OSError: the record cannot be written.
    """
    audit = Audit(directory)
    count = limits.failures(audit.lines())
    audit.add(time.time() if now is None else now, {"decision": "reset", "actor": f"human:{by}", "failures": count})
    return count


def stop(directory: Path, by: str, now: float | None = None) -> None:
    """Turns the kill switch on; what is under way ends.

    Raises:
      OSError: the file cannot be made.
    """
    private_files.make_folders(directory)
    (directory / STOP_FILE).touch()
    with contextlib.suppress(OSError):  # It holds without its line in the record, too.
        _note(directory, "stopped", by, now)


def resume(directory: Path, by: str, now: float | None = None) -> bool:
    """Turns the kill switch off; whether it is off now, for the environment variable may hold it on.

    Raises:
      OSError: the record cannot be written; it stays on then.
    """
    if (directory / STOP_FILE).exists():
        _note(directory, "resumed", by, now)
    (directory / STOP_FILE).unlink(missing_ok=True)
    return not stopped(directory)


def _note(directory: Path, decision: str, by: str, now: float | None) -> None:
    Audit(directory).add(time.time() if now is None else now, {"decision": decision, "actor": f"human:{by}"})


def waiting(directory: Path, minutes: float = MINUTES, now: float | None = None) -> list[Mapping[str, Any]]:
    """The plans that wait for a person's word, the oldest first."""
    found = approvals.wanted(Audit(directory).lines(), time.time() if now is None else now, minutes)
    return list(found.values())
