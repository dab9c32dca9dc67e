"""Real programs, a real Prometheus with the generated rules on a faster clock, a real Alertmanager, and the agent."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from helpers.paths import PROGRAMS, ROOT
from helpers.requirements import program
from helpers.waiting import until
from jaxobs.ops.monitoring import alerting
from jaxobs.ops.monitoring.deploying import prometheus as deploying
from jaxobs.ops.monitoring.site import Site
from tools import faster
from tools.ports import free_port
from tools.quick_xla import quick

FACTOR = 60


class AgentStage:
    """Everything in one folder, on loopback; it ends with the stack."""

    def __init__(self, folder: pathlib.Path, stack: contextlib.ExitStack, *more: str) -> None:
        """Starts Prometheus, Alertmanager and the agent.

        Args:
          more: further arguments of the agent.
        """
        self.folder, self._stack, self._more = folder, stack, more
        self.reports = folder / "reports"
        self.agent = f"127.0.0.1:{free_port()}"
        self.alertmanager = f"127.0.0.1:{free_port()}"
        self.prometheus = f"127.0.0.1:{free_port()}"
        (folder / "targets").mkdir()
        self._start_alertmanager()
        self._start_prometheus()
        self.process = self.start_agent()

    def _start_alertmanager(self) -> None:
        config = faster.alertmanager(deploying.alertmanager(Site()), FACTOR, "http://unused")
        hook = {"url": f"http://{self.agent}/webhook", "send_resolved": True}
        config["receivers"] = [
            {"name": each["name"]} if each["name"] == "nowhere" else {**each, "webhook_configs": [hook]}
            for each in config["receivers"]
        ]
        (self.folder / "alertmanager.yml").write_text(json.dumps(config))
        self.start(
            "alertmanager", program("prometheus-alertmanager"), "--config.file=alertmanager.yml",
            "--storage.path=silences", f"--web.listen-address={self.alertmanager}", "--cluster.listen-address=",
        )  # fmt: skip

    def _start_prometheus(self) -> None:
        site = Site()
        groups = alerting.groups(site)
        fast = {"groups": [faster.group(each, FACTOR) for each in groups]}
        scrape = faster.duration(site.scrape_interval, FACTOR)
        config: dict[str, Any] = {
            "global": {"scrape_interval": scrape, "scrape_timeout": scrape},
            "rule_files": ["rules.yaml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [self.alertmanager]}]}]},
            "scrape_configs": [
                {"job_name": "files", "file_sd_configs": [{"files": ["targets/*.json"], "refresh_interval": "5s"}]}
            ],
        }
        (self.folder / "rules.yaml").write_text(json.dumps(fast))
        (self.folder / "prometheus.yml").write_text(json.dumps(config))
        self.start(
            "prometheus", program("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data",
            f"--web.listen-address={self.prometheus}", "--rules.alert.resend-delay=1s",
            "--rules.alert.for-grace-period=1s", "--query.lookback-delta=5s",
        )  # fmt: skip

    def start_agent(self) -> subprocess.Popen[bytes]:
        """Starts the agent, with the reports that are there."""
        return self.start(
            "agent", sys.executable, "-m", "jaxobs", "agent", "--listen", self.agent, "--prometheus",
            f"http://{self.prometheus}", "--reports", str(self.reports), "--verify-after", "5", *self._more,
        )  # fmt: skip

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """Starts a program that ends with the stack."""
        kept = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        environment = {**kept, "PYTHONPATH": str(ROOT), "XLA_FLAGS": quick(), "JAX_PLATFORMS": "cpu"}
        with (self.folder / f"{name}.log").open("ab") as log:
            found = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, env=environment
            )
        self._stack.callback(found.wait)
        self._stack.callback(found.kill)
        return found

    def launch(self, job: str, mode: str, *more: str, index: int = 0) -> subprocess.Popen[bytes]:
        """Starts a program of `programs/faulty.py` as a process of a job that Prometheus scrapes, and waits for it."""
        port, name = free_port(), f"{job}-{index}"
        found = self.start(name, sys.executable, "-W", "ignore", str(PROGRAMS / "faulty.py"), mode, str(port), *more)
        draft = self.folder / "targets" / f"{name}.new"
        labels = {"job": job, "instance": name}
        draft.write_text(json.dumps([{"targets": [f"127.0.0.1:{port}"], "labels": labels}]))
        draft.rename(draft.with_suffix(".json"))
        return found

    def await_listening(self, job: str, index: int = 0) -> None:
        """Waits until a process serves."""
        until(lambda: "/metrics" in self.log(f"{job}-{index}"), lambda: self.log(f"{job}-{index}"))

    def await_series(self, query: str) -> None:
        """Waits until Prometheus has something for a query."""
        url = f"http://{self.prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": query})

        def look() -> bool:
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:
                return bool(json.load(answer)["data"]["result"])
            return False

        until(look, lambda: f"nothing for {query}")

    def reports_on(self, job: str) -> list[dict[str, Any]]:
        found = [json.loads(path.read_text()) for path in sorted(self.reports.glob("*.json"))]
        return [each for each in found if each["subject"]["labels"].get("job") == job]

    def await_report(self, job: str, fits: Callable[[dict[str, Any]], bool] = bool) -> dict[str, Any]:
        """The report on a job that fits."""

        def look() -> dict[str, Any] | None:
            return next((each for each in self.reports_on(job) if fits(each)), None)

        found = until(look, lambda: f"no such report on {job}: {self.log('agent')}")
        assert found is not None
        return found

    def log(self, name: str) -> str:
        """The end of what a program printed."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""
