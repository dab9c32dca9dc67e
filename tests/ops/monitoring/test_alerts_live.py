"""Faults in real programs, scraped by a real Prometheus: what a real Alertmanager tells, and to whom.

The clock of the rules is 60 times faster (see `tools.faster`): scrapes are 0.5 s apart, and 30 minutes are 30 seconds.
A second Prometheus evaluates the rules as they are generated. Only the GPUs are made up.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers.paths import PROGRAMS, ROOT
from helpers.requirements import program

from jaxobs.ops.monitoring import alerting, boards
from jaxobs.ops.monitoring.deploying import prometheus as deploying
from jaxobs.ops.monitoring.site import Site
from tools import faster, made_up_devices
from tools.ports import free_port
from tools.quick_xla import quick

pytestmark = pytest.mark.alerts

SITE = Site()
FACTOR = 60
LATE = 4.0
"""Seconds between a sample and what Alertmanager posts because of it, on a busy machine: nearly its group interval."""
LONGEST = 130.0
"""Seconds after which what has not been told is missing; a compilation is stuck after an hour, which is 60 of them."""
AFTER = 60.0
"""Seconds that the last fault has at least, where all before it took longer than that."""
AT_ONCE = 3
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
    "stalled": {"JaxStepsStalled"},
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
    "stalled": {"JaxProcessStuck"},
    "memory": {"JaxProcessStuck", "JaxStepsStalled"},
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
    faults: dict[str, float] = dataclasses.field(default_factory=dict)
    """Times at which the faults of jobs began, as the programs print them."""
    rules: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """Rules on the faster clock."""
    plain_rules: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """Rules as they are generated."""

    def firing(self, job: str) -> dict[str, Told]:
        """Returns the first notification of each alert of a job."""
        found = [each for each in self.told if each.status == "firing" and each.labels.get("job") == job]
        return {each.labels["alertname"]: each for each in reversed(found)}

    def complete(self) -> bool:
        """Whether all is there that the tests below wait for."""
        missing = any(names - self.firing(job).keys() for job, names in EXPECTED.items())
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

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            take(self.path.strip("/"), body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


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
    """Programs, Prometheus twice and Alertmanager, in one folder, on loopback."""

    def __init__(self, folder: pathlib.Path, stack: contextlib.ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.began, self.date = time.monotonic(), time.time()
        self.latest = LONGEST
        self.seen = Seen()
        self.ports: dict[tuple[str, int], int] = {}
        self.processes: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        hook = stack.enter_context(webhook(self.take))
        config = faster.alertmanager(deploying.alertmanager(SITE), FACTOR, hook)
        self.alertmanager = f"127.0.0.1:{free_port()}"
        (folder / "alertmanager.yml").write_text(json.dumps(config))
        self.start(
            "alertmanager", program("prometheus-alertmanager"), f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / 'silences'}", f"--web.listen-address={self.alertmanager}",
            "--cluster.listen-address=",
        )  # fmt: skip
        fast = [faster.group(each, FACTOR) for each in GROUPS]
        plain = [{**each, "interval": "5s"} for each in GROUPS]
        scrape = faster.duration(SITE.scrape_interval, FACTOR)
        self.prometheus = self.prometheus_with("fast", fast, scrape, self.alertmanager, "--query.lookback-delta=5s")
        self.plain = self.prometheus_with("plain", plain, "5s")

    @property
    def age(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    def take(self, receiver: str, body: dict[str, Any]) -> None:
        """Notes what Alertmanager posts."""
        self.seen.told += [
            Told(
                self.age, receiver, each["status"], each["labels"], each["annotations"],
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

    def restart(self, job: str) -> None:
        """Replaces a process by one that is ready to serve: to start takes seconds, which are minutes here."""
        before, gate = self.processes[job, 0], self.folder / f"{job}-gate-{time.monotonic_ns()}"
        log = self.folder / f"{job}-0.log"
        ready = log.read_text().count("ready")
        self.launch(job, FAULTY_GATE=str(gate))
        while log.read_text().count("ready") == ready:
            time.sleep(0.1)
        before.kill()
        before.wait()
        gate.touch()
        self.await_listening(job)

    def launch(self, job: str, index: int = 0, *more: str, scraped: bool = True, **variables: str) -> None:
        """Starts a process of a job, on its port where it had one."""
        port = self.ports.setdefault((job, index), free_port())
        script = str(PROGRAMS / "faulty.py")
        arguments = [script, MODES.get(job, job), str(port), *more]
        if job == "demo":
            arguments = ["-m", "jaxobs", "demo", "--minutes", "3", "--port", str(port)]
        self.processes[job, index] = self.start(
            f"{job}-{index}", sys.executable, "-W", "ignore", *arguments, **variables
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

    def look_for(self, seconds: float) -> None:
        """Looks twice a second for so long."""
        end = self.age + seconds
        self.until(lambda: self.age > end)

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


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """Runs all programs once, until all has been told."""
    with contextlib.ExitStack() as stack:
        stage = Stage(tmp_path_factory.mktemp("stage"), stack)
        stage.launch("compiling")
        stage.await_listening()
        stage.scrape("gpu", 0, stack.enter_context(made_up_gpus()))
        first = [*HEALTHY, "demo", *(job for job in EXPECTED if job not in ("compiling", "gpu", "shapes", "together"))]
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
        for _ in range(RESTARTS):
            stage.restart("restarts")
            stage.look_for(3.0)
        stage.until(lambda: "JaxTargetDown" in stage.seen.firing("killed"))
        stage.launch("killed")
        stage.latest = max(LONGEST, stage.age + AFTER)
        stage.until(stage.seen.complete)
        stage.seen.faults |= stage.faults()
        stage.seen.rules, stage.seen.plain_rules = rules_of(stage.prometheus), rules_of(stage.plain)
        yield stage.seen


def test_every_fault_is_told(seen: Seen) -> None:
    """Each job's alerts reach the receiver of their severity, with the labels that say which process it is."""
    for job, names in EXPECTED.items():
        told = seen.firing(job)
        assert names <= told.keys(), f"{job}: nothing was told of {sorted(names - told.keys())}"
        for notice in (told[name] for name in names):
            assert notice.receiver == RECEIVERS[notice.labels["severity"]], notice
            assert notice.labels.get("instance", f"{job}-0") == f"{job}-0", notice
    stuck = ("stalled", "JaxProcessStuck")  # held back from when its whole job is told to be stalled
    assert "JaxProcessStuck" in seen.firing("stalled") or stuck in seen.suppressed
    together = seen.firing("together")
    assert together["JaxProgramDivergence"].labels.keys() == {"alertname", "job", "severity"}
    assert seen.firing("memory")["JaxOutOfMemory"].labels["function"] == "__main__.huge"
    assert seen.firing("requests")["JaxColdRequestsHigh"].labels["route"] == "/predict"


