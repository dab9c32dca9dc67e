"""What follows a report: safe actions that a policy allows, and a language model's wording. Both are off by default.

They come after the report is written and sent on, on a thread of their own: nobody waits for them, and nothing in them
changes what the report says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from jaxobs.base.errors import JaxobsError
from jaxobs.ops import rewording
from jaxobs.ops.agent import queries
from jaxobs.ops.agent.acting.declarations import Request
from jaxobs.ops.agent.acting.desk import Desk
from jaxobs.ops.agent.acting.policy import Policy
from jaxobs.ops.agent.report import ActionTaken, Report, Rewording
from jaxobs.ops.diagnosis.gathering.http import NoAnswerError
from jaxobs.ops.rewording import Endpoint
from jaxobs.views import client

_LOGGER = logging.getLogger("jaxobs.agent")

Change = Callable[[str, Callable[[Report], dict[str, object]]], None]
"""Changes the latest report with an id by the fields that the function gives."""

TIMEOUT = 5.0
APPROVALS_EVERY = 2.0
"""Seconds between two looks for approvals."""
MOST_KEPT = 50
"""Actions that a report keeps."""
MOST_ACTIONS = 8
"""Of one report."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What is switched on."""

    desk: Desk | None = None
    model: Endpoint | None = None

    @property
    def is_any(self) -> bool:
        """Whether there is anything to do after a report."""
        return self.desk is not None or self.model is not None


def desk(reports: Path, policy: Policy, prometheus: str, given: Iterable[str]) -> Desk:
    """A desk whose targets are what Prometheus scrapes of a job, and the addresses that the operator gave."""
    named = list(given)

    def targets(job: str) -> list[str]:
        try:
            scraped = queries.targets(prometheus, TIMEOUT)
        except NoAnswerError:
            scraped = []
        found = dict.fromkeys(named)
        for each in scraped:
            try:
                url = client.endpoint_url(each.url)
            except JaxobsError:
                continue
            if each.labels.get("job", "") == job:
                found[url] = None
            else:
                found.pop(url, None)
        return list(found)

    return Desk(reports, policy, targets, prometheus=prometheus)


def act(report: Report, on: Desk) -> list[ActionTaken]:
    """Asks the desk for what the report suggests and the policy allows; each decision is on its record."""
    actor = f"rule:{report.causes[0].id}" if report.causes else f"rule:{report.verdict}"
    wanted = [
        Request(
            action=each.action, actor=actor, target=each.target, job=report.subject.labels.get("job", ""),
            incident=report.id, why=each.why,
        )
        for each in report.suggested_actions[:MOST_ACTIONS]
        if each.action in on.actions
    ]  # fmt: skip
    return [_asked(each, on) for each in wanted]


def act_on_approvals(on: Desk, change: Change) -> None:
    """Does what a person has approved since it was asked for."""
    for each in on.approved():
        change(each.incident, _adding([_asked(each, on)]))


def _adding(taken: list[ActionTaken]) -> Callable[[Report], dict[str, object]]:
    return lambda latest: {"actions": [*latest.actions, *taken][-MOST_KEPT:]}


def _asked(request: Request, on: Desk) -> ActionTaken:
    decision = on.request(request)
    return ActionTaken.model_validate(
        {
            "action": request.action, "target": request.target, "decision": decision.decision,
            "reason": decision.reason, "plan": decision.plan, "path": decision.path,
        }
    )  # fmt: skip


def reworded(report: Report, model: Endpoint) -> Rewording:
    """What a model makes of the report, or why that was thrown away."""
    try:
        text = rewording.reword(report.model_dump(mode="json"), model)
    except rewording.RejectedError as error:
        _LOGGER.warning("The model's wording of incident %s is not used: %s", report.id, error)
        return Rewording(model=model.model, text="", problem=str(error))
    return Rewording(model=model.model, text=text, problem="")


def follow(report: Report, extras: Extras, change: Change) -> None:
    """Does what is switched on for a report, and has the report changed by what came of it."""
    if extras.model is not None:
        wording = reworded(report, extras.model)
        change(report.id, lambda latest: {"rewording": wording} if latest.revision == report.revision else {})
    if extras.desk is not None:
        change(report.id, _adding(act(report, extras.desk)))
