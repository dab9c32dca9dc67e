"""Real programs with faults, Prometheus with the generated rules, Alertmanager and the agent, on loopback.

The clock of the rules is 60 times faster (see `tools.faster`): scrapes are 0.5 s apart, and 30 minutes are 30 seconds.
A second Prometheus evaluates the rules as they are generated. Only the GPUs are made up.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from helpers import waiting
from helpers.answering import serving
from helpers.paths import PROGRAMS, ROOT
from helpers.requirements import program
from jaxobs.ops.monitoring import alerting
from jaxobs.ops.monitoring.deploying import prometheus as deploying
from jaxobs.ops.monitoring.site import Site
from tools import faster, made_up_devices
from tools.ports import free_port
from tools.quick_xla import quick

SITE = Site(grafana_url="http://localhost:3000", agent_url="", extended=True)
FACTOR = 60
LATE = 4.0
"""Seconds between a sample and what Alertmanager posts because of it, on a busy machine: nearly its group interval."""
LONGEST = 140.0
"""Seconds after which what has not been told is missing; a compilation is stuck after an hour, which is 60 of them."""
AFTER = 60.0
"""Seconds that the last fault has at least, where all before it took longer than that."""
AT_ONCE = 2
"""Programs that are started at one time: all together take so long that the first is old when Prometheus meets it."""
RESTARTS = 5
"""Restarts of a process within the hour that is a minute here: two more than enough, if some fall between scrapes."""
EXPECTED = {
    "shapes": {"JaxRecompilationStorm", "JaxUnboundedShapes"},
    "errors": {"JaxFunctionErrors", "JaxSloStepSuccessBurn"},
    "nonfinite": {"JaxNonFiniteValues"},
    "memory": {"JaxOutOfMemory"},
    "input": {"JaxInputBound"},
    "leak": {"JaxArrayLeak"},
    "stalled": {"JaxProcessStuck"},
    "compiling": {"JaxCompilationStuck"},
    "cache": {"JaxPersistentCacheNotSaving"},
    "requests": {
        "JaxColdRequestsHigh", "JaxRequestErrorsHigh", "JaxRequestQueueing", "JaxSloColdRequestsBurn",
        "JaxSloRequestAvailabilityBurn",
    },
    "together": {"JaxProcessCountMismatch", "JaxProgramDivergence", "JaxStraggler"},
    "restarts": {"JaxFleetRestarts", "JaxLastExitKilled"},
    "killed": {"JaxTargetDown"},
    "gone": {"JaxTargetDown", "JaxJobAbsent"},
    "gpu": {"JaxDeviceXidErrors"},
}  # fmt: skip
"""Alerts by job; a job is called as the mode of its program, see `programs/faulty.py`."""
ALSO = {
    "shapes": {"JaxExecutableLeak", "JaxHostMemoryGrowth", "JaxSloCacheHitsBurn"},
    "stalled": {"JaxStepsStalled"},
    "memory": {"JaxProcessStuck", "JaxStepsStalled"},
    "input": {"JaxGoodputLow"},
    "killed": {"JaxLastExitKilled"},
    "restarts": {"JaxCrashLoop"},
    "requests": {
        "JaxExecutableLeak", "JaxHostMemoryGrowth", "JaxRecompilationStorm", "JaxSloCacheHitsBurn",
        "JaxUnboundedShapes",
    },
    "gpu": {"JaxDeviceMemoryFillingUp", "JaxDeviceMemoryHeadroomLow", "JaxDeviceTemperatureHigh", "JaxDeviceThrottled"},
}  # fmt: skip
"""Alerts that also follow from the fault, in some runs: programs that pile up take memory."""
HEALTHY = ("healthy", "serving", "caught")
MODES = {"gone": "serving", "killed": "healthy", "restarts": "healthy"}
"""Modes of programs that are not called as their job."""
RECEIVERS = {"critical": "pager", "warning": "tickets", "info": "nowhere"}
BY_AGENT = "by-agent"
"""Path of the agent's own messages."""
GROUPS = alerting.groups(SITE)


@dataclasses.dataclass(frozen=True)
class Told:
    """An alert that Alertmanager posted."""

    at: float
    """Seconds since the programs were started."""
    receiver: str
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    starts: float
    """Time at which Prometheus first saw the alert, in the same seconds."""
    ends: float
    """Time at which Prometheus saw the alert no more, or would give it up; the notification comes later."""


