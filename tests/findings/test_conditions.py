"""Findings in the state of a process: from states and events made by hand, and in real programs."""

import dataclasses
import re
from typing import Any

import pytest
from helpers.condition_scenes import NOW, found, scene
from helpers.made_by_hand import compilation

from jaxobs.facts.compilations import CacheLookup, CacheState, OpenCompilation
from jaxobs.facts.errors import Error, OomCause, OutOfMemory
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import FunctionState, Histogram, ProgramState
from jaxobs.facts.inputs import InputState
from jaxobs.facts.loops import HostLine, HostWait, LoopState
from jaxobs.facts.numbers import NonFinite, WatchedState
from jaxobs.facts.requests import AnsweringLine, Latency, RecentRequests, RequestCompilation, RequestRecord, RouteState
from jaxobs.facts.steps import Step
from jaxobs.facts.transfers import TransferState
from jaxobs.facts.wall import HostCallback, HostWork, TimeState
from jaxobs.findings import all_kinds
from jaxobs.findings.cases import Scene
from jaxobs.findings.standing import Standing


def histogram(count: int, total: float) -> Histogram:
    return Histogram(bounds=(1.0,), counts=(count, 0), sum=total)


def test_a_process_that_did_nothing_has_none() -> None:
    assert found() == []
    assert found(
        loops=(LoopState(name="train", steps=10_000, seconds=histogram(10_000, 900.0)),),
        watched=(WatchedState(name="loss", calls=10_000, checked=10_000, nonfinite=0, finite=True),),
        routes=(RouteState(route="/predict", requests={"false": {"ok": 500}}, seconds={"false": histogram(500, 5.0)}),),
        functions=(FunctionState(name="train.step", phase_seconds={"compile": 12.0}),),
    ) == []  # fmt: skip


# -------------------------------------------------------------------------------------------------- numbers

NAN = NonFinite(
    time=NOW - 60, name="loss", what="nan", step=151, program_step=152, last_finite_step=150, nans=1, dtype="float32",
    call_site="train.py:41",
)  # fmt: skip


def test_a_loss_that_is_nan() -> None:
    state = WatchedState(name="loss", calls=238, checked=238, nonfinite=137, finite=False, step=151)
    (finding,) = found({"nonfinite": (NAN,)}, watched=(state,))
    assert finding.finding == "nonfinite_values" and finding.severity == "critical"
    assert finding.summary == "`loss` was NaN in 137 of 238 checked values, and still is; first at call 151."
    assert finding.where == "train.py:41" and finding.count == 137
    assert finding.advice.startswith("Return to a checkpoint from before it.")


def test_a_scaled_loss_that_overflowed_once_is_a_warning() -> None:
    """A loss scale makes the gradients infinite now and then, which is how it finds its value."""
    state = WatchedState(name="grads", calls=5000, checked=5000, nonfinite=2, finite=True)
    event = dataclasses.replace(NAN, name="grads", what="inf")
    (finding,) = found({"nonfinite": (event,)}, watched=(state,))
    assert finding.severity == "warning"
    assert "infinite in 2 of 5,000" in finding.summary and "finite again" in finding.summary
    assert "checkpoint" not in finding.advice


def test_one_that_was_reported_before_the_process_was_killed() -> None:
    """The log has the event, and no state after it."""
    (finding,) = found({"nonfinite": (NAN,)})
    assert finding.summary == "`loss` became NaN; first at call 151."
    raised = dataclasses.replace(NAN, name="div", source="debug_nans", step=None)
    (finding,) = found({"nonfinite": (raised,)})
    assert finding.summary == "`jax_debug_nans` stopped the program at `div`: its result is NaN."


def test_what_a_loop_returns_is_nan() -> None:
    """The function, and which part of its result where there are several scalars."""
    for path, says in (("", "The result of `m.step`"), ("['loss']", "`['loss']` in the result of `m.step`")):
        event = dataclasses.replace(NAN, name=f"m.step(){path}", source="loop", step=None, exact=False)
        state = WatchedState(name=event.name, calls=310, checked=10, nonfinite=7, finite=False)
        (finding,) = found({"nonfinite": (event,)}, watched=(state,))
        assert finding.summary == f"{says} was NaN in 7 of 10 checked values, and still is."
        assert finding.severity == "critical" and finding.where == "train.py:41"
        (finding,) = found({"nonfinite": (event,)})
        assert finding.summary == f"{says} became NaN."


# ---------------------------------------------------------------------------------------------------- steps


def waiting(**more: Any) -> tuple[LoopState, ...]:
    """A loop whose host reads a value in each step: 2,000 steps of 10 ms."""
    wait = HostWait(**({"share": 0.6, "idle_share": 0.4, "looks": 50, "where": "train.py:41"} | more))
    return (LoopState(name="train", steps=2000, mean_seconds=0.01, host_wait=wait),)


