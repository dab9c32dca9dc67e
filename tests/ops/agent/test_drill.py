"""A drill: running jobs break in twelve ways, and the agent's report names each, and closes when it is over.

`test_agent_live.py` has the breaks of single programs; here are those between programs and of what is around them.
`python -m pytest -m alerts tests/ops/agent/test_drill.py -s` prints the rows of docs/agent.md.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.answering import serving
from helpers.live_stage import Stage
from helpers.paths import ROOT
from helpers.waiting import until

from tools.ports import free_port

pytestmark = [pytest.mark.alerts, pytest.mark.timeout(600)]
OTHER_JAX = ROOT / ".venvs" / "0.9.2-py3.11" / "bin" / "python"
QUIET = 15.0
"""Seconds before the breaks: a quarter of an hour of the rules."""
SOON = 8.0
"""Seconds of a start that are no ten minutes of the rules."""
REST = 15.0
"""Seconds after a report, in which Alertmanager sends the tickets, and would send all others."""


@dataclass
class Break:
    """A break of a job, and what has to come of it."""

    alert: str
    """The one that a person gets, and no other."""
    cause: str
    component: str
    closes: bool = True
    """False where the process counts over two minutes of its own time, which no faster clock shortens."""

    def is_named(self, report: dict[str, Any]) -> bool:
        """Returns whether a report names the break first, and has its alert."""
        first = [(each["id"], each["component"]) for each in report["causes"][:1]]
        return first == [(self.cause, self.component)] and self.alert in report["runbooks"]


BREAKS = {
    "frozen": Break("JaxProcessStuck", "process_stuck", "frozen-1"),  # First: JAX ends its peer after 100 s.
    "dependency": Break("JaxSloRequestAvailabilityBurn", "dependency_unavailable", "dependency-0", closes=False),
    "full": Break("JaxEventLogDiskFull", "disk_full", "full-0"),
    "gradual": Break("JaxInputBound", "input_bound", "gradual-0"),
    "hog": Break("JaxLastExitKilled", "host_out_of_memory", "hog-0"),
    "replicas": Break("JaxRequestErrorsHigh", "version_skew", "replicas-2"),
    "slow": Break("JaxStraggler", "straggler", "slow-2"),
}


@contextlib.contextmanager
def control_group() -> Iterator[Path | None]:
    """Yields a control group that allows half a GB; None where none may be made."""
    for parent, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(parent) / f"jaxobs-drill-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text("500000000")
        except OSError:
            continue
        yield group
        group.rmdir()
        return
    yield None


class Drill:
    """The jobs, their breaks, and what ends these."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.status = 200
        self.reports: dict[str, dict[str, Any]] = {}
        self.sent: dict[str, set[tuple[str, str]]] = {}
        self.broke = 0.0
        self.is_late = False
        """Whether the one that takes the killed one's place took so long that its target is told, too."""
        self.group = stage.stack.enter_context(control_group())
        self.service = stage.stack.enter_context(serving(lambda _: self.status))

    def launch(self, job: str, index: int = 0, *more: str, **variables: Any) -> None:
        broken = str(self.stage.folder / f"{job}-is-broken")
        self.stage.launch(job, index, *more, FAULTY_BROKEN=broken, **variables)

    def begin(self) -> None:
        for job, count in (("frozen", 2), ("slow", 3)):
            port = str(free_port())
            for index in range(count):
                self.launch(job, index, str(index), str(count), port)
            self.stage.await_listening(job)
        self.launch("dependency", FAULTY_OTHER=self.service)
        for index in range(3):
            self.launch("replicas", index)
        for job in ("full", "gradual"):
            self.launch(job)
        if self.group is not None:
            self.launch("hog", within=("sh", "-c", f'echo $$ > {self.group}/cgroup.procs && exec "$@"', "sh"))
        self.stage.await_listening()
        self.stage.look_for(QUIET)

    def stop(self) -> None:
        """Breaks all of them."""
        self.broke = self.stage.age
        for job in BREAKS:
            (self.stage.folder / f"{job}-is-broken").touch()
        self.status = 503
        self.stage.processes["frozen", 1].send_signal(signal.SIGSTOP)
        self.replace("full", 0)
        if self.group is not None:
            self.stage.processes["hog", 0].wait(60)
            (self.stage.folder / "hog-is-broken").unlink()
            down = self.stage.age
            self.launch("hog")
            self.stage.await_listening("hog")
            self.is_late = self.stage.age - down > SOON
        self.replace("replicas", 2, python=str(OTHER_JAX), XLA_FLAGS="", FAULTY_OTHER="yes")

    def mend(self, job: str) -> None:
        (self.stage.folder / f"{job}-is-broken").unlink(missing_ok=True)
        match job:
            case "dependency":
                self.status = 200
            case "frozen":
                self.stage.processes["frozen", 1].send_signal(signal.SIGCONT)
            case "full":
                self.replace("full", 0)
            case "replicas":
                self.replace("replicas", 2)

    def replace(self, job: str, index: int, **how: Any) -> None:
        """Replaces a process by one that is ready to serve: a start may take as long as an alert waits."""
        log, before = self.stage.folder / f"{job}-{index}.log", self.stage.processes[job, index]
        gate, seen = self.stage.folder / f"{job}-{index}-{time.monotonic_ns()}", log.read_text().count("ready")
        self.launch(job, index, FAULTY_GATE=str(gate), **how)
        until(lambda: log.read_text().count("ready") > seen, log.read_text)
        before.terminate()
        before.wait()
        gate.touch()


@pytest.fixture(scope="module")
def drill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drill]:
    """A drill whose breaks were all told, and each then mended."""
    with contextlib.ExitStack() as stack:
        drill = Drill(Stage(tmp_path_factory.mktemp("drill"), stack, "--window", "60"))
        drill.begin()
        drill.stop()
        first, *others = (job for job in BREAKS if job != "hog" or drill.group is not None)
        for jobs in ([first], others):
            for job in jobs:
                drill.reports[job] = drill.stage.await_report(job, BREAKS[job].is_named)
            drill.stage.look_for(REST)
            for job in jobs:
                drill.sent[job] = drill.stage.seen.sent(job, drill.broke)
                drill.mend(job)
        yield drill


@pytest.mark.parametrize("job", BREAKS)
def test_a_break_sends_one_notification(drill: Drill, job: str) -> None:
    """A page or a ticket: whatever else fires is of the same fault, and Alertmanager keeps it back."""
    if job not in drill.reports:
        pytest.skip("no control group may be made here")
    late = {"JaxTargetDown"} if job == "hog" and drill.is_late else set()
    assert [alert for _, alert in drill.sent[job] if alert not in late] == [BREAKS[job].alert], drill.sent[job]


@pytest.mark.parametrize("job", BREAKS)
def test_the_report_names_the_break_and_closes_when_it_is_over(drill: Drill, job: str) -> None:
    if job not in drill.reports:
        pytest.skip("no control group may be made here")
    wanted, report = BREAKS[job], drill.reports[job]
    first = report["causes"][0]
    assert (first["id"], first["component"]) == (wanted.cause, wanted.component), report["headline"]
    assert wanted.alert in report["runbooks"] and first["explains_alert"] is True
    if wanted.closes:
        closed = drill.stage.await_report(job, lambda found: found["state"] == "closed")
        assert closed["verification"]["result"] == "recovered", closed["verification"]["because"]
    print(f"| {job} | {', '.join(report['runbooks'])} | {report['verdict']} | {first['id']} | {report['seconds']} |")