@dataclasses.dataclass
class Seen:
    """Everything that a run of all programs left to see."""

    told: list[Told] = dataclasses.field(default_factory=list)
    suppressed: dict[tuple[str, str], tuple[float, float]] = dataclasses.field(default_factory=dict)
    """Times at which an alert of a job was first and last seen inhibited."""
    labels: dict[tuple[str, str], dict[str, str]] = dataclasses.field(default_factory=dict)
    """Labels of each alert of a job, told or inhibited."""
    faults: dict[str, float] = dataclasses.field(default_factory=dict)
    """Times at which the faults of jobs began, as the programs print them."""
    rules: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """Rules on the faster clock."""
    plain_rules: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """Rules as they are generated."""
    messages: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """Messages that the agent sent to its webhook."""
    before_recovery: dict[str, Any] = dataclasses.field(default_factory=dict)
    """The agent's report on the job `killed`, before a process of it was there again."""

    def firing(self, job: str) -> dict[str, Told]:
        """Returns the first notification of each alert of a job."""
        found = [each for each in self.told if each.status == "firing" and each.labels.get("job") == job]
        return {each.labels["alertname"]: each for each in reversed(found)}

    def sent(self, job: str, since: float) -> list[tuple[str, str]]:
        """Returns receiver and alert of each notification that something of a job fires, which a person got since."""
        told = [each for each in self.told if each.at >= since and each.labels.get("job") == job]
        posts = dict.fromkeys(
            (each.at, each.receiver, each.labels["alertname"])
            for each in told
            if each.status == "firing" and each.receiver != "nowhere"
        )
        return [(receiver, alert) for _, receiver, alert in posts]

    def by_agent(self, job: str) -> list[tuple[str, str, str]]:
        """Returns what each message of the agent on a job is about, its verdict and its cause, in their order."""
        return [(each["about"], each["verdict"], each["cause"]) for each in self.messages if each["job"] == job]

    def known(self, job: str) -> set[str]:
        """Returns the alerts of a job that were told, or kept back because of another one."""
        return {*self.firing(job), *(name for whose, name in self.suppressed if whose == job)}

    def complete(self) -> bool:
        """Whether all is there that the tests below wait for."""
        missing = any(names - self.known(job) for job, names in EXPECTED.items())
        return not missing and any(each.status == "resolved" for each in self.of("killed", "JaxTargetDown"))

    def of(self, job: str, name: str) -> list[Told]:
        """Returns all notifications of an alert of a job."""
        return [each for each in self.told if (each.labels.get("job"), each.labels["alertname"]) == (job, name)]


def get(url: str) -> Any:
    """Returns the JSON that an API answers."""
    with urllib.request.urlopen(url, timeout=120) as answer:
        return json.load(answer)