def test_a_host_that_waits_in_each_step() -> None:
    (finding,) = found(loops=waiting())
    assert (finding.finding, finding.severity, finding.where) == ("host_sync", "info", "train.py:41")
    assert "60% of the steps' time" in finding.summary and "idle up to 40% of the time" in finding.summary
    assert finding.seconds == pytest.approx(8.0)
    assert finding.evidence[0].startswith("In 30 of 50 looks ")
    (finding,) = found(loops=waiting(), wall=spent(15.0, init=5.0, step=10.0))
    assert finding.seconds == pytest.approx(4.0), "the latest steps are longer than all were"


def test_arguments_that_are_copied_in_each_step() -> None:
    (finding,) = found(loops=(LoopState(name="train", steps=500, mean_seconds=0.1, bytes_again=2 * 10**8),))
    assert (finding.finding, finding.subject, finding.seconds) == ("host_bound", "arguments", pytest.approx(10.0))
    assert "190.7 MiB" in finding.summary and "at least 20% of a step's time" in finding.summary
    for mean, steps, size in ((0.1, 500, 2 * 10**7), (1.0, 500, 2 * 10**8), (0.1, 20, 2 * 10**8), (None, 500, 10**9)):
        assert not found(loops=(LoopState(name="train", steps=steps, mean_seconds=mean, bytes_again=size),))


def test_a_host_that_waits_and_costs_little_is_none() -> None:
    assert not found(loops=waiting(share=0.95, idle_share=0.05))
    line = HostLine(line="train.py:9", category="idle", seconds=40.0, share=0.4)
    held = found(
        loops=tuple(dataclasses.replace(each, lines=(line,)) for each in waiting()),
        wall=spent(60.0, step=60.0, idle=40.0),
    )
    assert [each.finding for each in held] == ["host_bound"], "what the devices are idle for is reported already"
    assert not found(loops=tuple(dataclasses.replace(each, steps=200) for each in waiting()))
    assert not found(loops=tuple(dataclasses.replace(each, host_wait=None) for each in waiting()))


def slow(number: int, seconds: float = 0.5, **more: Any) -> Step:
    """A slow step of a loop whose steps take 10 ms."""
    return Step(
        time=NOW, loop="train", count=1, last=number, seconds=seconds, least_seconds=seconds, most_seconds=seconds,
        median_seconds=seconds, slow=True, typical_seconds=0.01, **more,
    )  # fmt: skip


def spent(wall: float, **seconds: float) -> TimeState:
    """Seconds of a process by category."""
    return TimeState(
        seconds=seconds, counted=seconds, category="step", wall_seconds=wall, started=NOW - wall, steps=1, goodput=None,
        lost={},
    )  # fmt: skip


def loop(steps: int, seconds: float, slow_steps: int) -> tuple[LoopState, ...]:
    return (LoopState(name="train", steps=steps, slow=slow_steps, seconds=histogram(steps, seconds)),)


@pytest.mark.parametrize(
    ("more", "says", "do"),
    [
        ([{}] * 10, "every 50 steps", "Check what the program does every 50 steps"),
        ([{"outside_seconds": 0.45}] * 10, "passed before the step began", "`jaxobs.data(loader)`"),
        ([{"compilations": 1, "functions": ("f",)}] * 10, "10 of 10 compiled something", "Stop the recompilations"),
    ],
)
def test_slow_steps_and_what_they_have_in_common(more: list[dict[str, Any]], says: str, do: str) -> None:
    steps = [slow(50 * (number + 1), **each) for number, each in enumerate(more)]
    (finding,) = found({"steps": steps}, loops=loop(500, 10.0, 10))
    assert (finding.finding, finding.function, finding.seconds) == ("slow_steps", "train", pytest.approx(4.9))
    assert finding.summary.startswith("10 of 500 steps of `train` took more than 3 times the typical 10 ms, 4.9 s more")
    assert says in finding.summary and do in finding.advice
    assert finding.data["functions"] == (["f"] if "compilations" in more[0] else [])
    assert finding.severity == ("info" if "outside_seconds" in more[0] else "warning")


@pytest.mark.parametrize(("waited", "wall", "kinds"), [
    (4.5, 40.0, ["input_pauses"]), (4.5, 400.0, []), (1.0, 40.0, ["slow_steps"]),
])  # fmt: skip
def test_pauses_of_the_input_are_no_slow_steps(waited: float, wall: float, kinds: list[str]) -> None:
    """As at the beginning of each epoch: they are information where they cost time, and nothing elsewhere."""
    steps = [slow(50 * (number + 1), outside_seconds=0.45) for number in range(10)]
    told = found({"steps": steps}, loops=loop(500, 10.0, 10), wall=spent(wall, input_wait=waited))
    assert [each.finding for each in told] == kinds
    assert {each.severity for each in told} <= {"info"}
    if kinds == ["input_pauses"]:
        assert "waited 490 ms for its input on average, 4.9 s in total" in told[0].summary


def test_slow_steps_at_no_regular_distance() -> None:
    steps = [slow(number) for number in (3, 47, 180, 181, 377)]
    (finding,) = found({"steps": steps}, loops=loop(500, 10.0, 5))
    assert "every" not in finding.summary and "profile" in finding.advice


def test_few_or_short_slow_steps_are_none() -> None:
    assert found({"steps": [slow(1), slow(2)]}, loops=loop(500, 10.0, 2)) == []
    assert found({"steps": [slow(n, 0.12) for n in range(5)]}, loops=loop(500, 10.0, 5)) == []
    assert found({"steps": [slow(n) for n in range(5)]}, loops=loop(90_000, 900.0, 5)) == []


