"""A drill: running jobs break in twelve ways, and the agent's report names each, and closes when it is over.

`test_agent_live.py` has more breaks of single programs, all at one time.
`python -m pytest -m alerts tests/ops/agent/test_drill.py -s` prints the rows of docs/agent.md.
"""

import contextlib
import itertools
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.answering import serving
from helpers.live_stage import FACTOR, GROUPS, Stage
from helpers.paths import ROOT
from helpers.requirements import no_control_group
from helpers.waiting import until

from tools import faster
from tools.ports import free_port

pytestmark = [pytest.mark.alerts, pytest.mark.timeout(600)]
OTHER_JAX = ROOT / ".venvs" / "0.9.2-py3.11" / "bin" / "python"
QUIET = 15.0
"""Seconds before the breaks: a quarter of an hour of the rules."""
OLD = 50.0
"""Seconds after which no process is young to the rules: they expect its compilations for 45 minutes."""
SOON = 8.0
"""Seconds of a start that are no ten minutes of the rules."""
REST = 15.0
"""Seconds after a report, in which Alertmanager sends the tickets, and would send all others."""


HARSH = re.compile(
    r"\b(?:delet|remov|eras|wip|format|rm\b|kill|SIGKILL|terminat|end the|evict|drain|cordon|reboot|reset|restart|"
    r"stop\b|roll|scale|take it out)\w*", re.IGNORECASE
)  # fmt: skip
"""Words of steps that end, remove or undo something."""
CLOCKS = 0.5
"""Seconds by which the times of Prometheus and of the drill may differ: two clocks of one machine are read in turn."""


def waits(alert: str) -> float:
    """Returns the seconds for which a rule's expression holds before the alert fires, on the faster clock."""
    rules = [rule for group in GROUPS for rule in group["rules"] if rule.get("alert") == alert]
    return min(faster.milliseconds(each["for"]) for each in rules) / 1000 / FACTOR


@dataclass
class Break:
    """A break of a job, and what has to come of it."""

    alert: str
    """The one that a person gets, once, and no other."""
    cause: str
    component: str
    do: str
    """Words of the first thing to do, as the report says it."""
    rules: int = 1
    """Rules of the alert that fire while the break lasts: each may make a notification, and nothing repeats one."""
    harsh: frozenset[str] = frozenset()
    """Words of steps that end or remove something, which this fault justifies."""
    rest: float = 0.0
    """Seconds for which the process counts what is over, by its own clock, which no faster clock shortens."""

    def is_named(self, report: dict[str, Any]) -> bool:
        """Returns whether a report names the break first, and has its alert; of a killed process, only which it is."""
        first = [(each["id"], each["component"]) for each in report["causes"][:1]]
        first = first or [("", each) for each in report["blast_radius"]["unreachable"][:1]]
        return first == [(self.cause, self.component)] and self.alert in report["runbooks"]


BREAKS = {
    "frozen": Break(
        "JaxProcessStuck", "process_stuck", "frozen-1", "see whether it still runs",
        harsh=frozenset({"restart", "sigkill", "stop", "take it out"}),
    ),
    "full": Break("JaxEventLogDiskFull", "disk_full", "full-0", "Free space"),
    "gradual": Break("JaxInputBound", "input_bound", "gradual-0", "Prefetch"),
    "hog": Break("JaxLastExitKilled", "host_out_of_memory", "hog-0", "more memory", harsh=frozenset({"restart"})),
    "replicas": Break(
        "JaxRequestErrorsHigh", "version_skew", "replicas-2", "one image", harsh=frozenset({"restart", "roll"})
    ),
    "slow": Break(
        "JaxStraggler", "straggler", "slow-2", "a host is slow", harsh=frozenset({"restart", "take it out"})
    ),
    "dependency": Break(
        "JaxSloRequestAvailabilityBurn", "dependency_unavailable", "dependency-0", "the service runs", rest=60.0,
        rules=2, harsh=frozenset({"roll", "take it out"}),
    ),
    "kept": Break("JaxArrayLeak", "memory_leak", "kept-0", "Take a checkpoint", harsh=frozenset({"restart"})),
    "killed": Break(
        "JaxTargetDown", "", "killed-1", "the process ended", harsh=frozenset({"remove", "restart", "take it out"})
    ),
    "nan": Break(
        "JaxLossNonFinite", "nonfinite_values", "nan-1", "last good checkpoint", harsh=frozenset({"restart", "stop"})
    ),
    "readonly": Break(
        "JaxPersistentCacheNotSaving", "cache_unusable", "readonly-0", "Leave the job alone",
        harsh=frozenset({"delete"}),  # entries of the cache: the next process makes them again
    ),
    "sizes": Break("JaxRecompilationStorm", "recompilation", "sizes-0", "deployment", harsh=frozenset({"roll"})),
}  # fmt: skip
BRIEF = ("frozen", "dependency")
"""Breaks that are mended first: JAX ends a frozen process's peer after 100 s, and an objective that fails for a minute
fires over windows of hours for as long as the test lasts."""
HALVES = (tuple(BREAKS)[:7], tuple(BREAKS)[7:])
"""Jobs that run at one time: between programs and around them, and in programs."""
COUNTS = {"frozen": 2, "slow": 3, "replicas": 3, "killed": 2, "nan": 2}
"""Processes of a job, if it has several."""


@contextlib.contextmanager
def control_group(refused: list[OSError]) -> Iterator[Path | None]:
    """Yields a control group that allows half a GB; None where none may be made, for the reasons in `refused`."""
    for parent, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(parent) / f"jaxobs-drill-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text("500000000")
        except OSError as error:
            refused.append(error)
            with contextlib.suppress(OSError):
                group.rmdir()
            continue
        yield group
        group.rmdir()
        return
    yield None


