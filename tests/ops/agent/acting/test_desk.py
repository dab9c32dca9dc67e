"""The gates before an action: each one shuts by itself, and whatever is decided is on record."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from jaxobs.base.errors import ParameterError
from jaxobs.facts.loops import LoopState
from jaxobs.facts.memory import DeviceMemory
from jaxobs.facts.snapshot import Snapshot
from jaxobs.ops.agent.acting import desk, processes, record
from jaxobs.ops.agent.acting.actions import ACTIONS, Around, Plan, RefusedError, Request
from jaxobs.ops.agent.acting.policy import Name, Policy, WarmCache
from jaxobs.ops.agent.acting.record import Record
from jaxobs.ops.captures import Outcome

URL = "http://10.0.0.1:9464"
ALL = Policy(allow=("A1", "A2"), dry_run=False)
WARMING = Policy(
    allow=("A1", "A2"), dry_run=False, warm_cache=WarmCache(event_log="/e.jsonl", cache_dir="/c", script="t.py")
)
PROFILE = Request(action="capture_profile", actor="rule:straggler", target=URL, job="train", incident="i1")
WARM = dataclasses.replace(PROFILE, action="warm_cache")
START = 1_800_000_000.0


class Scene:
    """A desk whose actions only note that they were done, and a clock."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.now = START
        self.done: list[str] = []
        self.outcome = Outcome("done", "5 steps.", "/captures/1")
        self.inside: Callable[[Callable[[], bool]], object] = lambda stopped: None
        self.record = Record(folder, lambda: self.now)
        self.snapshot: Snapshot | None = None
        self.looks = 0
        for name, action in ACTIONS.items():
            monkeypatch.setitem(ACTIONS, name, dataclasses.replace(action, plan=self.planning(name, action.plan)))
        monkeypatch.setattr(processes, "look", self.look)
        monkeypatch.setattr(processes, "PATIENCE", 0.0)

    def look(self, url: str) -> Snapshot:
        """The process steps on, ten steps from one look to the next."""
        self.looks += 1
        shown = self.snapshot or stepping(self.now)
        return dataclasses.replace(
            shown, loops=[dataclasses.replace(each, steps=10 * self.looks) for each in shown.loops]
        )

    def planning(self, name: str, plan: Callable[[Request, Around], Plan]) -> Callable[[Request, Around], Plan]:
        """Plans as the action does, and only notes that it was done."""

        def run(stopped: Callable[[], bool]) -> Outcome:
            self.done.append(name)
            self.inside(stopped)
            return self.outcome

        return lambda request, around: dataclasses.replace(plan(request, around), run=run)

    def desk(self, policy: Policy = ALL) -> desk.Desk:
        return desk.Desk(directory=self.folder, policy=policy, targets=lambda job: [URL], clock=lambda: self.now)

    def ask(self, policy: Policy = ALL, request: Request = PROFILE, processes: int = 1) -> desk.Decision:
        urls = [URL, *(f"http://10.0.0.{number}:9464" for number in range(2, processes + 1))]
        made = dataclasses.replace(self.desk(policy), targets=lambda job: urls if job == "train" else [])
        return made.request(request)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / record.NAME).read_text().splitlines()]


def changed(policy: Policy, **fields: Any) -> Policy:
    return Policy.model_validate({**policy.model_dump(), **fields})


def stepping(now: float, seconds: float = 0.1, **more: Any) -> Snapshot:
    """A process whose loop has just ended a step."""
    loop = LoopState(name="train", found=False, ended=now, p50_seconds=seconds, recent=(seconds,) * 9)
    fields = {each.name: () for each in dataclasses.fields(Snapshot)}
    return Snapshot(**{**fields, "wall": None, "loops": (loop,), **more})


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path / "reports", monkeypatch)


def test_what_is_allowed_is_done_and_recorded(scene: Scene) -> None:
    decision = scene.ask()
    assert (decision.decision, decision.path) == ("done", "/captures/1")
    begun, done = scene.lines()
    assert (begun["decision"], done["decision"]) == ("begun", "done")
    assert done["outcome"] == {"result": "done", "detail": "5 steps.", "path": "/captures/1"}
    for line in (begun, done):
        assert line["action"] == "capture_profile" and line["class"] == "A1" and line["target"] == URL
        assert line["actor"] == "rule:straggler" and line["incident"] == "i1" and line["id"] == decision.plan
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", line["time"])
    assert (scene.folder / record.NAME).stat().st_mode & 0o777 == 0o600