# ------------------------------------------------------------------------------------------------- requests


def route(cold: int, seconds: float, cause: str = "shape", **more: Any) -> RouteState:
    compiled = RequestCompilation(function="serve.predict", cause=cause, reason="`x` grew.", cache="miss", seconds=3.0)
    record = RequestRecord(time=NOW, seconds=4.0, outcome="ok", cold="true", compilations=1, compiled=(compiled,))
    known: dict[str, Any] = {
        "requests": {"true": {"ok": cold}, "false": {"ok": 998}},
        "seconds": {"true": histogram(cold, seconds), "false": histogram(998, 12.0)},
        "warm": Latency(count=500, p50=0.012, p90=0.02, p99=0.03, longest=0.04),
        "latest_cold": (record,),
    }
    return RouteState(route="/predict", **(known | more))


@pytest.mark.parametrize("seconds", [histogram(400, 20.0), None], ids=["marked steps", "steps that reads end"])
def test_a_read_in_each_step_of_pytorch_xla(seconds: Histogram | None) -> None:
    """By the share of the steps' time, which a loop without step marks has as a mean alone."""
    process = dataclasses.replace(scene().snapshot.process, versions={"torch_xla": "2.9.0"})
    loop = LoopState(name="train", steps=400, seconds=seconds, mean_seconds=0.05)
    other = LoopState(name="eval", steps=900, mean_seconds=0.001)

    def reads(waited: float, waits: int = 400) -> list[tuple[str, str | None, float]]:
        line = TransferState(
            site="train.py:9", direction="device_to_host", count=waits, bytes=4, waits=waits, wait_seconds=waited,
            since=NOW - 60.0,
        )  # fmt: skip
        cases = found(process=process, loops=(other, loop), transfers=(line,))
        return [(each.finding, each.where, each.data["share"]) for each in cases]

    assert reads(10.0) == [("host_sync", "train.py:9", 0.5)]
    assert reads(2.9) == reads(10.0, waits=199) == []


def test_cold_requests() -> None:
    """A route has one finding, with what compiled in its requests."""
    (finding,) = found(routes=(route(2, 8.0),))
    assert finding.summary == (
        "2 of 1,000 requests to `/predict` compiled before they were answered: 4 s on average, compared "
        "with 12 ms for a typical warm one."
    )
    assert finding.function == "serve.predict" and finding.seconds == pytest.approx(7.976)
    assert "jaxobs.warmup(predict, ...)" in finding.advice and "Pad requests" in finding.advice
    (first,) = found(routes=(route(1, 4.0, "first_call"),))
    assert "Pad requests" not in first.advice, "nothing varied"
    assert found(routes=(route(2, 0.1),)) == [], "nobody noticed"
    for name in ("warmup", "/v1/warm_up", "/api/prewarm"):
        assert found(routes=(dataclasses.replace(route(2, 8.0), route=name),)) == [], "nobody waits for it"
    assert found(routes=(dataclasses.replace(route(2, 8.0), route="/swarm"),)) != []


def test_failed_requests() -> None:
    (finding,) = found(routes=(RouteState(route="/p", requests={"false": {"ok": 100, "error": 60}}),))
    assert (finding.finding, finding.severity) == ("failed_requests", "warning")
    assert finding.summary == "60 of 160 requests to `/p` failed (38%)."
    (dead,) = found(routes=(RouteState(route="/p", requests={"false": {"error": 60}}),))
    assert dead.severity == "critical"
    assert found(routes=(RouteState(route="/p", requests={"false": {"ok": 12_000, "error": 7}}),)) == []
    assert found(routes=(RouteState(route="/p", requests={"false": {"ok": 10, "client_error": 90}}),)) == []


def test_requests_that_wait_for_a_lock() -> None:
    """By the share of the time in which requests were answered, if another thread works meanwhile."""

    def waits(seconds: float, share: float, held_at: str | None = "report.py:3") -> list[tuple[str, str | None]]:
        lock = AnsweringLine(line="app.py:9", at="lock", seconds=seconds, share=share, held_at=held_at)
        other = AnsweringLine(line="app.py:8", at="jax", seconds=seconds, share=1.0 - share)
        time = TimeState(
            seconds={"idle": 60.0}, counted={}, category="idle", wall_seconds=60.0, started=NOW - 60.0, steps=0,
            goodput=None, lost={}, answering=(other, lock),
        )  # fmt: skip
        return [(each.severity, each.where) for each in found(wall=time) if each.finding == "contended_lock"]

    assert waits(30.0, 0.5) == [("warning", "app.py:9")]
    assert waits(30.0, 0.49) == [("info", "app.py:9")]
    assert waits(30.0, 0.19) == waits(4.9, 0.9) == waits(30.0, 0.9, None) == []


