"""The Alertmanager configuration of docs/agent.md: the agent gets alerts in addition to whoever got them before."""

import subprocess
from pathlib import Path

import pytest
import yaml
from helpers.examples import blocks
from helpers.requirements import program

from jaxobs.ops.monitoring.deploying import prometheus
from jaxobs.ops.monitoring.site import RECEIVERS, Site


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ("severity=critical", "jaxobs-agent,pager"),
        ("severity=warning", "jaxobs-agent,tickets"),
        ("severity=info", "nowhere"),
        ("severity=page", "tickets"),
        ("alertname=Watchdog", "tickets"),
    ],
)
def test_pager_and_tickets_keep_their_alerts(tmp_path: Path, labels: str, receivers: str) -> None:
    """The documentation's own text, which is what is generated, asked for each severity and for alerts of others."""
    amtool, path = program("amtool"), tmp_path / "alertmanager.yml"
    (shown,) = (each.text for each in blocks("yaml") if each.page == "docs/agent.md" and "receivers:" in each.text)
    path.write_text(shown)
    given = yaml.safe_load(shown)
    named = {each.pop("name"): each for each in yaml.safe_load(shown)["receivers"]}
    assert given == prometheus.alertmanager(Site(receivers={name: named[name] for name in RECEIVERS}))
    for command in (["check-config", str(path)], ["config", "routes", "test", f"--config.file={path}", labels]):
        done = subprocess.run([amtool, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == receivers