GATES: dict[str, tuple[Policy, Request, str]] = {
    "default": (Policy(), PROFILE, "does not allow"),
    "class": (Policy(allow=("A1",), dry_run=False), dataclasses.replace(PROFILE, action="warm_cache"), "not allow"),
    "action": (changed(ALL, actions=("dump_memory",)), PROFILE, "does not allow"),
    "unknown": (ALL, dataclasses.replace(PROFILE, action="kill"), "There is no action `kill`"),
    "jobs": (changed(ALL, jobs=("serve-.*",)), PROFILE, "does not name this job"),
    "part of a name": (changed(ALL, jobs=("trai",)), PROFILE, "does not name this job"),
    "opted out": (changed(ALL, opt_out=("tra*",)), PROFILE, "opted out"),
    "opted out target": (changed(ALL, opt_out=("http://10.0.0.1*",)), PROFILE, "opted out"),
    "other target": (ALL, dataclasses.replace(PROFILE, target="http://10.0.0.9:9464"), "knows no such process"),
    "no target": (ALL, dataclasses.replace(PROFILE, target=""), "knows no such process"),
    "other job": (ALL, dataclasses.replace(PROFILE, job="other"), "knows no such process"),
    "maintenance": (changed(ALL, maintenance=[{"begin": START - 9, "end": START + 9}]), PROFILE, "maintenance until"),
    "nothing to warm": (ALL, dataclasses.replace(PROFILE, action="warm_cache"), "no `[warm_cache]`"),
}  # fmt: skip


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_refuses_by_itself(scene: Scene, gate: str) -> None:
    """Nothing is done, and the refusal is on record with its reason."""
    policy, request, why = GATES[gate]
    decision = scene.ask(policy, request)
    assert decision.decision == "refused" and why in decision.reason and scene.done == []
    (line,) = scene.lines()
    assert line["decision"] == "refused" and why in line["reason"]


def test_a_dry_run_names_the_plan(scene: Scene) -> None:
    decision = scene.ask(Policy(allow=("A1",)))
    assert decision.decision == "planned" and scene.done == []
    assert f"POST {URL}/api/v1/actions/profile with steps=5" in decision.reason
    assert [line["decision"] for line in scene.lines()] == ["planned"]