def test_requests_that_fail_since_a_little_while_and_no_longer() -> None:
    """The latest minutes count, not the millions before, and the finding is over when these succeed again."""
    findings = Standing(Scene)

    def see(failed: int, recent: RecentRequests, now: float = NOW) -> list[tuple[str, float | None]]:
        state = RouteState(route="/p", requests={"false": {"ok": 1_000_000, "error": failed}}, recent=recent)
        return [(finding.summary, finding.ended) for finding, _ in findings.see(scene(routes=(state,), time=now))]

    fails = RecentRequests(seconds=120.0, total=200, failed=40)
    assert see(40, fails) == [("40 of 200 requests to `/p` failed (20%), in the last 2 minutes.", None)]
    for look in range(11):
        assert see(900, dataclasses.replace(fails, failed=4), NOW + 5 * look) == [], "it may come back"
    assert see(900, dataclasses.replace(fails, failed=4), NOW + 55) == [
        ("40 of 200 requests to `/p` failed (20%), in the last 2 minutes. Over since 02:40:00Z.", NOW)
    ]
    assert see(900, dataclasses.replace(fails, failed=0)) == []


def test_cold_requests_that_are_over() -> None:
    """Nobody has waited for ten minutes."""
    old = dataclasses.replace(route(2, 8.0).latest_cold[0], time=NOW - 601)
    assert found(routes=(route(2, 8.0, latest_cold=(old,)),)) == []
    assert found(routes=(route(2, 8.0, latest_cold=(dataclasses.replace(old, time=NOW - 599),)),)) != []


# ------------------------------------------------------------------------------------------- where the time goes

LOOP = LoopState(
    name="train", steps=900, found=True,
    lines=tuple(
        HostLine(line=line, category=category, seconds=40.0, share=0.4)
        for line, category in (("a.py:2", "input_wait"), ("a.py:3", "transfer"), ("a.py:4", "idle"))
    ),
)  # fmt: skip


def wall(recent: dict[str, float] | None = None, **seconds: float) -> TimeState:
    return dataclasses.replace(spent(sum(seconds.values()), **seconds), recent=recent or seconds)


@pytest.mark.parametrize(
    ("category", "kind", "severity", "line"),
    [
        ("input_wait", "input_bound", "info", "a.py:2"),
        ("transfer", "host_bound", "warning", "a.py:3"),
        ("idle", "host_bound", "info", "a.py:4"),
    ],
)
def test_a_large_part_of_the_time_is_a_finding(category: str, kind: str, severity: str, line: str) -> None:
    """With its line and its cost; not a small part, not one that is over, and none that other threads explain."""
    much = {"init": 20.0, "step": 60.0, category: 40.0}
    (finding,) = found(loops=(LOOP,), wall=wall(**much))
    assert (finding.finding, finding.severity, finding.where, finding.seconds) == (kind, severity, line, 40.0)
    assert "40 % of the time since the first step" in finding.summary and line in finding.summary
    assert found(loops=(LOOP,), wall=wall(**much | {"step": 300.0})) == []
    assert found(loops=(LOOP,), wall=wall(step=3.0, **{category: 4.5})) == [], "short"
    assert found(loops=(LOOP,), wall=wall({"step": 590.0, category: 10.0}, **much | {"step": 900.0})) == []
    (late,) = found(loops=(LOOP,), wall=wall({"step": 400.0, category: 200.0}, step=9000.0, **{category: 200.0}))
    assert "33 % of the last 10 minutes" in late.summary
    (other,) = found(loops=(dataclasses.replace(LOOP, name="other"),), wall=wall(**much))
    assert other.id == finding.id, "the largest loop may change, and the account has one such part"
    assert found(loops=(dataclasses.replace(LOOP, lines=()),), wall=wall(**much)) == [], "no line"
    for carries, paces in ((True, False), (False, False), (True, True)):
        lines = tuple(dataclasses.replace(each, paces=paces) for each in LOOP.lines)
        loop = dataclasses.replace(LOOP, lines=lines, carries=carries)
        (half,) = found(loops=(loop,), wall=wall(**much | {"step": 30.0}))
        fix = category != "input_wait" or (carries and not paces)
        assert half.severity == ("warning" if fix else "info"), "it may serve, or keep a pace"
    ended = (dataclasses.replace(LOOP, ended=NOW - 30, mean_seconds=0.1),)
    assert bool(found(loops=ended, wall=wall(**much))) == (category != "idle"), (
        "what comes after the training is no loss"
    )


HELD = HostWork(
    callbacks=(HostCallback(function="m.look_up", line="a.py:2", calls=270, seconds=8.0),
               HostCallback(function="jax.debug.print", line="a.py:9", calls=30, seconds=1.0)),
    pauses={"0": 90, "2": 9}, pause_seconds={"0": 1.0, "2": 29.0}, step_pauses=50, step_pause_seconds=26.0,
    pause_line="a.py:7", recent={"callbacks": 9.0, "pauses": 26.0},
)  # fmt: skip


