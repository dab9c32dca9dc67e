"""`dump_memory`: a process writes down what holds the memory of its devices."""

from __future__ import annotations

from collections.abc import Callable

from jaxobs.ops.agent.acting import processes
from jaxobs.ops.agent.acting.declarations import Declaration, Outcome, Plan, Request, Surroundings
from jaxobs.ops.agent.acting.policy import Policy

DECLARATION = Declaration(
    name="dump_memory",
    about="A process writes JAX's device memory profile, with the stack that allocated each buffer, and a summary.",
    kind="A1",
    seconds=75.0,
    bytes=2**28,
    cooldown=900.0,
    touches_process=True,
    idempotent=False,
    undo="Remove the directory that was written.",
    verify="The directory has `memory.pb.gz` and `memory.txt`.",
)


def plan(request: Request, policy: Policy, surroundings: Surroundings) -> Plan:
    """What would be asked of the process."""
    return Plan(text=f"POST {request.target}/api/v1/actions/memory.")


def run(plan: Plan, request: Request, policy: Policy, stopped: Callable[[], bool]) -> Outcome:
    """Has the process write its memory profile."""
    return processes.capture(request.target, "memory", {}, policy.token_variable, DECLARATION.seconds, stopped)
