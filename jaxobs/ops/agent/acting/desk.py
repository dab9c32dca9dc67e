"""Decides on requests for actions, and does what passes every gate. One desk for an agent's directory.

A request passes the gates that docs/safe-actions.md lists, in that order; the first that is shut ends it. Each decision
is a line of the record.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jaxobs.base import private_files
from jaxobs.base.files.claim import Claim
from jaxobs.ops.agent.acting import processes
from jaxobs.ops.agent.acting.actions import ACTIONS, Action, Around, Plan, Request
from jaxobs.ops.agent.acting.brake import Brake
from jaxobs.ops.agent.acting.policy import Policy
from jaxobs.ops.agent.acting.processes import RefusedError
from jaxobs.ops.agent.acting.record import Record
from jaxobs.views.captures import Outcome, failed

PATIENCE = 3.0
"""Seconds for which a process that is busy with something else is looked at again."""

_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class Decision:
    """Answer to a request."""

    decision: Literal["refused", "planned", "approval_wanted", "done", "failed"]
    """`planned` is a dry run."""
    reason: str
    """Sentence for a person: why, or what was done."""
    plan: str = ""
    """Id of the plan: what `jaxobs agent approve` takes."""
    path: str | None = None
    """Path of what was written, on the machine where the work was done."""


class Desk:
    """Decides on requests. Safe for threads; several processes may have one for the same directory."""

    def __init__(
        self, directory: Path, policy: Policy, targets: Callable[[str], list[str]],
        *, prometheus: str = "", clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        """
        Args:
          targets: gives the URLs of the processes of a job that the agent knows.
          prometheus: the Prometheus that the agent asks.
        """
        self._policy = policy
        self._targets = targets
        self._prometheus = prometheus
        self._record = Record(directory, clock)
        self._brake = Brake(self._record)

    @property
    def actions(self) -> dict[str, Action]:
        """Actions that may be asked for at all; the others are not registered anywhere."""
        allow, names = self._policy.allow, self._policy.actions
        return {name: each for name, each in ACTIONS.items() if each.kind in allow and (names is None or name in names)}

    def request(self, request: Request) -> Decision:
        """Decides, and does what is allowed; returns when it has ended. Raises nothing for what a request holds."""
        if not _one_at_a_time.acquire(blocking=False):
            return self.refuse(request, "Another action is under way, and only one runs at a time.")
        claim = Claim(str(self._record.path))
        try:
            private_files.make_folders(self._record.directory)
            other = claim.take()
            if other is not None:
                return self.refuse(request, f"An action of {other} is under way, and only one runs at a time.")
            return self._decided(request)
        except RefusedError as error:
            return self.refuse(request, str(error))
        except OSError as error:
            return Decision("refused", f"The record of actions cannot be written, so nothing is done: {error}.")
        finally:
            claim.end()
            _one_at_a_time.release()

    def refuse(self, request: Request, why: str) -> Decision:
        """Refuses a request, and writes that on the record; also for what never came to the gates."""
        try:
            self._note("refused", request, reason=why)
        except OSError as error:
            return Decision("refused", f"{why} (This could not be recorded: {error}.)")
        return Decision("refused", why)

    def approved(self) -> list[Request]:
        """Returns what a person has approved since it was asked for, and was not done yet: to be asked for again."""
        try:
            questions = self._record.questions(self._policy.approval_minutes).values()
        except OSError:
            return []
        names = [each.name for each in dataclasses.fields(Request)]
        return [
            Request(**{name: str(each.line[name]) for name in names if name in each.line})
            for each in questions
            if each.approver and each.is_untried
        ]

    def _decided(self, request: Request) -> Decision:
        urls = tuple(self._targets(request.job))
        action = self._allowed(request, urls)
        around = Around(self._policy, self._record.directory, urls, self._prometheus)
        plan = action.plan(request, around)
        plan_id = plan.id(request)
        if self._policy.dry_run:
            self._note("planned", request, plan)
            return Decision("planned", f"Dry run: {plan.text}", plan_id)
        question = self._record.questions(self._policy.approval_minutes).get(plan_id)
        approver = question.approver if question else ""
        if action.kind == "A2" and not approver:
            if question is None:
                self._note("approval_wanted", request, plan)
            return Decision("approval_wanted", f"{plan.text} Approve it: jaxobs agent approve {plan_id}", plan_id)
        before = self._typical_step(request.target) if action.touches_process else None
        began = time.monotonic()
        self._note("begun", request, plan, approval=approver or None)
        found = self._done(request, plan, before)
        told = dataclasses.asdict(found)
        seconds = round(time.monotonic() - began, 3)
        self._note(found.result, request, plan, seconds=seconds, outcome=told, approval=approver or None)
        return Decision(found.result, found.detail, plan_id, found.path)

    def _allowed(self, request: Request, urls: tuple[str, ...]) -> Action:
        """Raises RefusedError at the first of the gates 1 to 4 that is shut."""
        if self._brake.is_on():
            raise RefusedError("The kill switch is on. `jaxobs agent resume` turns it off.")
        action = ACTIONS.get(request.action)
        if action is None:
            raise RefusedError(f"There is no action `{request.action[:100]}`.")
        if request.action not in self.actions:
            raise RefusedError(f"The policy does not allow `{request.action}` (`allow`, `actions`).")
        why = self._policy.refusal(request.job, request.target, self._record.clock())
        if why is None and action.touches_process and request.target not in urls:
            why = "The agent knows no such process of this job."
        why = why or self._brake.refusal(request, action, self._policy, len(urls))
        if why is not None:
            raise RefusedError(why)
        return action

    def _typical_step(self, target: str) -> float | None:
        """Returns the seconds of a typical step, once the moment is good; raises RefusedError if it remains bad."""
        until = time.monotonic() + PATIENCE
        while True:
            snapshot = processes.look(target)
            why = processes.unsuitable(snapshot, self._record.clock())
            if why is None:
                return processes.typical_step(snapshot)
            if time.monotonic() > until:
                raise RefusedError(why)
            time.sleep(processes.PAUSE)  # What recompiles in each step has its moments between, and is worth a profile.

    def _done(self, request: Request, plan: Plan, before: float | None) -> Outcome:
        """Does what is planned; a failure if it raises, or if steps take longer than `before` afterwards."""
        try:
            found = plan.run(self._brake.is_on)
        except Exception as error:
            return failed(f"{type(error).__name__}: {error}"[:400])
        if before is None or found.result != "done":
            return found
        try:
            problem = processes.slower(request.target, before, self._policy.slower)
        except RefusedError as error:
            problem = f"Afterwards: {error}"
        return Outcome("failed", f"{found.detail} {problem}", found.path) if problem else found

    def _note(self, decision: str, request: Request, plan: Plan | None = None, **more: Any) -> None:
        asked = {name: value for name, value in dataclasses.asdict(request).items() if value}
        if request.action in ACTIONS:
            more["class"] = ACTIONS[request.action].kind
        if plan is not None:
            more |= {"id": plan.id(request), "plan": plan.text}
        self._record.add(decision=decision, **asked, **more)