def test_callbacks_and_pauses_that_take_part_of_the_steps() -> None:
    """With the figures of a step; not a twentieth of the time, not what is over, and not twice."""
    loop, much = dataclasses.replace(LOOP, lines=(), steps=100), wall(init=20.0, step=100.0)

    def told(loop: LoopState = loop, much: TimeState = much, **host: Any) -> list[tuple[str, Any, str]]:
        state = dataclasses.replace(much, host=dataclasses.replace(HELD, **host))
        cases = found(loops=(loop,), wall=state)
        assert {each.finding for each in cases} <= {"host_bound"}
        return [(each.severity, each.where, each.summary) for each in cases]

    callbacks, pauses = sorted(told())
    assert callbacks == ("info", "a.py:2", "Calls of Python by compiled programs take 9 % of the time since the first "
                         "step, 3 in a step, above all `m.look_up` at a.py:2.")  # fmt: skip
    assert pauses == ("warning", "a.py:7", "Pauses of Python's garbage collector take 26 % of the time since the first "
                      "step, 0.5 in a step, above all at a.py:7.")  # fmt: skip
    assert told(recent={"callbacks": 4.9, "pauses": 4.9}) == told(callbacks=(), step_pause_seconds=0.9) == []
    assert told(dataclasses.replace(loop, ended=NOW - 30, mean_seconds=0.1)) == [], "it is over"
    looks = (HostLine(line="a.py:4", category="idle", seconds=8.0, share=0.08, called_back=True),)
    seen = told(dataclasses.replace(loop, lines=looks), wall(step=92.0, idle=8.0), callbacks=(), step_pause_seconds=0.0)
    assert [(severity, line) for severity, line, _ in seen] == [("info", "a.py:4")]
    (once,) = told(LOOP, wall(init=20.0, step=60.0, idle=40.0), step_pause_seconds=0.0)
    assert once[1] == "a.py:4" and "above all `m.look_up` at a.py:2" in once[2]


@pytest.mark.parametrize(
    ("line", "advice"), [({"locks": True}, "takes a lock"), ({"runs": True}, "runs Python"), ({}, "takes from a queue")]
)
def test_the_advice_fits_how_a_loop_waits(line: dict[str, bool], advice: str) -> None:
    lines = tuple(dataclasses.replace(each, **line) for each in LOOP.lines)
    loops = (dataclasses.replace(LOOP, lines=lines, carries=True),)
    (finding,) = found(loops=loops, wall=wall(init=20.0, step=30.0, input_wait=40.0))
    assert (finding.severity, advice in finding.advice) == ("warning", True)


@pytest.mark.parametrize(
    ("saves", "step", "compile", "severity"),
    [(5, 30, 0, "warning"), (4, 30, 0, "info"), (5, 65, 10, "warning"), (5, 75, 0, "info")],
)
def test_checkpoints_that_hold_a_loop_up(saves: int, step: float, compile: float, severity: str) -> None:
    """With the line that waits; a program that saves once at its end may take its time.

    Half of the time counts without compilations, which a longer run has fewer of.
    """
    saved = {"save": histogram(saves, 70.0)}
    much = wall(init=20.0, step=float(step), compile=float(compile), checkpoint=70.0)
    spent = dataclasses.replace(much, checkpoint_line="a.py:7", checkpoints=saved)
    (finding,) = found(loops=(LOOP,), wall=spent)
    told = finding.finding, finding.severity, finding.where, finding.seconds
    assert told == ("host_bound", severity, "a.py:7", 70.0)
    assert found(loops=(LOOP,), wall=dataclasses.replace(spent, checkpoint_line=None)) == [], "no line"


def test_evaluations_that_take_most_of_a_training() -> None:
    """With the line; not a few, nor those that are less, or short, or that no step follows."""
    lines = (HostLine(line="a.py:7", category="eval", seconds=30.0, share=0.6),)
    loop = dataclasses.replace(LOOP, lines=lines, carries=True, ended=NOW - 4, steps=90)
    often = dataclasses.replace(most := wall(init=9.0, step=20.0, eval=30.0), evaluations=9)
    (finding,) = found(loops=(loop,), wall=often)
    assert (finding.finding, finding.severity, finding.where) == ("frequent_evaluation", "warning", "a.py:7")
    assert "evaluates for 60 % of the time since the first step, above all at a.py:7" in finding.summary
    assert [each.where for each in found(loops=(dataclasses.replace(loop, lines=()),), wall=often)] == [None]
    assert not found(loops=(loop,), wall=dataclasses.replace(most, evaluations=2)), "before and after the training"
    for other in ({"ended": NOW - 10}, {"carries": False}, {"steps": 91, "found": False}):
        silent = dataclasses.replace(loop, **other)
        assert not found(loops=(silent,), wall=often), "a test at the end, no training, or waits for many steps"
    (rare,) = found(loops=(dataclasses.replace(loop, steps=91),), wall=often)
    assert ("20th" in finding.advice, "a tenth as often" in rare.advice) == (True, True)
    for recent in ({"step": 31.0, "eval": 30.0}, {"step": 2.0, "eval": 9.9}):
        assert not found(loops=(loop,), wall=dataclasses.replace(often, seconds=recent, recent=recent))


