"""`capture_profile`: a process traces a few of its steps."""

from __future__ import annotations

from collections.abc import Callable

from jaxobs.ops.agent.acting import processes
from jaxobs.ops.agent.acting.declarations import Declaration, Outcome, Plan, Request, Surroundings
from jaxobs.ops.agent.acting.policy import Policy

DECLARATION = Declaration(
    name="capture_profile",
    about="A process traces a few of its steps, for XProf or Perfetto.",
    kind="A1",
    seconds=60.0,
    bytes=2**30,
    cooldown=1800.0,
    touches_process=True,
    idempotent=False,
    undo="Remove the directory that was written.",
    verify="The directory has a trace (`*.xplane.pb`), and steps take as long as before.",
)


def plan(request: Request, policy: Policy, surroundings: Surroundings) -> Plan:
    """What would be asked of the process."""
    return Plan(
        text=f"POST {request.target}/api/v1/actions/profile with steps={policy.steps}, for at most 30 s.",
        arguments={"steps": policy.steps, "seconds": 30.0},
    )


def run(plan: Plan, request: Request, policy: Policy, stopped: Callable[[], bool]) -> Outcome:
    """Has the process trace, and waits until the trace is written."""
    return processes.capture(
        request.target, "profile", plan.arguments, policy.token_variable, DECLARATION.seconds, stopped
    )
