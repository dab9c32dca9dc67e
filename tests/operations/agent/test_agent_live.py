"""A real fault, the real rules, Prometheus and Alertmanager: what the agent writes about it."""

from __future__ import annotations

import contextlib
import pathlib
import signal

import pytest
from helpers.agent_stage import AgentStage

pytestmark = pytest.mark.alerts


def test_a_fault_becomes_a_report(tmp_path: pathlib.Path) -> None:
    """From a loss that turns NaN to a report that names it, and the end of it to a verified incident."""
    with contextlib.ExitStack() as stack:
        stage = AgentStage(tmp_path, stack)
        stage.launch("faulty", "nonfinite")
        stage.launch("healthy", "healthy")
        report = stage.await_report("faulty", lambda found: bool(found["causes"]))
        assert [each["id"] for each in report["causes"]] == ["nonfinite_values"]
        assert report["causes"][0]["component"] == "faulty-0"
        assert report["causes"][0]["explains_alert"] is True
        assert report["alerts"][0]["confirmed"] is True
        assert report["runbooks"] == ["JaxNonFiniteValues"]
        assert any(each["outcome"] == "abnormal" for each in report["steps"])
        page = (stage.reports / f"{report['id']}.md").read_text()
        assert page.startswith("# faulty: Values turned NaN or infinite")
        stage.await_report("faulty", lambda found: found["state"] == "closed")
        assert not [each for each in stage.reports.glob("*.json") if "healthy" in each.name]
        stage.process.send_signal(signal.SIGTERM)
        assert stage.process.wait(60) == 0