@pytest.mark.parametrize(
    ("kind", "loop", "field"),
    [("unjitted_operations", "<eager>", "dispatching"), ("finite_differences", "train", "differences")],
)
def test_operations_and_finite_differences_are_findings_by_what_they_take(kind: str, loop: str, field: str) -> None:
    took = HostLine(line="a.py:9", category="step", seconds=8.0, share=0.2)
    for more, kinds in (({}, [kind]), ({"seconds": 4.9}, []), ({"share": 0.19}, [])):
        fields: dict[str, Any] = {"name": loop, field: dataclasses.replace(took, **more)}
        cases = found(loops=(dataclasses.replace(LOOP, **fields),))
        assert [each.finding for each in cases] == kinds
        assert [(each.where, each.seconds) for each in cases] == [("a.py:9", 8.0)] * len(kinds)
    assert found(loops=(dataclasses.replace(LOOP, dispatching=took),)) == []


def test_a_condition_that_is_mapped_is_a_finding_if_it_may_waste_much_of_the_steps() -> None:
    program = ProgramState(
        time=NOW, flops=8e9, select_site="a.py:65", select_branch="`draw` at a.py:34", select_share=0.8
    )
    functions = FunctionState(name="a.walk", program=program), FunctionState(name="a.start")
    loop = dataclasses.replace(LOOP, name="train", calls={"a.walk": 1.0, "a.start": 1.0})
    (finding,) = found(loops=(loop,), functions=functions, wall=wall(step=30.0, compile=10.0))
    assert (finding.finding, finding.function, finding.where) == ("vmapped_cond", "a.walk", "a.py:65")
    assert (finding.severity, finding.seconds, finding.data["most_seconds"]) == ("info", 0.0, 24.0)
    assert "80 % of the operations, which take up to 24 s so far, 60 % of the time" in finding.summary
    assert "Most of them belong to `draw` at a.py:34." in finding.summary
    for share, steps in ((0.49, 30.0), (0.8, 6.0), (0.6, 9.0)):
        less = dataclasses.replace(program, select_share=share)
        others = dataclasses.replace(functions[0], program=less), functions[1]
        assert not found(loops=(loop,), functions=others, wall=wall(step=steps, compile=40.0 - steps)), (share, steps)
    small = dataclasses.replace(functions[1], program=dataclasses.replace(program, flops=9e9, select_share=0.0))
    assert not found(loops=(loop,), functions=(functions[0], small), wall=wall(step=30.0, compile=10.0))
    assert not found(functions=functions, wall=wall(step=30.0, compile=10.0))


def test_steps_that_each_call_one_function_more_take_longer() -> None:
    """The function is compiled once, in between; the steps are not longer by chance, nor for the one compilation."""

    def seen(
        before: float = 0.004,
        after: float = 0.02,
        at: float = 110.0,
        calls: float = 1.0,
        compiled: int = 1,
        own: float = 1.0,
    ) -> list[Finding]:
        means = [(when, before if when < 110 else after, after) for when in (100, 102, 104, 106, 111.5, 114, 118, 120)]
        loop = LoopState(
            name="a.step", steps=2000, history=((99.0, before, before), *means), calls={"a.step": 1.0, "a.rank": calls}
        )
        function = FunctionState(name="a.rank", compilations={"first_call": {"miss": compiled}}, last_compiled=at)
        ranks = LoopState(name="a.rank", steps=1000, history=tuple((when, own, own) for when, *_ in means[4:]))
        return found(loops=(loop, ranks), functions=(FunctionState(name="a.step"), function))

    (finding,) = seen()
    assert (finding.finding, finding.function, finding.subject, finding.severity) == (
        "step_time_regression", "a.step", "a.rank", "info"
    )  # fmt: skip
    assert finding.summary == (
        "A step of `a.step` takes 20 ms, and took 4 ms until 00:01:50Z: each step calls `a.rank` since then."
    )
    assert finding.seconds == pytest.approx(0.8 * 10.0)
    assert seen(after=0.0055) == seen(calls=0.05) == seen(at=100.5) == seen(at=119.5) == seen(compiled=2) == []
    assert seen(before=0.0, after=0.0) == seen(before=0.0) == [], "a log may say anything"
    assert seen(calls=0.0, own=0.02) != [] == seen(calls=0.0, own=0.2), "a loop of its own, in each step or seldom"
    assert seen(before=0.0001, after=0.0002, at=110.0) != [], "the share counts, however short the steps are"


def test_dispatching_counts_against_the_time_in_which_nothing_compiles() -> None:
    """A short run has compiled for most of its time; a long run of the same program dispatches for most of it."""
    took = HostLine(line="a.py:9", category="step", seconds=8.0, share=0.16)
    loop = dataclasses.replace(LOOP, name="<eager>", lines=(), dispatching=took)
    assert [each.finding for each in found(loops=(loop,), wall=wall(step=17.0, compile=33.0))] == [
        "unjitted_operations"
    ]
    assert found(loops=(loop,), wall=wall(step=47.0, compile=3.0)) == []


@pytest.mark.parametrize(
    ("steps", "usual", "said"),
    [(4, 0.003, "its workers"), (40, 0.003, "prefetch"), (4, 9.0, "prefetch"), (4, None, "prefetch")],
)
def test_waits_of_few_steps_have_a_cure_of_their_own(steps: int, usual: float | None, said: str) -> None:
    """Workers that start again for each epoch hold up a step in each; more of them would not start faster."""
    waits = HostLine(line="a.py:2", category="input_wait", seconds=40.0, share=0.4, steps=steps)
    loop = dataclasses.replace(LOOP, lines=(waits,), p50_seconds=usual)
    (finding,) = found(loops=(loop,), wall=wall(init=20.0, step=30.0, input_wait=40.0))
    assert re.search(said, finding.advice)


