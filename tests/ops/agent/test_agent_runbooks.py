"""The table of alerts: complete, and about diagnoses that there are."""

import pytest
from helpers.paths import ROOT

from jaxobs.ops.agent import runbooks, steps
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis.knowledge import Alert
from jaxobs.ops.diagnosis.known import known
from jaxobs.ops.diagnosis.result import Cause


def cause(name: str) -> Cause:
    each = known()[name]
    return Cause(
        id=name, title=each.title, component="a", evidence=(), fix="", runbook="", onset=None, impact=each.impact
    )


def test_every_alert_has_a_row() -> None:
    """A new alert: add it to jaxobs/ops/agent/runbooks.toml, with what can explain it."""
    assert runbooks.TABLE.keys() == runbooks.declared().keys()


@pytest.mark.parametrize("name", runbooks.TABLE)
def test_a_row_is_about_what_there_is(name: str) -> None:
    row = runbooks.TABLE[name]
    assert set(row.causes) <= known().keys() and len(set(row.causes)) == len(row.causes)
    assert (ROOT / "runbooks" / f"{name}.md").exists()
    assert runbooks.page(name).endswith(f"/runbooks/{name}.md")


def test_a_diagnosis_explains_the_alerts_that_are_its_signs() -> None:
    missing = [
        (sign.name, name)
        for name, each in known().items()
        for sign in each.signs
        if isinstance(sign, Alert) and each.role == "cause" and not runbooks.explains(cause(name), sign.name)
    ]
    assert missing == []


def test_what_cannot_explain_an_alert_does_not() -> None:
    assert runbooks.explains(cause("recompilation"), "JaxDeviceTemperatureHigh") is False
    assert runbooks.explains(cause("disk_full"), "JaxStepsStalled") is True
    assert runbooks.explains(cause("recompilation"), "DiskAlmostFull") is None
    assert runbooks.page("../../etc/passwd").endswith("docs/agent.md#alerts-that-it-does-not-know")


@pytest.mark.parametrize("name", runbooks.TABLE)
def test_the_questions_of_a_runbook_stay_within_the_subject(name: str) -> None:
    """Each selector has the job's matchers, and a value from outside is one string in it."""
    promql_parser = pytest.importorskip("promql_parser")
    job = 'x"} or vector(1) # <compilations> <script> {@} by (job) \\'
    subject = Subject((("job", job),))
    for question in steps.questions(subject, [name]):
        tree = promql_parser.parse(question.query)
        found = []

        def visit(node: object, found: list[object] = found) -> bool:
            if isinstance(node, promql_parser.VectorSelector):
                found.append(node)
            return True

        promql_parser.walk(tree, visit)
        assert found, question.query
        for selector in found:
            told = {each.name: each.value for each in selector.matchers.matchers}
            assert told.get("job") == job, question.query


def test_an_alert_without_a_job_asks_nothing_of_all_jobs() -> None:
    nobody = Subject((("alertname", "DiskFull"),))
    assert steps.questions(nobody, ["DiskFull"]) == []
    assert {each.runbook for each in steps.questions(nobody, ["JaxStraggler"])} == {"JaxStraggler"}


def test_no_question_is_asked_twice() -> None:
    asked = [each.query for each in steps.questions(Subject((("job", "a"),)), list(runbooks.TABLE))]
    assert len(asked) == len(set(asked)) <= steps.MOST_STEPS
