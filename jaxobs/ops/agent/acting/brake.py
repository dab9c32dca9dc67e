"""Why an action may not be done now: cool-downs, limits and the breaker, worked out from the record alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jaxobs.ops.agent.acting.declarations import Declaration, Request
from jaxobs.ops.agent.acting.policy import Policy

Lines = Sequence[Mapping[str, Any]]

HOUR = 3600.0


def under_way(lines: Lines, now: float, longest: Mapping[str, float]) -> Mapping[str, Any] | None:
    """An action that has begun and not ended. One that began too long ago ended with the agent.

    Args:
      longest: seconds that each action may take.
    """
    open_: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        if line["decision"] == "begun":
            open_[str(line.get("id"))] = line
        elif line["decision"] in ("done", "failed"):
            open_.pop(str(line.get("id")), None)
    alive = [each for each in open_.values() if now - each["at"] < 2 * longest.get(str(each.get("action")), 60.0)]
    return alive[-1] if alive else None


def failures(lines: Lines) -> int:
    """Failures in a row since the last success, or since a person closed the breaker."""
    count = 0
    for line in reversed(lines):
        if line["decision"] in ("done", "reset"):
            return count
        count += line["decision"] == "failed"
    return count


def refusal(
    request: Request, declared: Declaration, policy: Policy, lines: Lines, now: float, processes: int
) -> str | None:
    """The first reason not to do it, as a sentence; None where there is none.

    Args:
      processes: how many the job has, as far as is known.
    """
    if failures(lines) >= policy.failures:
        return (
            f"The breaker is open after {policy.failures} failures in a row. Find out why, then run "
            "`jaxobs agent reset`."
        )
    begun = [each for each in lines if each["decision"] == "begun"]
    cooldown = policy.cooldown_seconds.get(request.action, declared.cooldown)
    same = [each["at"] for each in begun if (each.get("action"), each.get("target", "")) == _key(request)]
    if same and now - max(same) < cooldown:
        return f"The last one there was {now - max(same):.0f} s ago, and the cool-down is {cooldown:.0f} s."
    of_job = [each for each in begun if each.get("job", "") == request.job and now - each["at"] < HOUR]
    if len(of_job) >= policy.per_job_an_hour:
        return f"{len(of_job)} actions concerned this job within an hour, and `per_job_an_hour` is " \
               f"{policy.per_job_an_hour}."  # fmt: skip
    if request.target:
        touched = {each.get("target") for each in of_job if each.get("target")} | {request.target}
        most = max(1, math.floor(policy.share_of_processes * processes))
        if len(touched) > most:
            return (
                f"Within an hour {most} of the job's {processes} processes may be touched "
                f"(`share_of_processes` is {policy.share_of_processes:g}), and others were."
            )
    return None


def _key(request: Request) -> tuple[str, str]:
    return request.action, request.target