def test_parts_of_the_time_count_together_and_a_line_is_one_finding() -> None:
    """A save takes a processor, and then waits for a disk: each less than what is ordinary, both more."""
    lines = tuple(dataclasses.replace(each, line="a.py:2") for each in LOOP.lines)
    much = wall(step=8.0, idle=4.0, input_wait=3.5)
    assert {each.finding for each in found(loops=(LOOP,), wall=much)} == {"input_bound", "host_bound"}
    (finding,) = found(loops=(dataclasses.replace(LOOP, lines=lines),), wall=much)
    assert (finding.finding, finding.subject, finding.seconds) == ("host_bound", "idle", 7.5)
    assert "48 % of the time" in finding.summary, "all that the line takes"
    assert found(loops=(LOOP,), wall=wall(step=5.0, idle=2.5, input_wait=2.0)) == [], "short"


def test_a_line_is_not_held_up_by_what_it_compiles() -> None:
    """The line that waits for its input has also called what compiled: the wait alone is the finding's."""
    compiles = HostLine(line="a.py:2", category="compile", seconds=60.0, share=0.4)
    loop = dataclasses.replace(LOOP, lines=(compiles, *LOOP.lines))
    much = wall(step=30.0, compile=60.0, input_wait=40.0)
    (finding,) = (each for each in found(loops=(loop,), wall=much) if each.finding == "input_bound")
    assert (finding.where, finding.seconds) == ("a.py:2", 40.0)


def test_ordinary_waits_are_no_findings() -> None:
    """A server rests, and an input may take all the time in which the devices have work."""
    served = (RouteState(route="/p", requests={"false": {"ok": 500}}),)
    assert found(loops=(LOOP,), routes=served, wall=wall(step=60.0, idle=600.0)) == []
    hidden = InputState(name="rows", batches=9, wait_seconds=600.0, share=0.9, verdict="compute")
    assert found(loops=(LOOP,), inputs=(hidden,), wall=wall(step=60.0, input_wait=600.0)) == []


# --------------------------------------------------------------------------------------------- memory, errors


def test_memory_that_ran_out() -> None:
    cause = OomCause(cause="leaked_arrays", summary="412 arrays hold 26 GiB.", advice="Keep `float(x)`.")
    died = OutOfMemory(
        time=NOW, function="train.step", stage="run", error="E", message="m", device="gpu:0", wanted_bytes=2**31,
        causes=(cause,), call_site="train.py:9",
    )  # fmt: skip
    (finding,) = found({"out_of_memory": (died, dataclasses.replace(died, causes=()))})
    assert finding.summary == (
        "`train.step` ran out of memory on gpu:0 2 times when it needed 2.00 GiB. 412 arrays hold 26 GiB."
    )
    assert (finding.severity, finding.advice, finding.where) == ("critical", "Keep `float(x)`.", "train.py:9")


def test_an_error_that_ended_the_program() -> None:
    """An error at a prompt, which goes on, is no finding."""
    error = Error(time=NOW, error="ValueError", message="bad\nshape", call_site="train.py:9")
    assert found({"errors": (error,)}) == []
    (finding,) = found({"errors": (error,), "ended": True})
    assert (finding.summary, finding.where) == ("ValueError ended the program: bad shape", "train.py:9")
    caught = dataclasses.replace(error, uncaught=False)
    assert found({"errors": (caught,), "ended": True}) == []


# ---------------------------------------------------------------------------------------------------- caches


def test_a_cache_that_misses_what_was_compiled_before() -> None:
    """Only what an earlier process is known to have compiled; a first run misses everything."""
    functions = (FunctionState(name="train.step", phase_seconds={"compile": 41.0}),)
    cache = CacheState(enabled=True, directory="/c")
    new = CacheLookup(time=NOW, function="train.step", result="miss")
    assert found({"lookups": (new,)}, functions=functions, cache=cache) == []
    again = dataclasses.replace(new, reason="The flags differ.", differs=("flags",))
    (finding,) = found({"lookups": (again,)}, functions=functions, cache=cache)
    assert finding.finding == "cache_missed_again" and finding.seconds == 41.0
    assert "parts of the key that differ: flags (1)" in finding.summary


def test_a_cache_that_is_off() -> None:
    functions = (FunctionState(name="train.step", phase_seconds={"compile": 300.0}),)
    (finding,) = found(functions=functions)
    assert (finding.finding, finding.severity) == ("no_persistent_cache", "info")
    assert found(functions=functions, cache=CacheState(enabled=True, directory="/c")) == []
    shapes = Finding(time=NOW, id="a", finding="unbounded_shapes", function="train.step", summary="", advice="")
    assert found(functions=functions, findings=(shapes,)) == [], "what padding avoids need not be loaded"
    assert found(functions=(FunctionState(name="f", phase_seconds={"compile": 9.0}),)) == []


