"""Decides on requests for actions, and does what passes every gate. One desk for an agent's directory.

The gates, in this order; the first that is shut ends it, and each decision is a line of the record:

1. the kill switch (`jaxobs agent stop`, or the variable `JAXOBS_AGENT_STOP`)
2. the class and the action are allowed, the job may be touched, nobody opted out, no maintenance window
3. the target is a process that the agent knows; no label and no text chooses one
4. no other action is under way; the breaker is closed; cool-down, limits per job, share of the processes
5. a dry run ends here, with the plan
6. for class A2 a person's approval of exactly this plan
7. the process is not compiling, saving, hanging or short of memory

Afterwards it looks whether steps take longer than before; that counts as a failure, and failures open the breaker.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from jaxobs.base import private_files
from jaxobs.base.files.claim import Claim
from jaxobs.ops.agent.acting import approvals, limits, processes
from jaxobs.ops.agent.acting.audit import Audit
from jaxobs.ops.agent.acting.declarations import (
    Declaration,
    Outcome,
    Plan,
    RefusedError,
    Request,
    Surroundings,
    as_dict,
)
from jaxobs.ops.agent.acting.known import ActionModule, known
from jaxobs.ops.agent.acting.policy import Policy

STOP_FILE = "actions.stop"
STOP_VARIABLE = "JAXOBS_AGENT_STOP"
STEPS_WATCHED = 5
"""Steps after an action that are compared with those before."""
LEAST_WATCHED, MOST_WATCHED = 5.0, 60.0
"""Seconds for which the process is watched then."""
PAUSE = 0.2
PATIENCE = 3.0
"""Seconds for which a process that is busy with something else is looked at again."""

_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a request."""

    decision: Literal["refused", "planned", "approval_wanted", "done", "failed"]
    """`refused`, `planned` (a dry run), `approval_wanted`, `done` or `failed`."""
    reason: str
    """Why, or what was done, as a sentence for a person."""
    plan: str = ""
    """Id of the plan: what `jaxobs agent approve` takes."""
    path: str | None = None
    """What was written."""


