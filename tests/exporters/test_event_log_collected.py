"""The recipe of docs/event-log.md for the OpenTelemetry Collector, as it stands there, over a log that rotates."""

import datetime
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.paths import ROOT
from helpers.requirements import built
from helpers.run_programs import environment
from helpers.waiting import until

pytestmark = pytest.mark.linters

PROGRAM = """
import sys, time
import jax, jax.numpy as jnp
import jaxobs

jaxobs.install(event_log=sys.argv[1], event_log_max_bytes=20_000, event_log_files=20)
for size in range(1, 40):
    jax.jit(lambda x: x + 1)(jnp.ones(size))
    time.sleep(0.02)
"""


def recipe() -> dict[str, Any]:
    """The configuration on the page."""
    page = (ROOT / "docs" / "event-log.md").read_text(encoding="utf-8")
    found = re.search(r"### OpenTelemetry Collector\n.*?```yaml\n(.*?)```", page, re.DOTALL)
    assert found is not None
    read: dict[str, Any] = yaml.safe_load(found[1])
    return read


def records(path: Path) -> list[dict[str, Any]]:
    """Log records that the Collector sent on."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [
        each
        for line in lines
        for resource in line["resourceLogs"]
        for scope in resource["scopeLogs"]
        for each in scope["logRecords"]
    ]


def test_every_line_arrives_once(tmp_path: Path) -> None:
    """With its fields as attributes and its own time, whatever was renamed meanwhile."""
    folder, sent = tmp_path / "log", tmp_path / "sent.jsonl"
    folder.mkdir()
    config = recipe()
    config["receivers"]["file_log"] |= {"include": [str(folder / "*.jsonl*")], "poll_interval": "50ms"}
    config["exporters"] = {"file": {"path": str(sent), "flush_interval": "100ms"}}
    config["service"]["pipelines"]["logs"]["exporters"] = ["file"]
    config["service"]["telemetry"] = {"metrics": {"level": "none"}}
    (tmp_path / "collector.yaml").write_text(yaml.safe_dump(config))
    with (tmp_path / "collector.log").open("wb") as log:
        collector = subprocess.Popen(
            [built("otelcol"), "--config", str(tmp_path / "collector.yaml")], stdout=log, stderr=log
        )
    try:
        command = [sys.executable, "-c", PROGRAM, str(folder / "events.jsonl")]
        done = subprocess.run(
            command, env=environment(PYTHONPATH=str(ROOT)), capture_output=True, text=True, timeout=240, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        files = sorted(folder.glob("events.jsonl*"))
        assert len(files) > 3, "it rotated"
        written = [json.loads(line) for path in files for line in path.read_text().splitlines()]
        assert len(written) > 40
        until(lambda: collector.poll() is not None or len(records(sent)) >= len(written))
    finally:
        collector.terminate()
        collector.wait(60)
    found = records(sent)
    assert Counter(each["body"]["stringValue"] for each in found) == Counter(
        line for path in files for line in path.read_text().splitlines()
    ), (tmp_path / "collector.log").read_text()[-2000:]
    for record in found:
        event = json.loads(record["body"]["stringValue"])
        attributes = {one["key"]: one["value"] for one in record["attributes"]}
        assert attributes["event"]["stringValue"] == event["event"]
        seconds = int(record["timeUnixNano"]) / 1e9
        assert datetime.datetime.fromisoformat(event["time"]).timestamp() == pytest.approx(seconds, abs=1e-3)