# --------------------------------------------------------------------------------------- a long compilation

UNROLLED = {"repeated": {"operations": 31, "times": 40}}


def long(seconds: float, elapsed: float = 40.0, now: float = NOW, **more: Any) -> list[Finding]:
    """The findings about one compilation of a process that began so many seconds before its end."""
    event = compilation(
        time=NOW - 1000 + elapsed, phases={"trace": 1.0, "compile": seconds - 1}, call_site="train.py:5", **more
    )
    functions = (FunctionState(name=event.function, phase_seconds={"compile": seconds - 1}),)
    return found({"compilations": (event,)}, functions=functions, time=now)


def test_a_loop_that_was_unrolled() -> None:
    """The blocks are counted, and the cure is a loop of JAX's own; a cache is not asked for as well."""
    (finding,) = long(30.0, **UNROLLED)
    assert (finding.finding, finding.severity, finding.where) == ("long_compilation", "warning", "train.py:5")
    assert finding.summary == (
        "`train.step` took 30 s to compile at train.py:5 (trace 1 s, compile 29 s). It compiled "
        "the same 31 operations 40 times in a row."
    )
    assert "`jax.lax.scan`" in finding.advice and finding.seconds == 30.0
    assert [each.finding for each in long(300.0, 310.0, **UNROLLED)] == ["long_compilation"]


def test_a_small_program_with_large_constants() -> None:
    """The constants are the cure, and a cache is not asked for as well; small ones explain nothing."""
    (finding,) = long(100.0, 120.0, constant_bytes=3 << 20)
    assert (finding.finding, finding.severity) == ("long_compilation", "warning")
    assert finding.summary.endswith("It contains constants of 3.00 MiB.")
    assert "Pass the arrays as arguments" in finding.advice
    assert [each.severity for each in long(30.0, 40.0, now=NOW - 900, constant_bytes=1 << 19)] == ["info"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "Set JAX_COMPILATION_CACHE_DIR to a directory"),
        ({"cache": "miss"}, "No action is needed: it is in the persistent cache"),
        ({"cache": "miss", "uncached_because": "too_small", "uncached_detail": "Raise."}, "will recompile it. Raise"),
    ],
)
def test_a_large_program_is_information(more: dict[str, Any], says: str) -> None:
    (finding,) = long(30.0, 40.0, now=NOW - 900, **more)
    assert finding.severity == "info" and says in finding.advice and "in a row" not in finding.summary
    assert long(30.0, **more) == [], "of a thousand seconds it is little"


def test_one_fault_is_one_finding() -> None:
    """From a minute on the cache that is off is the fault, and the longest compilation follows from it."""
    longest, cache = long(100.0, 120.0)
    assert cache.finding == "no_persistent_cache" and cache.finding in all_kinds.follows(longest)
    events = tuple(
        compilation(name, time=NOW - 900, phases={"compile": 21.0 + n}) for n, name in enumerate(("a", "b", "c"))
    )
    assert [each.function for each in found({"compilations": events}, time=NOW - 900)] == ["c"]


def open_one(seconds: float, **more: Any) -> OpenCompilation:
    known = {"began": NOW - seconds, "call_site": "train.py:5"}
    return OpenCompilation("train.step", "compile", NOW - seconds + 2, "MainThread", **(known | more))


def test_a_compilation_that_lasts() -> None:
    (finding,) = found(in_progress=(open_one(400.0),))
    assert (finding.finding, finding.severity, finding.where) == ("long_compilation", "info", "train.py:5")
    assert finding.summary == ("`train.step` has been compiling for 6m40s at train.py:5; it is in the phase `compile`.")
    assert found(in_progress=(open_one(100.0),)) == [], "a tenth of the time"
    event = compilation(time=NOW - 500, phases={"compile": 450.0}, cache="miss")
    assert [each.seconds for each in found({"compilations": (event,)}, in_progress=(open_one(400.0),))] == [450.0]
    finished = dataclasses.replace(event, time=NOW, phases={"compile": 400.0})
    assert [each.id for each in found({"compilations": (finished,)})] == [finding.id], "the same, when it has ended"


def test_a_compilation_that_was_never_finished() -> None:
    (finding,) = found(unfinished=(open_one(400.0, ended=NOW - 1),))
    assert finding.severity == "warning" and finding.seconds == 399.0
    assert "had been compiling for 6m39s at train.py:5" in finding.summary and "never finished" in finding.summary


@pytest.mark.parametrize(("elapsed", "more"), [(200.0, UNROLLED), (40.0, {"cache": "hit"})])
def test_a_compilation_that_is_no_large_part(elapsed: float, more: dict[str, Any]) -> None:
    assert long(30.0, elapsed, **more) == []


# ------------------------------------------------------------------------------------------------------ news


def test_what_is_news() -> None:
    watching = Standing(Scene)

    def see(bad: int) -> list[bool]:
        state = WatchedState(name="loss", calls=bad, checked=bad, nonfinite=bad, finite=False)
        return [news for _, news in watching.see(scene(watched=(state,)))]

    assert [see(10), see(15), see(20), see(21)] == [[True], [False], [True], [False]]
