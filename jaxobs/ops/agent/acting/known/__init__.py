"""What the agent may be allowed to do: one file for each action, found by the folder (see `acting.declarations`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

from jaxobs.base import discovery
from jaxobs.ops.agent.acting.declarations import Declaration, Outcome, Plan, Request, Surroundings
from jaxobs.ops.agent.acting.policy import Policy


class ActionModule(discovery.Module, Protocol):
    """Declares one action, says what it would do, and does it."""

    DECLARATION: Declaration

    def plan(self, request: Request, policy: Policy, surroundings: Surroundings, /) -> Plan: ...

    def run(self, plan: Plan, request: Request, policy: Policy, stopped: Callable[[], bool], /) -> Outcome: ...


@functools.cache
def known() -> dict[str, ActionModule]:
    """The modules of all actions by name."""
    return {each.DECLARATION.name: each for each in discovery.modules(ActionModule)}
