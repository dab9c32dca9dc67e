"""The agent with a policy: real programs, a real Prometheus and Alertmanager."""

import contextlib
import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from helpers.live_stage import Stage

pytestmark = pytest.mark.slow

POLICY = """\
allow = ["A1", "A2"]
dry_run = false
slower = 100
[cooldown_seconds]
dump_memory = 600
"""


def test_a_leak_has_its_memory_dumped(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXOBS_ACTIONS", "1")
    monkeypatch.setenv("JAXOBS_ACTION_TOKEN", "of the test")
    monkeypatch.setenv("JAXOBS_CAPTURE_DIRECTORY", str(tmp_path / "captures"))
    (tmp_path / "actions.toml").write_text(POLICY)
    with contextlib.ExitStack() as stack:
        stage = Stage(tmp_path, stack, "--actions", "actions.toml")
        stage.launch("leak")

        def dumped(report: dict[str, Any]) -> bool:
            return any(each["action"] == "dump_memory" and each["decision"] == "done" for each in report["actions"])

        report = stage.await_report("leak", dumped)
        done = next(each for each in report["actions"] if each["decision"] == "done")
        assert pathlib.Path(done["path"]).is_relative_to(tmp_path / "captures") and pathlib.Path(done["path"]).exists()
        lines = [json.loads(line) for line in (stage.reports / "actions.jsonl").read_text().splitlines()]
        assert {"begun", "done"} <= {line["decision"] for line in lines}
        assert {line["incident"] for line in lines} == {report["id"]} and {line["job"] for line in lines} == {"leak"}
        page = (stage.reports / f"{report['id']}.md").read_text()
        assert "## Actions" in page and "**done**" in page
        stopped = subprocess.run(
            [sys.executable, "-m", "jaxobs", "agent", "stop", "--reports", str(stage.reports)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "kill switch is on" in stopped.stdout and (stage.reports / "actions.stop").exists()