class Desk:
    """Safe for threads; several processes may have one for the same directory."""

    def __init__(
        self, directory: Path, policy: Policy, targets: Callable[[str], list[str]],
        *, prometheus: str = "", clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        """
        Args:
          targets: gives the URLs of the processes of a job that the agent knows.
          prometheus: the Prometheus that the agent asks.
        """
        self._directory = directory
        self._policy = policy
        self._targets = targets
        self._prometheus = prometheus
        self._clock = clock
        self._audit = Audit(directory)

    @property
    def actions(self) -> dict[str, Declaration]:
        """What may be asked for at all; everything else is not registered anywhere."""
        found = {name: each.DECLARATION for name, each in known().items()}
        return {
            name: each
            for name, each in found.items()
            if each.kind in self._policy.allow and (self._policy.actions is None or name in self._policy.actions)
        }

    def request(self, request: Request) -> Decision:
        """Decides, and does what is allowed; returns when it has ended. Raises nothing for what a request holds."""
        if not _one_at_a_time.acquire(blocking=False):
            return self._refused(request, "Another action is under way, and only one runs at a time.")
        claim = Claim(str(self._audit.path))
        try:
            private_files.make_folders(self._directory)
            other = claim.take()
            if other is not None:
                return self._refused(request, f"An action of {other} is under way, and only one runs at a time.")
            return self._decided(request)
        except OSError as error:
            return Decision("refused", f"The record of actions cannot be written, so nothing is done: {error}.")
        finally:
            claim.end()
            _one_at_a_time.release()

    def refuse(self, request: Request, why: str) -> Decision:
        """Refuses what never came to the gates, for the record."""
        return self._refused(request, why)

    def approved(self) -> list[Request]:
        """What a person has approved since, and was not done yet: to be asked for again."""
        try:
            lines = self._audit.lines()
        except OSError:
            return []
        names = [each.name for each in dataclasses.fields(Request)]
        return [
            Request(**{name: str(line[name]) for name in names if name in line})
            for line in approvals.untried(lines, self._clock(), self._policy.approval_minutes)
        ]

    def _decided(self, request: Request) -> Decision:
        module = known().get(request.action)
        now = self._clock()
        try:
            urls = tuple(self._targets(request.job))
            self._allowed(request, now, urls)
            assert module is not None
            declared: Declaration = module.DECLARATION
            lines = self._audit.lines()
            self._within_limits(request, declared, lines, now, len(urls))
            around = Surroundings(directory=self._directory, processes=urls, prometheus=self._prometheus)
            plan: Plan = module.plan(request, self._policy, around)
            plan_id = plan.id(request)
            if self._policy.dry_run:
                self._note("planned", request, plan, plan_id)
                return Decision("planned", f"Dry run: {plan.text}", plan_id)
            approver = approvals.granted(lines, plan_id, now, self._policy.approval_minutes)
            if declared.kind == "A2" and approver is None:
                if plan_id not in approvals.wanted(lines, now, self._policy.approval_minutes):
                    self._note("approval_wanted", request, plan, plan_id)
                return Decision("approval_wanted", f"{plan.text} Approve it: jaxobs agent approve {plan_id}", plan_id)
            before = self._suitable(request, declared)
        except RefusedError as error:
            return self._refused(request, str(error))
        return self._done(request, module, plan, plan_id, approver, before)

    def _allowed(self, request: Request, now: float, urls: Sequence[str]) -> None:
        if stopped(self._directory):
            raise RefusedError("The kill switch is on. `jaxobs agent resume` turns it off.")
        if request.action not in known():
            raise RefusedError(f"There is no action `{request.action[:100]}`.")
        if request.action not in self.actions:
            raise RefusedError(f"The policy does not allow `{request.action}` (`allow`, `actions`).")
        if not self._policy.wants(request.job):
            raise RefusedError("The policy does not name this job (`jobs`).")
        if self._policy.opted_out(request.job, request.target):
            raise RefusedError("The job or the process is opted out (`opt_out`).")
        window = self._policy.in_maintenance(request.job, now)
        if window is not None:
            raise RefusedError(f"There is maintenance until {window.end:%Y-%m-%d %H:%M %Z}.")
        touches = known()[request.action].DECLARATION.touches_process
        if touches and request.target not in urls:
            raise RefusedError("The agent knows no such process of this job.")

    def _within_limits(
        self, request: Request, declared: Declaration, lines: list[dict[str, Any]], now: float, count: int
    ) -> None:  # fmt: skip
        longest = {name: each.DECLARATION.seconds for name, each in known().items()}
        other = limits.under_way(lines, now, longest)
        if other is not None:
            raise RefusedError(f"`{other.get('action')}` began {now - other['at']:.0f} s ago and has not ended.")
        why = limits.refusal(request, declared, self._policy, lines, now, count)
        if why is not None:
            raise RefusedError(why)

    def _suitable(self, request: Request, declared: Declaration) -> float | None:
        """Seconds of a typical step before the action."""
        if not declared.touches_process:
            return None
        until = time.monotonic() + PATIENCE
        while True:
            snapshot = processes.look(request.target)
            why = processes.unsuitable(snapshot, self._clock())
            if why is None:
                return processes.typical_step(snapshot)
            if time.monotonic() > until:
                raise RefusedError(why)
            time.sleep(PAUSE)  # What recompiles in each step has its moments between, and is worth a profile.

    def _done(
        self, request: Request, module: ActionModule, plan: Plan, plan_id: str, approver: str | None,
        before: float | None,
    ) -> Decision:  # fmt: skip
        began = time.monotonic()
        self._note("begun", request, plan, plan_id, approval=approver)
        try:
            outcome = module.run(plan, request, self._policy, lambda: stopped(self._directory))
        except Exception as error:
            outcome = Outcome(result="failed", detail=f"{type(error).__name__}: {error}"[:400])
        verified = self._verified(request, module.DECLARATION, outcome, before)
        seconds = time.monotonic() - began
        self._note(
            verified.result, request, plan, plan_id, seconds=round(seconds, 3), outcome=as_dict(verified),
            approval=approver,
        )  # fmt: skip
        return Decision(verified.result, verified.detail, plan_id, verified.path)

    def _verified(
        self, request: Request, declared: Declaration, outcome: Outcome, before: float | None
    ) -> Outcome:  # fmt: skip
        """The outcome, or a failure where steps take longer than before."""
        if outcome.result != "done" or not declared.touches_process or before is None:
            return outcome
        try:
            problem = self._slower(request.target, before)
        except RefusedError as error:
            problem = f"Afterwards: {error}"
        return outcome if problem is None else replace(outcome, result="failed", detail=f"{outcome.detail} {problem}")

    def _slower(self, target: str, before: float) -> str | None:
        """What became of the steps that follow, as a sentence; None if they are as they were.

        Raises:
          RefusedError: the process does not answer.
        """
        at_end = processes.look(target)
        awaited = STEPS_WATCHED * self._policy.slower * before
        until = time.monotonic() + min(MOST_WATCHED, max(LEAST_WATCHED, 4 * awaited))
        while True:
            made, seconds = processes.steps_since(at_end, processes.look(target))
            if made >= STEPS_WATCHED or time.monotonic() > until:
                break
            time.sleep(PAUSE)
        if made < STEPS_WATCHED and awaited <= MOST_WATCHED:  # nobody waits for five steps of minutes
            return f"It made {made} steps since, and a typical one took {before:.3g} s before."
        if made >= STEPS_WATCHED and seconds is not None and seconds > self._policy.slower * before:
            return f"Steps take {seconds:.3g} s since, and took {before:.3g} s before."
        return None

    def _refused(self, request: Request, why: str) -> Decision:
        try:
            self._note("refused", request, reason=why)
        except OSError as error:
            return Decision("refused", f"{why} (This could not be recorded: {error}.)")
        return Decision("refused", why)

    def _note(
        self, decision: str, request: Request, plan: Plan | None = None, plan_id: str = "", **more: Any
    ) -> None:  # fmt: skip
        kinds = known()
        line: dict[str, Any] = {"decision": decision, **as_dict(request)}
        if request.action in kinds:
            line["class"] = kinds[request.action].DECLARATION.kind
        if plan is not None:
            line |= {"id": plan_id, "plan": plan.text}
        self._audit.add(self._clock(), line | {name: each for name, each in more.items() if each is not None})


def stopped(directory: Path) -> bool:
    """Whether the kill switch is on."""
    return bool(os.environ.get(STOP_VARIABLE)) or (directory / STOP_FILE).exists()