@contextlib.contextmanager
def running(command: list[str], log: pathlib.Path, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the block."""
    with log.open("ab") as output:
        started = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, **more)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


@contextlib.contextmanager
def webhook(take: Callable[[str, dict[str, Any]], None]) -> Iterator[str]:
    """An HTTP server that hands on what is posted to it, with the path; its address."""

    with serving(lambda request: take(request.strip("/"), json.loads(request.body)) or 200) as url:
        yield url


@contextlib.contextmanager
def made_up_gpus() -> Iterator[int]:
    """Yields the port of a process with eight GPUs, one of which has an Xid error after 20 s."""
    server = made_up_devices.serve(0, "gpu")
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


class Stage:
    """Programs, Prometheus, Alertmanager and the agent, in one folder; they end with the stack."""

    def __init__(self, folder: pathlib.Path, stack: contextlib.ExitStack, *more: str) -> None:
        """Starts all but the programs.

        Args:
          more: further arguments of the agent.
        """
        self.folder, self.stack = folder, stack
        self.reports = folder / "reports"
        self.began, self.date = time.monotonic(), time.time()
        self.latest = LONGEST
        self.seen = Seen()
        self.ports: dict[tuple[str, int], int] = {}
        self.processes: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        agent, hook = f"127.0.0.1:{free_port()}", stack.enter_context(webhook(self.take))
        site = dataclasses.replace(SITE, agent_url=f"http://{agent}")
        config = faster.alertmanager(deploying.alertmanager(site), FACTOR, hook)
        own = next(each for each in config["receivers"] if each["name"] == deploying.AGENT)
        own["webhook_configs"][0]["url"] = f"http://{agent}/webhook"
        self.alertmanager = f"127.0.0.1:{free_port()}"
        (folder / "alertmanager.yml").write_text(json.dumps(config))
        self.start(
            "alertmanager", program("prometheus-alertmanager"), f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / 'silences'}", f"--web.listen-address={self.alertmanager}",
            "--cluster.listen-address=",
        )  # fmt: skip
        fast = [faster.group(each, FACTOR) for each in GROUPS]
        scrape = faster.duration(SITE.scrape_interval, FACTOR)
        self.prometheus = self.prometheus_with("fast", fast, scrape, self.alertmanager, "--query.lookback-delta=5s")
        self.agent = self.start(
            "agent", sys.executable, "-m", "jaxobs", "agent", "--listen", agent, "--prometheus", self.prometheus,
            "--reports", str(self.reports), "--verify-after", "5", "--webhook", f"{hook}/{BY_AGENT}",
            "--per-minute", "1000", *more,
        )  # fmt: skip

    @property
    def age(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    def take(self, receiver: str, body: dict[str, Any]) -> None:
        """Notes what Alertmanager posts, and the agent."""
        if receiver == BY_AGENT:
            self.seen.messages.append(body)
            return
        at = self.age
        self.seen.labels |= {
            (each["labels"].get("job", ""), each["labels"]["alertname"]): each["labels"] for each in body["alerts"]
        }
        self.seen.told += [
            Told(
                at, receiver, each["status"], each["labels"], each["annotations"],
                self._of(each["startsAt"]), self._of(each["endsAt"]),
            )
            for each in body["alerts"]
        ]  # fmt: skip

    def _of(self, moment: str) -> float:
        """A time of Alertmanager's in seconds since the programs were started."""
        return datetime.datetime.fromisoformat(moment).timestamp() - self.date

    def start(self, name: str, *command: str, **variables: str) -> subprocess.Popen[bytes]:
        """Starts a program that ends with the test."""
        return self.stack.enter_context(
            running(list(command), self.folder / f"{name}.log", cwd=self.folder, env=environment() | variables)
        )

    def prometheus_with(
        self, name: str, groups: list[dict[str, Any]], scrape: str, alertmanager: str | None = None, *flags: str
    ) -> str:
        """Starts a Prometheus with these rules; its address."""
        address = f"127.0.0.1:{free_port()}"
        (self.folder / f"{name}.rules.yaml").write_text(json.dumps({"groups": groups}))
        config: dict[str, Any] = {
            "global": {"scrape_interval": scrape, "scrape_timeout": scrape},
            "rule_files": [f"{name}.rules.yaml"],
            "scrape_configs": [
                {"job_name": "files", "file_sd_configs": [{"files": ["targets/*.json"], "refresh_interval": "5s"}]}
            ],
        }
        if alertmanager:
            config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
        (self.folder / "targets").mkdir(exist_ok=True)
        (self.folder / f"{name}.yml").write_text(json.dumps(config))
        self.start(
            name, program("prometheus"), f"--config.file={name}.yml", f"--storage.tsdb.path=data-{name}",
            f"--web.listen-address={address}", "--rules.alert.resend-delay=1s", "--rules.alert.for-grace-period=1s",
            *flags,
        )  # fmt: skip
        return f"http://{address}"

    def restart(self, job: str, times: int) -> None:
        """Replaces a process several times, each time by one that is ready to serve.

        All that replace it are started first: a start takes seconds, on a busy machine so many that hardly one would
        fall into an hour of the rules.
        """
        log, before = self.folder / f"{job}-0.log", self.processes[job, 0]
        gates = [self.folder / f"{job}-gate-{number}" for number in range(times)]
        waiting = []
        for number, gate in enumerate(gates):
            self.launch(job, FAULTY_GATE=str(gate))
            waiting.append(self.processes[job, 0])
            while log.read_text().count("ready") <= number:
                time.sleep(0.1)
        for after, gate in zip(waiting, gates, strict=True):
            before.kill()
            before.wait()
            gate.touch()
            before = self.processes[job, 0] = after
            self.await_listening(job)
            self.look_for(3.0)

    def launch(
        self, job: str, index: int = 0, *more: str, scraped: bool = True, python: str = sys.executable,
        within: Sequence[str] = (), **variables: str,
    ) -> None:  # fmt: skip
        """Starts a process of a job, on its port where it had one.

        Args:
          within: a command that runs the program.
        """
        port = self.ports.setdefault((job, index), free_port())
        script = str(PROGRAMS / "faulty.py")
        arguments = [script, MODES.get(job, job), str(port), *more]
        self.processes[job, index] = self.start(
            f"{job}-{index}", *within, python, "-W", "ignore", *arguments, **variables
        )
        if scraped:
            self.scrape(job, index, port)

    def scrape(self, job: str, index: int, port: int) -> None:
        """Tells both Prometheus of a process; they see the new file at once."""
        path = self.folder / "targets" / f"{job}-{index}.json"
        labels = {"job": job, "instance": f"{job}-{index}"}
        path.with_suffix(".new").write_text(json.dumps([{"targets": [f"127.0.0.1:{port}"], "labels": labels}]))
        path.with_suffix(".new").rename(path)

    def faults(self) -> dict[str, float]:
        """Returns when the faults of jobs began, in seconds since the programs were started."""
        found = {}
        for job, index in self.processes:
            said = re.search(r"^fault (\S+)$", (self.folder / f"{job}-{index}.log").read_text(), re.MULTILINE)
            if said:
                found[job] = float(said[1]) - self.date
        return found

    def look(self) -> None:
        """Asks Alertmanager what it keeps quiet."""
        with contextlib.suppress(OSError):
            for alert in get(f"http://{self.alertmanager}/api/v2/alerts"):
                if alert["status"]["inhibitedBy"]:
                    key = alert["labels"].get("job", ""), alert["labels"]["alertname"]
                    self.seen.labels[key] = alert["labels"]
                    first, _ = self.seen.suppressed.get(key, (self.age, 0.0))
                    self.seen.suppressed[key] = (first, self.age)

    def await_listening(self, job: str = "") -> None:
        """Waits until the endpoints of all programs listen, or of one job's."""
        waiting = {key: each for key, each in self.processes.items() if key[0] == (job or key[0])}
        while waiting:
            for key, process in list(waiting.items()):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.ports[key]), 1):
                    del waiting[key]
                if process.poll() is not None:
                    log = self.folder / f"{key[0]}-{key[1]}.log"
                    pytest.fail(f"{key} ended: {log.read_text()[-2000:]}", pytrace=False)
            self.look_for(0.2)

    def reports_on(self, job: str) -> list[dict[str, Any]]:
        """Returns the agent's reports on a job."""
        found = [json.loads(path.read_text()) for path in sorted(self.reports.glob("*.json"))]
        return [each for each in found if each["subject"]["labels"].get("job") == job]

    def await_report(self, job: str, fits: Callable[[dict[str, Any]], bool] = bool) -> dict[str, Any]:
        """Waits for the report on a job that fits."""

        def look() -> dict[str, Any] | None:
            return next((each for each in self.reports_on(job) if fits(each)), None)

        def told() -> str:
            reports = [
                f"{each['state']} {[(one['id'], one['component']) for one in each['causes']]} {each['runbooks']}"
                for each in self.reports_on(job)
            ]
            notices = [
                f"{each.at:.1f} s: {each.status} {each.labels['alertname']} {each.labels.get('instance', '')}"
                for each in self.seen.told
                if each.labels.get("job") == job
            ]
            log = (self.folder / "agent.log").read_text(errors="replace")[-3000:]
            return "\n".join((f"no such report on {job} at {self.age:.1f} s:", *reports, *notices, log))

        found = waiting.until(look, told)
        assert found is not None
        return found

    def look_for(self, seconds: float) -> None:
        """Looks twice a second for so long, however late it is."""
        end = self.age + seconds
        while self.age < end:
            self.look()
            time.sleep(0.5)

    def until(self, done: Callable[[], bool]) -> None:
        """Looks twice a second until it is done, or the time is over."""
        while not done() and self.age < self.latest:
            self.look()
            time.sleep(0.5)


