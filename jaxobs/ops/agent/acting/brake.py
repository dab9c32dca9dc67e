"""The brake on actions: the kill switch, the breaker after failures in a row, cool-downs and limits.

All but the switch are worked out from the record, so that they hold after a restart.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from jaxobs.base import private_files
from jaxobs.ops.agent.acting.actions import ACTIONS, Action, Request
from jaxobs.ops.agent.acting.policy import Policy
from jaxobs.ops.agent.acting.record import Record

STOP_FILE = "actions.stop"
STOP_VARIABLE = "JAXOBS_AGENT_STOP"
HOUR = 3600.0


class Brake:
    """Brake on the actions in a directory of the agent's."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._switch = record.directory / STOP_FILE

    def is_on(self) -> bool:
        """Returns whether the kill switch is on: nothing is done then, and what is under way ends."""
        return bool(os.environ.get(STOP_VARIABLE)) or self._switch.exists()

    def stop(self, by: str) -> None:
        """Turns the kill switch on.

        Raises:
          OSError: its file cannot be made.
        """
        private_files.make_folders(self._switch.parent)
        self._switch.touch()
        with contextlib.suppress(OSError):  # The switch holds without its line in the record, too.
            self._record.add(decision="stopped", actor=f"human:{by}")

    def resume(self, by: str) -> bool:
        """Turns the kill switch off; returns whether it is off now, for the environment variable may hold it on.

        Raises:
          OSError: the record cannot be written; it stays on then.
        """
        if self._switch.exists():
            self._record.add(decision="resumed", actor=f"human:{by}")
        self._switch.unlink(missing_ok=True)
        return not self.is_on()

    def reset(self, by: str) -> int:
        """Closes the breaker; returns how many failures there were in a row.

        Raises:
          OSError: the record cannot be written.
        """
        count = _failures(self._record.lines())
        self._record.add(decision="reset", actor=f"human:{by}", failures=count)
        return count

    def refusal(self, request: Request, action: Action, policy: Policy, processes: int) -> str | None:
        """Returns the first reason not to do something now, as a sentence; None if there is none.

        Args:
          processes: how many the job has, as far as is known.
        """
        now, lines = self._record.clock(), self._record.lines()
        latest = next((each for each in reversed(lines) if each["decision"] in ("begun", "done", "failed")), None)
        if latest is not None and latest["decision"] == "begun":
            other, since = ACTIONS.get(str(latest.get("action"))), now - latest["at"]
            if since < 2 * (other.seconds if other else 60.0):  # What began earlier ended with the agent.
                return f"`{latest.get('action')}` began {since:.0f} s ago and has not ended."
        if _failures(lines) >= policy.failures:
            return (
                f"The breaker is open after {policy.failures} failures in a row. Find out why, then run "
                "`jaxobs agent reset`."
            )
        begun = [each for each in lines if each["decision"] == "begun"]
        cooldown = policy.cooldown_seconds.get(action.name, action.cooldown)
        asked = (request.action, request.target)
        same = [now - each["at"] for each in begun if (each.get("action"), each.get("target", "")) == asked]
        if same and min(same) < cooldown:
            return f"The last one there was {min(same):.0f} s ago, and the cool-down is {cooldown:.0f} s."
        of_job = [each for each in begun if each.get("job", "") == request.job and now - each["at"] < HOUR]
        if len(of_job) >= policy.per_job_an_hour:
            return (
                f"{len(of_job)} actions concerned this job within an hour, and `per_job_an_hour` is "
                f"{policy.per_job_an_hour}."
            )
        others = {each["target"] for each in of_job if each.get("target")} - {request.target}
        most = max(1, math.floor(policy.share_of_processes * processes))
        if request.target and len(others) >= most:
            return (
                f"Within an hour {most} of the job's {processes} processes may be touched "
                f"(`share_of_processes` is {policy.share_of_processes:g}), and others were."
            )
        return None


def _failures(lines: Sequence[Mapping[str, Any]]) -> int:
    """Failures in a row since the last success, or since a person closed the breaker."""
    count = 0
    for line in reversed(lines):
        if line["decision"] in ("done", "reset"):
            break
        count += line["decision"] == "failed"
    return count
