"""Faults in real programs, scraped by a real Prometheus: what a real Alertmanager tells, and to whom."""

import re
import urllib.parse

import pytest
from helpers.live_stage import ALSO, EXPECTED, GROUPS, HEALTHY, LATE, LONGEST, RECEIVERS, SITE, Seen, Stage
from helpers.paths import ROOT

from jaxobs.ops.monitoring import alerting, boards

pytestmark = [pytest.mark.alerts, pytest.mark.timeout(600)]


@pytest.fixture
def seen(live_stage: Stage) -> Seen:
    """All that Alertmanager told."""
    return live_stage.seen


def test_every_fault_is_told(seen: Seen) -> None:
    """Each job's alerts reach the receiver of their severity, with the labels that say which process it is."""
    for job, names in EXPECTED.items():
        told = seen.firing(job)
        assert names <= seen.known(job), f"{job}: nothing was told of {sorted(names - seen.known(job))}"
        for notice in (told[name] for name in names & told.keys()):
            assert notice.receiver == RECEIVERS[notice.labels["severity"]], notice
            assert re.fullmatch(rf"{job}-\d", notice.labels.get("instance", f"{job}-0")), notice
    assert seen.firing("together")["JaxProgramDivergence"].labels.keys() == {
        "alertname", "job", "severity", "instance", "finding",
    }  # fmt: skip
    assert seen.labels["memory", "JaxOutOfMemory"]["function"] == "__main__.huge"
    assert seen.labels["requests", "JaxRequestErrorsHigh"]["route"] == "/predict"


def test_nothing_is_told_before_its_fault(seen: Seen) -> None:
    """A fault comes before its alert: each program prints when its fault begins."""
    assert {*EXPECTED} - seen.faults.keys() == {"gpu", "restarts"}
    early = [
        f"{job}: {name} at {each.at:.1f} s, the fault at {began:.1f} s"
        for job, began in seen.faults.items()
        for name, each in seen.firing(job).items()
        if each.labels["severity"] != "info" and each.at < began
    ]
    assert not early


def test_nothing_else_is_told(seen: Seen) -> None:
    """A job with one fault has only the alerts that follow from it; nobody is told of a healthy job."""
    for job in [*EXPECTED, *HEALTHY]:
        loud = {name for name, each in seen.firing(job).items() if each.labels["severity"] != "info"}
        assert loud <= EXPECTED.get(job, set()) | ALSO.get(job, set()), job
    assert {each.labels.get("job") for each in seen.told} <= {*EXPECTED, *HEALTHY}
    assert {each.labels["severity"] for each in seen.told if each.receiver == "nowhere"} == {"info"}


def test_what_is_told_leads_on(seen: Seen) -> None:
    """The texts have all their figures; the runbook is there, and the panel is on the dashboard."""
    panels = {
        f"jaxobs-{board.name}": {alerting.panel_id(panel.key) for row in board.rows for panel in row.panels}
        for board in boards.boards()
    }
    for told in seen.told:
        assert not re.search(r"<no value>|<nil>|<error|%!|\{\{", told.annotations["description"]), told
        page = told.annotations["runbook_url"].removeprefix(SITE.runbook_url + "/")
        assert (ROOT / "runbooks" / page).read_text(encoding="utf-8").count(f"# {told.labels['alertname']}\n")
        uid, _, panel = told.annotations["dashboard_url"].removeprefix(f"{SITE.grafana_url}/d/").partition("?")
        asked = dict(urllib.parse.parse_qsl(panel, keep_blank_values=True))
        assert int(asked["viewPanel"]) in panels[uid], told
        for name in (*SITE.grouping, "instance"):
            assert asked.get(f"var-{name}", "") == told.labels.get(name, ""), told
        assert 0 < int(asked["to"]) - int(asked["from"]) == alerting.BEFORE * 1000, told


def test_a_recovery_is_told(seen: Seen) -> None:
    """A process that is there again: its ticket is closed, by the receiver that got it."""
    told = [(each.status, each.receiver) for each in seen.of("killed", "JaxTargetDown")]
    assert told[0] == ("firing", "tickets") and told[-1] == ("resolved", "tickets")


def test_a_deployment_keeps_compilations_quiet(seen: Seen) -> None:
    """Nobody is told what a job compiles while many of its processes are young."""
    early = []
    for job in {*EXPECTED, *HEALTHY}:
        marks = seen.of(job, "JaxDeploymentUnderWay")
        began = next((each.starts for each in marks if each.status == "firing"), None)
        ended = next((each.ends for each in marks if each.status == "resolved"), LONGEST)
        early += [
            each
            for each in seen.firing(job).values()
            if each.labels.get("phase") == "compile" and began is not None and began + LATE < each.at < ended
        ]
    assert any(seen.of(job, "JaxDeploymentUnderWay") for job in EXPECTED) and early == []


def test_an_absent_job_keeps_its_processes_quiet(seen: Seen) -> None:
    """A page that a job is gone makes tickets of its processes unnecessary."""
    first, last = seen.suppressed["gone", "JaxTargetDown"]
    assert last - first > 2 and "JaxTargetDown" not in seen.firing("gone")
    assert ("killed", "JaxTargetDown") not in seen.suppressed


@pytest.mark.parametrize("which", ["rules", "plain_rules"])
def test_every_rule_evaluates(seen: Seen, which: str) -> None:
    """On the faster clock, and as they are generated: none fails, and all were evaluated."""
    found = getattr(seen, which)
    wanted = sum(len(group["rules"]) for group in GROUPS)
    assert len(found) == wanted > 100
    wrong = [f"{each['name']}: {each['lastError']}" for each in found if each.get("lastError")]
    assert not wrong
    assert {each["health"] for each in found} == {"ok"}
    assert not [each["name"] for each in found if each["lastEvaluation"].startswith("0001")]