def test_nothing_is_told_before_its_fault(seen: Seen) -> None:
    """A fault comes before its alert: each program prints when its fault begins."""
    assert {*EXPECTED} - seen.faults.keys() == {"gpu", "restarts"}
    early = [
        f"{job}: {name} at {each.at:.1f} s, the fault at {began:.1f} s"
        for job, began in seen.faults.items()
        for name, each in seen.firing(job).items()
        if each.labels["severity"] != "info" and each.at < began
    ]
    assert not early


def test_nothing_else_is_told(seen: Seen) -> None:
    """A job with one fault has only the alerts that follow from it; nobody is told of a healthy job."""
    for job in [*EXPECTED, *HEALTHY]:
        loud = {name for name, each in seen.firing(job).items() if each.labels["severity"] != "info"}
        assert loud <= EXPECTED.get(job, set()) | ALSO.get(job, set()), job
    assert {each.labels.get("job") for each in seen.told} <= {*EXPECTED, *HEALTHY, "demo"}
    assert {each.labels["severity"] for each in seen.told if each.receiver == "nowhere"} == {"info"}


def test_what_is_told_leads_on(seen: Seen) -> None:
    """The texts have all their figures; the runbook is there, and the panel is on the dashboard."""
    panels = {
        f"jaxobs-{board.name}": {alerting.panel_id(panel.key) for row in board.rows for panel in row.panels}
        for board in boards.boards()
    }
    for told in seen.told:
        assert not re.search(r"<no value>|<nil>|<error|%!|\{\{", told.annotations["description"]), told
        page = told.annotations["runbook_url"].removeprefix(SITE.runbook_url + "/")
        assert (ROOT / "runbooks" / page).read_text(encoding="utf-8").count(f"# {told.labels['alertname']}\n")
        uid, _, panel = told.annotations["dashboard_url"].removeprefix(f"{SITE.grafana_url}/d/").partition("?")
        asked = dict(urllib.parse.parse_qsl(panel, keep_blank_values=True))
        assert int(asked["viewPanel"]) in panels[uid], told
        for name in (*SITE.grouping, "instance"):
            assert asked.get(f"var-{name}", "") == told.labels.get(name, ""), told
        assert 0 < int(asked["to"]) - int(asked["from"]) == alerting.BEFORE * 1000, told


def test_a_recovery_is_told(seen: Seen) -> None:
    """A process that is there again: its ticket is closed, by the receiver that got it."""
    told = [(each.status, each.receiver) for each in seen.of("killed", "JaxTargetDown")]
    assert told[0] == ("firing", "tickets") and told[-1] == ("resolved", "tickets")


def test_a_deployment_keeps_compilations_quiet(seen: Seen) -> None:
    """Nobody is told what a job compiles while many of its processes are young."""
    early = []
    for job in {*EXPECTED, *HEALTHY}:
        marks = seen.of(job, "JaxDeploymentUnderWay")
        began = next((each.starts for each in marks if each.status == "firing"), None)
        ended = next((each.ends for each in marks if each.status == "resolved"), LONGEST)
        early += [
            each
            for each in seen.firing(job).values()
            if each.labels.get("phase") == "compile" and began is not None and began + LATE < each.at < ended
        ]
    assert any(seen.of(job, "JaxDeploymentUnderWay") for job in EXPECTED) and early == []


def test_an_absent_job_keeps_its_processes_quiet(seen: Seen) -> None:
    """A page that a job is gone makes tickets of its processes unnecessary."""
    first, last = seen.suppressed["gone", "JaxTargetDown"]
    assert last - first > 2 and first > seen.firing("gone")["JaxTargetDown"].at
    assert ("killed", "JaxTargetDown") not in seen.suppressed


@pytest.mark.parametrize("which", ["rules", "plain_rules"])
def test_every_rule_evaluates(seen: Seen, which: str) -> None:
    """On the faster clock, and as they are generated: none fails, and all were evaluated."""
    found = getattr(seen, which)
    wanted = sum(len(group["rules"]) for group in GROUPS)
    assert len(found) == wanted > 100
    wrong = [f"{each['name']}: {each['lastError']}" for each in found if each.get("lastError")]
    assert not wrong
    assert {each["health"] for each in found} == {"ok"}
    assert not [each["name"] for each in found if each["lastEvaluation"].startswith("0001")]
