"""Real faults, the real rules, Prometheus and Alertmanager: what the agent writes about each of them.

`python -m pytest -m alerts tests/ops/agent -s` prints the table of docs/agent.md.
"""

from __future__ import annotations

import contextlib
import signal
import statistics
from collections.abc import Iterator

import pytest
from helpers.agent_stage import AgentStage

from tools.ports import free_port

pytestmark = [pytest.mark.alerts, pytest.mark.timeout(1200)]

FAULTS = {
    "compiling": "compile_stuck",
    "nonfinite": "nonfinite_values",
    "errors": "failing_function",
    "memory": "absurd_allocation",
    "input": "input_bound",
    "leak": "memory_leak",
    "stalled": "process_stuck",
    "cache": "cache_unusable",
    "requests": "failing_function",
    "shapes": "recompilation",
}
"""The cause that comes first, by mode of `programs/faulty.py`: of requests that fail or recompile, that some fail."""
UNEXPLAINED = {"killed": "JaxTargetDown", "gone": "JaxJobAbsent"}
"""Nobody says why these ended: what the processes leave is in their logs."""
HEALTHY = {"healthy": "healthy", "serving": "serving", "caught": "caught"}
AT_ONCE = 3


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentStage]:
    """All programs, a few started at a time."""
    with contextlib.ExitStack() as stack:
        stage = AgentStage(tmp_path_factory.mktemp("stage"), stack)
        modes = {**{each: each for each in FAULTS}, **HEALTHY, "killed": "healthy", "gone": "serving"}
        jobs = list(modes)
        processes = {}
        for start in range(0, len(jobs), AT_ONCE):
            for job in jobs[start : start + AT_ONCE]:
                processes[job] = stage.launch(job, modes[job])
            for job in jobs[start : start + AT_ONCE]:
                stage.await_listening(job)
        stage.launch("killed", "healthy", index=1)
        stage.await_listening("killed", 1)
        coordinator = str(free_port())
        for index in range(3):
            stage.launch("together", "together", str(index), "3", coordinator, index=index)
        stage.await_series('job:jax_unfinished:bool{job="gone"} == 1 and job:jax_serving:bool')
        stage.await_series('job:jax_processes_seen:count{job="killed"} == 2')
        for job in UNEXPLAINED:
            processes[job].kill()
        yield stage


@pytest.mark.parametrize("job", FAULTS)
def test_the_cause_of_a_fault_is_named(stage: AgentStage, job: str) -> None:
    report = stage.await_report(job, lambda found: FAULTS[job] in {each["id"] for each in found["causes"]})
    first = report["causes"][0]
    assert (first["id"], first["component"]) == (FAULTS[job], f"{job}-0"), report["headline"]
    assert first["explains_alert"] is True and first["evidence"]
    assert report["verdict"] == "cause"
    assert {"abnormal"} <= {each["outcome"] for each in report["steps"]}
    page = (stage.reports / f"{report['id']}.md").read_text()
    assert page.startswith(f"# {job}: {first['title']}".replace("_", "\\_"))


def test_processes_of_one_job_are_compared(stage: AgentStage) -> None:
    report = stage.await_report(
        "together", lambda found: "programs_diverge" in {each["id"] for each in found["causes"]}
    )
    assert report["blast_radius"]["processes"] == 3


@pytest.mark.parametrize("job", UNEXPLAINED)
def test_what_the_evidence_does_not_show_is_not_named(stage: AgentStage, job: str) -> None:
    names = {UNEXPLAINED[job]}
    report = stage.await_report(job, lambda found: names <= {*found["runbooks"]})
    assert (report["verdict"], report["causes"]) == ("inconclusive", []), report["headline"]
    assert report["collect"] and report["blast_radius"]["unreachable"]


def test_an_incident_ends(stage: AgentStage) -> None:
    report = stage.await_report("nonfinite", lambda found: found["state"] == "closed")
    assert report["verification"]["result"] == "recovered", report["verification"]["because"]
    assert report["alerts"][0]["status"] == "resolved"


def test_the_healthy_are_not_blamed(stage: AgentStage) -> None:
    for job in HEALTHY:
        assert not [each["headline"] for each in stage.reports_on(job) if each["verdict"] != "no_fault"]


def test_it_ends_as_it_should(stage: AgentStage) -> None:
    stage.process.send_signal(signal.SIGTERM)
    assert stage.process.wait(120) == 0, stage.log("agent")
    seconds = []
    for job in (*FAULTS, "together", *UNEXPLAINED, *HEALTHY):
        for report in stage.reports_on(job):
            seconds.append(report["seconds"])
            causes = ", ".join(each["id"] for each in report["causes"])
            print(f"| {job} | {', '.join(report['runbooks'])} | {report['verdict']} | {causes} | {report['seconds']} |")
    assert seconds
    print(f"webhook to report: median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s")
