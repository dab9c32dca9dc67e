"""Real faults, the real rules, Prometheus and Alertmanager: what the agent writes about each of them.

`python -m pytest -m alerts tests/ops/agent -s` prints the table of docs/agent.md.
"""

import signal
import statistics

import pytest
from helpers.live_stage import HEALTHY, Stage

pytestmark = [pytest.mark.alerts, pytest.mark.timeout(1200)]

FAULTS = {
    "compiling": "compile_stuck", "nonfinite": "nonfinite_values", "errors": "failing_function",
    "memory": "absurd_allocation", "input": "input_bound", "leak": "memory_leak", "stalled": "process_stuck",
    "cache": "cache_unusable", "requests": "failing_function", "shapes": "recompilation",
}  # fmt: skip
"""The cause that comes first, by mode of `programs/faulty.py`: of requests that fail or recompile, that some fail."""
UNEXPLAINED = {"killed": "JaxTargetDown", "gone": "JaxJobAbsent"}
"""Nobody says why these ended: what the processes leave is in their logs."""


@pytest.mark.parametrize("job", FAULTS)
def test_the_cause_of_a_fault_is_named(live_stage: Stage, job: str) -> None:
    report = live_stage.await_report(job, lambda found: FAULTS[job] in {each["id"] for each in found["causes"]})
    first = report["causes"][0]
    assert (first["id"], first["component"]) == (FAULTS[job], f"{job}-0"), report["headline"]
    assert first["explains_alert"] is True and first["evidence"]
    assert report["verdict"] == "cause"
    assert {"abnormal"} <= {each["outcome"] for each in report["steps"]}
    page = (live_stage.reports / f"{report['id']}.md").read_text()
    assert page.startswith(f"# {job}: {first['title']}".replace("_", "\\_"))


def test_processes_of_one_job_are_compared(live_stage: Stage) -> None:
    report = live_stage.await_report(
        "together", lambda found: "programs_diverge" in {each["id"] for each in found["causes"]}
    )
    assert report["blast_radius"]["processes"] == 2, "one of three is not scraped"


@pytest.mark.parametrize("job", UNEXPLAINED)
def test_what_the_evidence_does_not_show_is_not_named(live_stage: Stage, job: str) -> None:
    names = {UNEXPLAINED[job]}
    report = live_stage.seen.before_recovery
    if job != "killed":
        report = live_stage.await_report(job, lambda found: names <= {*found["runbooks"]})
    assert (report["verdict"], report["causes"]) == ("inconclusive", []), report["headline"]
    assert report["collect"] and report["blast_radius"]["unreachable"]


def test_an_incident_ends(live_stage: Stage) -> None:
    report = live_stage.await_report("nonfinite", lambda found: found["state"] == "closed")
    assert report["verification"]["result"] == "recovered", report["verification"]["because"]
    assert report["alerts"][0]["status"] == "resolved"


def test_the_healthy_are_not_blamed(live_stage: Stage) -> None:
    for job in HEALTHY:
        assert not [each["headline"] for each in live_stage.reports_on(job) if each["verdict"] != "no_fault"]


def test_it_ends_as_it_should(live_stage: Stage) -> None:
    live_stage.agent.send_signal(signal.SIGTERM)
    assert live_stage.agent.wait(120) == 0
    seconds = []
    for job in (*FAULTS, "together", *UNEXPLAINED, *HEALTHY):
        for report in live_stage.reports_on(job):
            seconds.append(report["seconds"])
            causes = ", ".join(each["id"] for each in report["causes"])
            print(f"| {job} | {', '.join(report['runbooks'])} | {report['verdict']} | {causes} | {report['seconds']} |")
    assert seconds
    print(f"webhook to report: median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s")
