"""An incident's states: each has a way out."""

import json

import pytest

from jaxobs.ops.agent import incidents, notifications
from jaxobs.ops.agent.incidents import REPORTED, RESOLVING, WAITING, Incident

NOW = 1_769_850_000.0


def alerts(*names: str, status: str = "firing") -> list[notifications.Alert]:
    body = {"version": "4", "alerts": [{"status": status, "labels": {"alertname": n, "job": "j"}} for n in names]}
    return list(notifications.parse(json.dumps(body).encode()).alerts)


def opened() -> Incident:
    found = Incident(id="x", subject=[("job", "j")], opened_at=NOW, due_at=NOW, asked_at=NOW)
    found.take(alerts("A"), NOW, 60)
    return found


def test_it_is_investigated_once_for_repeats() -> None:
    found = opened()
    assert found.phase == WAITING
    found.reported(NOW, 60, "cause")
    for _ in range(5):
        found.take(alerts("A"), NOW + 1, 60)
    assert (found.phase, found.notifications, found.alerts.popitem()[1].notifications) == (REPORTED, 6, 6)
    found.take(alerts("B"), NOW + 2, 60)
    assert (found.phase, found.asked_at) == (WAITING, NOW + 2)


def test_it_ends_with_its_last_alert() -> None:
    found = opened()
    found.take(alerts("B"), NOW, 60)
    found.reported(NOW, 60, "cause")
    found.take(alerts("A", status="resolved"), NOW + 1, 60)
    assert found.phase == REPORTED
    found.take(alerts("B", status="resolved"), NOW + 2, 60)
    assert (found.phase, found.resolved_at, found.due_at) == (RESOLVING, NOW + 2, NOW + 62)
    found.take(alerts("A"), NOW + 3, 60)
    assert (found.phase, found.resolved_at) == (REPORTED, None)


def test_one_that_resolves_before_it_is_investigated_is_verified_all_the_same() -> None:
    found = opened()
    found.take(alerts("A", status="resolved"), NOW + 1, 60)
    assert found.phase == WAITING
    found.reported(NOW + 5, 60, "no_fault")
    assert (found.phase, found.due_at) == (RESOLVING, NOW + 65)


@pytest.mark.parametrize(("verdict", "complete"), [("inconclusive", True), ("cause", False)])
def test_an_inconclusive_or_incomplete_one_is_looked_at_again(verdict: str, complete: bool) -> None:
    found = opened()
    waits = []
    for _ in range(4):
        found.reported(NOW, 60, verdict, complete=complete)
        waits.append(found.again_at)
    assert waits == [NOW + 60, NOW + 120, None, None]
    found.reported(NOW, 60, "cause")
    assert found.again_at is None


def test_its_alerts_are_bounded() -> None:
    found = opened()
    found.take(alerts(*(f"A{number}" for number in range(150))), NOW, 60)
    assert len(found.alerts) == incidents.MOST_ALERTS and found.left_out == 51


def test_times_of_the_future_are_not_believed() -> None:
    found = opened()
    kept = next(iter(found.alerts.values()))
    kept.starts_at = NOW + 86_400
    assert found.began() == NOW
    kept.starts_at = NOW - 600
    assert found.began() == NOW - 600


def test_its_state_is_plain() -> None:
    found = opened()
    assert Incident.model_validate_json(found.model_dump_json()) == found
