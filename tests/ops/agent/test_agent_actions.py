"""The agent with a policy and a model: real programs, a real Prometheus and Alertmanager; the model is a test's."""

from __future__ import annotations

import contextlib
import http.server
import json
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.agent_stage import AgentStage
from helpers.waiting import until

pytestmark = pytest.mark.slow

POLICY = """\
allow = ["A1", "A2"]
dry_run = false
slower = 100
[cooldown_seconds]
dump_memory = 600
"""


class Model(http.server.BaseHTTPRequestHandler):
    """Words a report again in one sentence, with the first evidence that it is shown."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        evidence = json.loads(body["messages"][1]["content"])["evidence"]
        text = f"Arrays pile up in the process [{evidence[0]['id']}]."
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [{"message": {"content": text}}]}).encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def model() -> Iterator[str]:
    """The address of a model."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def test_a_leak_has_its_memory_dumped(
    tmp_path: pathlib.Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """From the alert to the dump: asked for by the report, allowed by the policy, on record, and in the report."""
    monkeypatch.setenv("JAXOBS_ACTIONS", "1")
    monkeypatch.setenv("JAXOBS_ACTION_TOKEN", "of the test")
    monkeypatch.setenv("JAXOBS_CAPTURE_DIRECTORY", str(tmp_path / "captures"))
    (tmp_path / "actions.toml").write_text(POLICY)
    with contextlib.ExitStack() as stack:
        stage = AgentStage(tmp_path, stack, "--actions", "actions.toml", "--llm", model, "--llm-model", "small")
        stage.launch("leak", "leak")

        def dumped(report: dict[str, Any]) -> bool:
            return any(each["action"] == "dump_memory" and each["decision"] == "done" for each in report["actions"])

        report = stage.await_report("leak", dumped)
        done = next(each for each in report["actions"] if each["decision"] == "done")
        assert pathlib.Path(done["path"]).is_relative_to(tmp_path / "captures") and pathlib.Path(done["path"]).exists()
        lines = [json.loads(line) for line in (stage.reports / "actions.jsonl").read_text().splitlines()]
        assert {"begun", "done"} <= {line["decision"] for line in lines}
        assert {line["incident"] for line in lines} == {report["id"]} and {line["job"] for line in lines} == {"leak"}
        worded = until(lambda: stage.await_report("leak")["rewording"])
        assert worded["model"] == "small" and worded["text"].startswith("Arrays pile up"), worded
        page = (stage.reports / f"{report['id']}.md").read_text()
        assert "## Actions" in page and "**done**" in page
        stopped = subprocess.run(
            [sys.executable, "-m", "jaxobs", "agent", "stop", "--reports", str(stage.reports)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "kill switch is on" in stopped.stdout and (stage.reports / "actions.stop").exists()
