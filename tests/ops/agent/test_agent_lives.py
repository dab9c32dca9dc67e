"""Ordinary lives in a real Prometheus: whoever investigates one of them finds no fault, whatever the alert says."""

import json
import pathlib
import time

import pytest
from helpers import backfilled

from jaxobs.ops.agent import investigating, notifications
from jaxobs.ops.agent.incidents import Incident
from jaxobs.ops.agent.investigating import Where
from jaxobs.ops.agent.subjects import Subject
from tools.alert_suites.lives import lives
from tools.alert_suites.scenes import Process

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

MOST_SERIES = 3000
ALERTS = ("JaxStepsStalled", "JaxRecompilationStorm", "JaxTargetDown", "JaxGoodputLow", "SomethingElse")
"""Each life is investigated for two of them in turn: the name says little of where to look."""


def incident(labels: dict[str, str], now: float) -> Incident:
    body = {"version": "4", "status": "firing", "alerts": [{"status": "firing", "labels": labels}]}
    found = Incident(id="x", subject=list(Subject.of(labels).labels), opened_at=now, asked_at=now)
    found.take(list(notifications.parse(json.dumps(body).encode()).alerts), now, 0)
    return found


def ended_long_ago(processes: list[Process], minutes: int) -> bool:
    """Whether no sample lies in the window of the agent, which ends with the last minute of a life."""
    begin = minutes - int(investigating.WINDOW / 60)
    rows = [row for process in processes for row in process.series().values()]
    return all(value is None for row in rows for value in row[max(0, begin) : minutes + 1])


def test_no_ordinary_life_is_blamed(tmp_path: pathlib.Path) -> None:
    """The alert is wrong or has ended: Prometheus does not report it, and the series show an ordinary life."""
    every = [(life, list(life.processes())) for life in lives()]
    chosen = [each for each in every if sum(len(process.series()) for process in each[1]) < MOST_SERIES]
    assert len(chosen) >= 25
    blamed = []
    with backfilled.prometheus(tmp_path, [(processes, life.minutes) for life, processes in chosen]) as url:
        for number, (life, processes) in enumerate(chosen):
            for name in (ALERTS[number % len(ALERTS)], ALERTS[(number + 1) % len(ALERTS)]):
                labels = {"alertname": name, "severity": "critical", "job": processes[0].job}
                report = investigating.investigate(incident(labels, time.time()), Where(prometheus=url))
                unseen = all(each.outcome == "no_data" for each in report.steps)
                assert not unseen or ended_long_ago(processes, life.minutes), life.name
                if report.causes or report.other_faults or report.verdict != ("inconclusive" if unseen else "no_fault"):
                    blamed.append(f"{life.name}, {name}: {report.headline} {[each.id for each in report.causes]}")
    assert not blamed
