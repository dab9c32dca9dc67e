"""Decides on requests for actions, and does what passes every gate. One desk for an agent's directory.

A request passes the gates that docs/agent.md lists, in that order; the first that is shut ends it. Each decision
is a line of the record, from which all limits are worked out, so that they hold after a restart.
"""

import dataclasses
import fnmatch
import hashlib
import json
import math
import threading
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from jaxobs.base import private_files
from jaxobs.base.files.claim import Claim
from jaxobs.ops.agent.acting import processes
from jaxobs.ops.agent.acting.actions import ACTIONS, Action, Around, Plan, RefusedError, Request
from jaxobs.ops.agent.acting.record import Record
from jaxobs.ops.captures import Outcome, failed

HOUR = 3600.0

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


class Desk(Around):
    """Decides on requests. Safe for threads; several processes may have one for the same directory."""

    @cached_property
    def _record(self) -> Record:
        return Record(self.directory, self.clock)

    @property
    def actions(self) -> dict[str, Action]:
        """Actions that may be asked for at all; the others are not registered anywhere."""
        allow, names = self.policy.allow, ACTIONS if self.policy.actions is None else self.policy.actions
        return {name: each for name, each in ACTIONS.items() if each.kind in allow and name in names}

    def request(self, request: Request) -> Decision:
        """Decides, and does what is allowed; returns when it has ended. Raises nothing for what a request holds."""
        if not _one_at_a_time.acquire(blocking=False):
            return self.refuse(request, "Another action is under way, and only one runs at a time.")
        claim = Claim(str(self._record.path))
        try:
            private_files.make_folders(self.directory)
            if other := claim.take():
                raise RefusedError(f"An action of {other} is under way, and only one runs at a time.")
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
            why += f" (This could not be recorded: {error}.)"
        return Decision("refused", why)

    def approved(self) -> list[Request]:
        """Returns what a person has approved and nobody has tried since: to be asked for again."""
        try:
            questions = self._record.questions(self.policy.approval_minutes).values()
        except OSError:
            return []
        names = [each.name for each in dataclasses.fields(Request)]
        approved = [each for each in questions if "approver" in each]
        return [Request(**{name: str(line[name]) for name in names if name in line}) for line in approved]

    def _decided(self, request: Request) -> Decision:
        action = self._allowed(request)
        plan = action.plan(request, self)
        approvable = json.dumps([request.action, request.target, request.incident, plan.text])
        told: dict[str, Any] = {"id": hashlib.sha256(approvable.encode()).hexdigest()[:16], "plan": plan.text}
        if self.policy.dry_run:
            self._note("planned", request, **told)
            return Decision("planned", f"Dry run: {plan.text}", told["id"])
        question = self._record.questions(self.policy.approval_minutes).get(told["id"])
        if action.kind == "A2" and (question is None or "approver" not in question):
            if question is None:
                self._note("approval_wanted", request, **told)
            how = f"{plan.text} Approve it: jaxobs agent approve {told['id']}"
            return Decision("approval_wanted", how, told["id"])
        told["approval"] = question and question.get("approver")
        before = processes.await_moment(request.target, self.clock) if action.touches_process else None
        began = time.monotonic()
        self._note("begun", request, **told)
        found = self._done(request, plan, before)
        told |= {"seconds": round(time.monotonic() - began, 3), "outcome": dataclasses.asdict(found)}
        self._note(found.result, request, **told)
        return Decision(found.result, found.detail, told["id"], found.path)

    def _allowed(self, request: Request) -> Action:
        """Raises RefusedError at the first of the gates 1 to 4 that is shut."""
        policy, now = self.policy, self.clock()
        if self._record.is_stopped():
            raise RefusedError("The kill switch is on. `jaxobs agent resume` turns it off.")
        if request.action not in ACTIONS:
            raise RefusedError(f"There is no action `{request.action[:100]}`.")
        action = self.actions.get(request.action)
        if action is None:
            raise RefusedError(f"The policy does not allow `{request.action}` (`allow`, `actions`).")
        if not any(each.fullmatch(request.job) for each in policy.jobs):
            raise RefusedError("The policy does not name this job (`jobs`).")
        if any(fnmatch.fnmatchcase(name, each) for each in policy.opt_out for name in (request.job, request.target)):
            raise RefusedError("The job or the process is opted out (`opt_out`).")
        for window in policy.maintenance:
            during = window.begin.timestamp() <= now < window.end.timestamp()
            if during and fnmatch.fnmatchcase(request.job, window.jobs):
                raise RefusedError(f"There is maintenance until {window.end:%Y-%m-%d %H:%M %Z}.")
        known = self.targets(request.job)
        if action.touches_process and request.target not in known:
            raise RefusedError("The agent knows no such process of this job.")
        self._check_limits(request, action, len(known))
        return action

    def _check_limits(self, request: Request, action: Action, known: int) -> None:
        policy, now, lines = self.policy, self.clock(), self._record.lines()
        latest = [each for each in lines if each["decision"] in ("begun", "done", "failed")][-1:]
        if latest and latest[0]["decision"] == "begun":
            name, since = str(latest[0].get("action")), now - latest[0]["at"]
            if since < 2 * (ACTIONS[name].seconds if name in ACTIONS else 60.0):  # Else it ended with the agent.
                raise RefusedError(f"`{name}` began {since:.0f} s ago and has not ended.")
        if self._record.failures() >= policy.failures:
            told = f"The breaker is open after {policy.failures} failures in a row."
            raise RefusedError(f"{told} Find out why, then run `jaxobs agent reset`.")
        begun = [each for each in lines if each["decision"] == "begun"]
        asked = (action.name, request.target)
        since = now - max(
            (each["at"] for each in begun if (each.get("action"), each.get("target", "")) == asked), default=0.0
        )
        cooldown = policy.cooldown_seconds.get(action.name, action.cooldown)
        if since < cooldown:
            raise RefusedError(f"The last one there was {since:.0f} s ago, and the cool-down is {cooldown:.0f} s.")
        of_job = [each for each in begun if each.get("job", "") == request.job and now - each["at"] < HOUR]
        if len(of_job) >= policy.per_job_an_hour:
            limit = f"`per_job_an_hour` is {policy.per_job_an_hour}"
            raise RefusedError(f"{len(of_job)} actions concerned this job within an hour, and {limit}.")
        others = {each["target"] for each in of_job if each.get("target")} - {request.target}
        most = max(1, math.floor(policy.share_of_processes * known))
        if request.target and len(others) >= most:
            share = f"(`share_of_processes` is {policy.share_of_processes:g}), and others were"
            raise RefusedError(f"Within an hour {most} of the job's {known} processes may be touched {share}.")

    def _done(self, request: Request, plan: Plan, before: float | None) -> Outcome:
        """Does what is planned; a failure if it raises, or if steps take longer than `before` afterwards."""
        try:
            found = plan.run(self._record.is_stopped)
        except Exception as error:
            return failed(f"{type(error).__name__}: {error}"[:400])
        if before is None or found.result != "done":
            return found
        problem = processes.slower(request.target, before, self.policy.slower)
        return Outcome("failed", f"{found.detail} {problem}", found.path) if problem else found

    def _note(self, decision: str, request: Request, **more: Any) -> None:
        asked = {name: value for name, value in dataclasses.asdict(request).items() if value}
        kind = {"class": ACTIONS[request.action].kind} if request.action in ACTIONS else {}
        self._record.add(decision=decision, **asked, **kind, **more)