def test_the_kill_switch(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file and the variable stop everything, each alone; they also end what is under way."""
    scene.record.stop("mia")
    assert "kill switch" in scene.ask().reason and scene.done == []
    assert scene.record.resume("mia")
    monkeypatch.setenv(record.STOP_VARIABLE, "1")
    assert "kill switch" in scene.ask().reason and not scene.record.resume("mia")
    monkeypatch.delenv(record.STOP_VARIABLE)
    seen: list[bool] = []
    scene.inside = lambda stopped: (seen.append(stopped()), scene.record.stop("mia"), seen.append(stopped()))
    assert scene.ask().decision == "done" and seen == [False, True]


def test_cool_down_and_limits(scene: Scene) -> None:
    assert scene.ask().decision == "done"
    scene.now += 1799
    assert "cool-down is 1800 s" in scene.ask().reason
    memory = dataclasses.replace(PROFILE, action="dump_memory")
    assert scene.ask(request=memory).decision == "done", "the cool-down is of one action"
    elsewhere = dataclasses.replace(PROFILE, target="http://10.0.0.2:9464")
    assert "1 of the job's 10 processes" in scene.ask(request=elsewhere, processes=10).reason
    assert scene.ask(request=elsewhere, processes=20).decision == "done"
    scene.now += 1
    assert scene.ask(processes=20).decision == "done"
    few = changed(ALL, per_job_an_hour=4, cooldown_seconds={"dump_memory": 1.0})
    scene.now += 2
    assert "`per_job_an_hour` is 4" in scene.ask(few, memory).reason
    scene.now += 3600
    assert scene.ask(few, memory).decision == "done"
    assert len(scene.done) == 5


def test_one_at_a_time(scene: Scene) -> None:
    inner: list[desk.Decision] = []
    scene.inside = lambda stopped: inner.append(scene.ask())
    assert scene.ask().decision == "done"
    assert inner[0].decision == "refused" and "only one runs at a time" in inner[0].reason
    assert [line["decision"] for line in scene.lines()] == ["begun", "refused", "done"]
    scene.inside = lambda stopped: None
    scene.now += 7200
    scene.record.add(decision="begun", id="x", action="warm_cache", job="else")
    scene.now += 60
    assert "`warm_cache` began 60 s ago" in scene.ask().reason
    scene.now += 7200
    assert scene.ask().decision == "done"


def test_another_process_has_the_desk(scene: Scene, tmp_path: Path) -> None:
    scene.folder.mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", "import sys; from jaxobs.base.files.claim import Claim; Claim(sys.argv[1]).take();"
         " print('held', flush=True); sys.stdin.read()", str(scene.folder / record.NAME)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        decision = scene.ask()
        assert decision.decision == "refused" and f"An action of process {holder.pid}" in decision.reason
    finally:
        holder.communicate()
    assert scene.ask().decision == "done"


def test_the_breaker_opens_and_only_a_person_closes_it(scene: Scene) -> None:
    scene.outcome = Outcome("failed", "no")
    patient = changed(ALL, failures=2, cooldown_seconds={"capture_profile": 1.0}, per_job_an_hour=100)

    def ask() -> desk.Decision:
        scene.now += 10
        return scene.ask(patient)

    assert ask().decision == "failed"
    scene.outcome = Outcome("done")
    assert ask().decision == "done"
    scene.outcome = Outcome("failed", "no")
    assert [ask().decision for _ in range(2)] == ["failed", "failed"]
    scene.now += 30 * 86_400
    assert "The breaker is open" in ask().reason
    assert scene.record.reset("mia") == 2
    assert ask().decision == "failed", "closed again"
    assert scene.lines()[-3]["actor"] == "human:mia"


def test_an_error_inside_an_action_is_a_failure(scene: Scene) -> None:
    scene.inside = lambda stopped: 1 / 0
    decision = scene.ask()
    assert decision.decision == "failed" and "ZeroDivisionError" in decision.reason
    assert [line["decision"] for line in scene.lines()] == ["begun", "failed"]


def test_what_changes_something_needs_an_approval_of_exactly_that(scene: Scene) -> None:
    first = scene.ask(WARMING, WARM)
    assert first.decision == "approval_wanted" and f"jaxobs agent approve {first.plan}" in first.reason
    assert scene.ask(WARMING, WARM) == first and scene.done == []
    assert [line["decision"] for line in scene.lines()] == ["approval_wanted"], "a repetition is no further question"
    (waiting,) = scene.record.waiting().values()
    assert waiting["plan"] == "Run `jaxobs cache warm /e.jsonl --cache-dir /c --script t.py`."
    with pytest.raises(ParameterError, match="No plan `0123` waits"):
        scene.record.decide("0123", True, "mia")
    scene.record.decide(first.plan, True, "mia")
    assert scene.desk(WARMING).approved() == [WARM], "the agent asks again for what was approved"
    other = changed(WARMING, warm_cache=WarmCache(event_log="/e.jsonl", cache_dir="/d"))
    assert scene.ask(other, WARM).decision == "approval_wanted", "of another plan"
    asked = {"action": "warm_cache", "target": URL, "job": "train", "incident": "i1"}
    scene.record.add(decision="approved", id=first.plan, actor="human:mia", **asked)
    assert scene.ask(other, WARM).decision == "approval_wanted", "of the plan before"
    scene.record.decide(scene.ask(WARMING, WARM).plan, True, "mia")
    assert scene.ask(WARMING, dataclasses.replace(WARM, incident="i2")).decision == "approval_wanted"
    scene.now += 29 * 60
    assert scene.ask(WARMING, WARM).decision == "done"
    assert scene.desk(WARMING).approved() == []
    assert scene.lines()[-1]["approval"] == "human:mia" and scene.done == ["warm_cache"]
    scene.now += 2 * 86_400
    again = scene.ask(WARMING, WARM)
    assert again.decision == "approval_wanted", "an approval is used up"
    scene.record.decide(again.plan, True, "mia")
    scene.now += 31 * 60
    assert scene.ask(WARMING, WARM).decision == "approval_wanted", "an approval gets old"
    assert scene.record.decide(again.plan, False, "mia") == waiting["plan"] and again.plan not in scene.record.waiting()
    assert scene.ask(WARMING, WARM).decision == "approval_wanted" and scene.done == ["warm_cache"]


def test_an_approval_holds_from_when_it_was_given(scene: Scene) -> None:
    """A person may answer hours after the question: the policy's minutes begin with the answer."""
    plan = scene.ask(WARMING, WARM).plan
    scene.now += 2 * 3600
    scene.record.decide(plan, True, "mia")
    scene.now += 29 * 60
    assert scene.desk(WARMING).approved() == [WARM]
    assert scene.ask(WARMING, WARM).decision == "done" and scene.done == ["warm_cache"]


FULL = DeviceMemory(time=START, device="gpu:3", in_use_bytes=99, limit_bytes=100)


@pytest.mark.parametrize(
    ("age", "fields", "why"),
    [
        (60, {}, "it may hang"),
        (0, {"in_progress": (object(),)}, "is in `compile`"),
        (0, {"wall": SimpleNamespace(category="checkpoint")}, "is in `checkpoint`"),
        (0, {"devices": (SimpleNamespace(device="gpu:3", memory=FULL),)}, "2% of the memory of gpu:3"),
    ],
)
def test_a_bad_moment(scene: Scene, age: float, fields: dict[str, Any], why: str) -> None:
    """A process that compiles, saves, hangs or has no memory left is left alone."""
    scene.snapshot = stepping(scene.now - age, **fields)
    assert why in scene.ask().reason and scene.done == []


@pytest.mark.parametrize(("busy", "decision"), [(3, "done"), (10_000, "refused")])
def test_a_process_that_compiles_in_each_step_has_moments_between(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, busy: int, decision: str
) -> None:
    said = iter(["It compiles."] * busy + [None] * 10)
    monkeypatch.setattr(processes, "PATIENCE", 1.0)
    monkeypatch.setattr(processes, "PAUSE", 0.05)
    monkeypatch.setattr(processes, "_unsuitable", lambda snapshot, now: next(said))
    found = scene.ask()
    assert found.decision == decision, found.reason


def test_slower_steps_afterwards_are_a_failure(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    monkeypatch.setattr(processes.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(processes.time, "sleep", lambda seconds: None)
    recent = {"each": (0.1,) * 9, "made": 3}
    steps = itertools.count(100)

    def look(url: str) -> Snapshot:
        number = 100 + (next(steps) - 100) * int(recent["made"])
        loop = LoopState(
            name="train", found=False, ended=scene.now, p50_seconds=0.1, recent=recent["each"], steps=number
        )
        return stepping(scene.now, loops=(loop,))

    monkeypatch.setattr(processes, "look", look)
    recent["each"] = (5.0, 5.0, 5.0) + (0.1,) * 6
    assert scene.ask().decision == "done", "six steps since, as fast as before; the slow ones were earlier"
    scene.now += 3600
    recent["each"] = (0.1,) * 3 + (0.2,) * 6
    decision = scene.ask()
    assert decision.decision == "failed" and "Steps take 0.2 s since, and took 0.1 s before" in decision.reason
    assert decision.path == "/captures/1"
    scene.now += 3600
    recent["made"] = 0
    decision = scene.ask()
    assert decision.decision == "failed" and "It made 0 steps since, and a typical one took 0.1 s" in decision.reason
    assert processes.slower(URL, 60.0, 1.5) is None, "nobody waits for five steps of minutes"

    def gone(url: str) -> Snapshot:
        raise RefusedError("It is gone.")

    monkeypatch.setattr(processes, "look", gone)
    assert processes.slower(URL, 0.1, 1.5) == "Afterwards: It is gone."


def test_an_approval_is_good_for_one_attempt(scene: Scene) -> None:
    plan = scene.ask(WARMING, WARM).plan
    assert scene.desk(WARMING).approved() == []
    scene.record.decide(plan, True, "mia")
    assert scene.desk(WARMING).approved() == [WARM]
    scene.record.stop("mia")
    assert "kill switch" in scene.ask(WARMING, WARM).reason
    scene.record.resume("mia")
    assert scene.desk(WARMING).approved() == [], "it was tried"
    assert scene.ask(WARMING, WARM).decision == "approval_wanted" and scene.done == []
    scene.record.decide(plan, True, "mia")
    assert scene.desk(WARMING).approved() == [WARM]
    other = changed(WARMING, warm_cache=WarmCache(event_log="/e.jsonl", cache_dir="/d"))
    assert scene.ask(other, WARM).decision == "approval_wanted"
    assert scene.desk(other).approved() == [], "the plan is another one by now"


def test_nothing_is_done_that_cannot_be_recorded(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MOST_BYTES", 10)
    decision = scene.ask()
    assert decision.decision == "refused" and "cannot be written" in decision.reason and scene.done == []


def test_the_record_is_bounded_and_tells_no_secrets(scene: Scene) -> None:
    hostile = dataclasses.replace(
        PROFILE, action="x" * 9999, why='a\n{"decision": "approved"}\u2028\x1b[31m Bearer abc token=s3cret'
    )
    scene.ask(request=hostile)
    (line,) = scene.lines()
    assert len(line["action"]) <= record.MOST_TEXT and not re.search(r"[\x00-\x1f\u2028]", line["why"])
    assert "abc" not in line["why"] and "s3cret" not in line["why"]


def test_every_action_declares_its_bounds() -> None:
    """There is no class for what destroys, and what has no bound is no action."""
    assert set(ACTIONS) == set(get_args(Name))
    for name, action in ACTIONS.items():
        assert action.name == name and action.kind in ("A1", "A2")
        assert 0 < action.seconds <= 3600 and action.cooldown >= action.seconds
        assert action.about.endswith(".") and action.verify.endswith(".")


def test_only_what_the_policy_allows_is_registered(tmp_path: Path) -> None:
    def names(policy: Policy) -> set[str]:
        return set(desk.Desk(directory=tmp_path, policy=policy, targets=lambda job: []).actions)

    assert names(Policy()) == set()
    assert names(Policy(allow=("A1",))) == {"capture_profile", "collect_bundle", "dump_memory"}
    assert names(Policy(allow=("A1", "A2"), actions=("dump_memory",))) == {"dump_memory"}
    assert names(Policy(allow=("A1", "A2"), actions=())) == set()