class Drill:
    """The jobs, their breaks, and what ends these."""

    def __init__(self, stage: Stage, jobs: tuple[str, ...]) -> None:
        self.stage, self.jobs = stage, jobs
        self.status = 200
        self.reports: dict[str, dict[str, Any]] = {}
        self.sent: dict[str, list[tuple[str, str]]] = {}
        self.broke = 0.0
        self.is_late = False
        """Whether the one that takes the killed one's place took so long that its target is told, too."""
        self.refused: list[OSError] = []
        self.group = stage.stack.enter_context(control_group(self.refused))
        self.service = stage.stack.enter_context(serving(lambda _: self.status))

    def launch(self, job: str, index: int = 0, *more: str, **variables: Any) -> None:
        broken = str(self.stage.folder / f"{job}-is-broken")
        self.stage.launch(job, index, *more, FAULTY_BROKEN=broken, **variables)

    def begin(self) -> None:
        for job in self.jobs:
            count, port = COUNTS.get(job, 1), str(free_port())
            is_one = job in ("frozen", "slow")
            other = {"dependency": self.service, "nan": "yes"}.get(job)
            for index in range(count):
                more = (str(index), str(count), port) if is_one else ()
                variables = {"FAULTY_OTHER": other} if other and index == count - 1 else {}
                within = ("sh", "-c", f'echo $$ > {self.group}/cgroup.procs && exec "$@"', "sh") if job == "hog" else ()
                if job != "hog" or self.group is not None:
                    self.launch(job, index, *more, within=within, **variables)
            if is_one:
                self.stage.await_listening(job)
        self.stage.await_listening()
        self.stage.look_for(QUIET if "frozen" in self.jobs else OLD)

    def stop(self) -> None:
        """Breaks all of them."""
        self.broke = self.stage.age
        for job in self.jobs:
            (self.stage.folder / f"{job}-is-broken").touch()
        if "killed" in self.jobs:
            self.stage.processes["killed", 1].kill()
            return
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
        self.status = 503

    def mend(self, job: str) -> None:
        (self.stage.folder / f"{job}-is-broken").unlink(missing_ok=True)
        match job:
            case "dependency":
                self.status = 200
            case "frozen":
                self.stage.processes["frozen", 1].send_signal(signal.SIGCONT)
            case "full":
                self.replace("full", 0)
            case "killed":
                self.launch("killed", 1)
            case "replicas":
                self.replace("replicas", 2)

    def play(self) -> None:
        """Begins, breaks, and mends each job after its report and what Alertmanager sends then."""
        self.begin()
        self.stop()
        broken = [job for job in self.jobs if job != "hog" or self.group is not None]
        for jobs in filter(None, ([job for job in broken if (job in BRIEF) is first] for first in (True, False))):
            for job in jobs:
                self.reports[job] = self.stage.await_report(job, BREAKS[job].is_named)
            self.stage.look_for(REST)
            for job in jobs:
                self.sent[job] = self.stage.seen.sent(job, self.broke)
                self.mend(job)

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
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[tuple[str, ...]], Drill]]:
    """Plays a half: its breaks are told, and each is mended then. Another one ends before."""
    played: dict[tuple[str, ...], Drill] = {}
    with contextlib.ExitStack() as stack:

        def drill(half: tuple[str, ...]) -> Drill:
            if half not in played:
                stack.close()
                folder = tmp_path_factory.mktemp("drill")
                played[half] = Drill(Stage(folder, stack, "--window", "60"), half)
                played[half].play()
            return played[half]

        yield drill


@pytest.mark.parametrize(
    ("half", "job"), [pytest.param(half, job, id=job) for half in HALVES for job in half],
)  # fmt: skip
def test_a_break_is_told_once_and_named_and_closed(
    play: Callable[[tuple[str, ...]], Drill], half: tuple[str, ...], job: str
) -> None:  # fmt: skip
    """Alertmanager keeps back all else that fires of the same fault; the incident ends when the break is over."""
    drill = play(half)
    if job not in drill.reports:
        no_control_group(drill.refused)
    wanted, report = BREAKS[job], drill.reports[job]
    late = {"JaxTargetDown"} if job == "hog" and drill.is_late else set()
    sent = [alert for _, alert in drill.sent[job] if alert not in late]
    assert set(sent) == {wanted.alert} and len(sent) <= wanted.rules, drill.sent[job]
    first = drill.stage.seen.firing(job)[wanted.alert]
    assert first.starts - drill.broke > waits(wanted.alert) - CLOCKS, "sooner than its rule allows"
    assert wanted.is_named(report), report["headline"]
    assert wanted.do in report["do_now"][0], report["do_now"]
    harsh = {word.lower() for step in report["do_now"] for word in HARSH.findall(step)}
    assert harsh <= wanted.harsh, report["do_now"]
    assert all(each["explains_alert"] is True for each in report["causes"][:1])
    drill.stage.look_for(wanted.rest)
    closed = drill.stage.await_report(job, lambda found: found["state"] == "closed")
    assert closed["verification"]["result"] == "recovered", closed["verification"]["because"]
    drill.stage.await_report(job, lambda found: any(each["about"] == "closed" for each in found["deliveries"]))
    messages = drill.stage.seen.by_agent(job)
    assert [about for about, *_ in messages].index("closed") == len(messages) - 1, messages
    assert wanted.cause in {cause for _, _, cause in messages}, messages
    assert all(one != other for one, other in itertools.pairwise(messages)), "no message says the same again"
    cause = wanted.cause or "none named"
    print(f"| {job} | {', '.join(report['runbooks'])} | {report['verdict']} | {cause} | {report['seconds']} |")
