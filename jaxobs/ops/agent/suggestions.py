"""Asks the desk for the safe actions that a report suggests, as far as a policy allows them.

This comes after the report is written and sent on, on a thread of its own: nobody waits for it, and it changes nothing
that the report says.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from jaxobs.base.errors import JaxobsError
from jaxobs.ops.agent.acting.actions import Request
from jaxobs.ops.agent.acting.desk import Desk
from jaxobs.ops.agent.acting.policy import Policy
from jaxobs.ops.agent.report import ActionTaken, Report
from jaxobs.ops.diagnosis.gathering import prometheus_api
from jaxobs.ops.diagnosis.gathering.http import NoAnswerError
from jaxobs.views import client

Change = Callable[[str, Callable[[Report], dict[str, object]]], None]
"""Changes the latest report with an id by the fields that the function gives."""

TIMEOUT = 5.0
APPROVALS_EVERY = 2.0
"""Seconds between two looks for approvals."""
MOST_KEPT = 50
"""Actions that a report keeps."""
MOST_ACTIONS = 8
"""Actions that are asked for after one report."""


def desk(reports: Path, policy: Policy, prometheus: str, given: Iterable[str]) -> Desk:
    """Returns a desk whose targets are what Prometheus scrapes of a job, and the addresses that the operator gave."""
    named = list(given)

    def targets(job: str) -> list[str]:
        try:
            scraped = prometheus_api.targets(prometheus, TIMEOUT)
        except NoAnswerError:
            scraped = []
        found = dict.fromkeys(named)
        for target in scraped:
            try:
                url = client.endpoint_url(target.url)
            except JaxobsError:
                continue
            if target.labels.get("job", "") == job:
                found[url] = None
            else:
                found.pop(url, None)
        return list(found)

    return Desk(directory=reports, policy=policy, targets=targets, prometheus=prometheus)


def act(report: Report, on: Desk, change: Change) -> None:
    """Asks the desk for what the report suggests and the policy allows, and adds the decisions to the report."""
    actor = f"rule:{report.causes[0].id}" if report.causes else f"rule:{report.verdict}"
    wanted = [
        Request(
            action=each.action, actor=actor, target=each.target, job=report.subject.labels.get("job", ""),
            incident=report.id, why=each.why,
        )
        for each in report.suggested_actions[:MOST_ACTIONS]
        if each.action in on.actions
    ]  # fmt: skip
    change(report.id, _adding([_asked(each, on) for each in wanted]))


def act_on_approvals(on: Desk, change: Change) -> None:
    """Does what a person has approved since it was asked for."""
    for request in on.approved():
        change(request.incident, _adding([_asked(request, on)]))


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