def environment() -> dict[str, str]:
    """For programs: this checkout, one device, nothing of a proxy."""
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return {**kept, "PYTHONPATH": str(ROOT), "XLA_FLAGS": quick(), "JAX_PLATFORMS": "cpu"}


def rules_of(url: str) -> list[dict[str, Any]]:
    """All rules of a Prometheus, with how they are."""
    return [rule for group in get(f"{url}/api/v1/rules")["data"]["groups"] for rule in group["rules"]]


def everything(folder: pathlib.Path, stack: contextlib.ExitStack) -> Stage:
    """Runs all programs until all has been told; they, and the agent, go on."""
    stage = Stage(folder, stack)
    plain = stage.prometheus_with("plain", [{**each, "interval": "5s"} for each in GROUPS], "5s")
    stage.launch("compiling")
    stage.await_listening()
    stage.scrape("gpu", 0, stack.enter_context(made_up_gpus()))
    first = [*HEALTHY, *(job for job in EXPECTED if job not in ("compiling", "gpu", "shapes", "together"))]
    for start in range(0, len(first), AT_ONCE):
        for job in first[start : start + AT_ONCE]:
            stage.launch(job)
        stage.await_listening()
    coordinator = str(free_port())
    for index in range(3):
        stage.launch("together", index, str(index), "3", coordinator, scraped=index != 1)
    stage.launch("shapes")
    stage.await_listening()
    stage.launch("killed", 1)
    stage.await_listening("killed")
    for job in ("killed", "gone"):
        stage.processes[job, 0].kill()
        stage.seen.faults[job] = stage.age
    stage.restart("restarts", RESTARTS)
    stage.until(lambda: "JaxTargetDown" in stage.seen.firing("killed"))
    stage.seen.before_recovery = stage.await_report("killed", lambda found: "JaxTargetDown" in found["runbooks"])
    stage.launch("killed")
    stage.latest = max(LONGEST, stage.age + AFTER)
    stage.until(stage.seen.complete)
    stage.seen.faults |= stage.faults()
    stage.seen.rules, stage.seen.plain_rules = rules_of(stage.prometheus), rules_of(plain)
    return stage
