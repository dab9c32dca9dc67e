"""The verdict: which finding comes first, what follows from what, and what is said where there is none."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.condition_scenes import NOW, snapshot

from jaxobs.facts.compilations import OpenCompilation
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import FunctionState
from jaxobs.facts.inputs import InputState
from jaxobs.facts.loops import HostLine, LoopState
from jaxobs.facts.requests import RouteState
from jaxobs.facts.verdicts import Account, Verdict
from jaxobs.facts.wall import TIME_CATEGORIES, TimeState
from jaxobs.findings.verdict import of, verdict


def finding(kind: str, **more: Any) -> Finding:
    known: dict[str, Any] = {"function": "train.step", "summary": f"{kind}.", "advice": "Do.", "since": NOW - 10}
    known |= more
    return Finding(time=NOW, id=f"{kind}-{known['function']}-{known.get('subject', '')}", finding=kind, **known)


PHASES = {"trace": 1.0, "compile": 2.5}


def judged(*findings: Finding, **more: Any) -> Verdict:
    return verdict(snapshot(findings=findings, **more))


def kinds(result: Verdict) -> list[str]:
    return [each.id.partition("-")[0] for each in result.findings]


def test_what_costs_most_comes_first() -> None:
    """Pauses of the input that cost no time come last; a value that is NaN is worse than lost seconds."""
    result = judged(
        finding("input_pauses", function="<unknown>"),
        finding("unbounded_shapes", seconds=49.6, count=30),
        finding("static_values", function="g", seconds=70.0, saves_seconds=20.0),
        finding("nonfinite_values", function="<unknown>", severity="critical", count=137),
    )
    assert kinds(result) == ["nonfinite_values", "unbounded_shapes", "static_values", "input_pauses"]
    assert result.verdict == "fix"
    assert result.headline == "nonfinite_values. 3 other findings below."
    shapes = result.findings[1]
    assert (shapes.cost.seconds, shapes.cost.share, shapes.cost.count) == (49.6, pytest.approx(0.0496), 30)
    assert result.findings[2].cost.seconds == 20.0, "what the advice saves"
    assert result.findings[0].function is None


def test_a_tiny_share_of_a_long_time_is_worth_knowing_only() -> None:
    """A last batch of 4 s is what to fix for an hour, not after ten; of requests that waited it says nothing."""

    def after(seconds: float, kind: str) -> str:
        return of([finding(kind, seconds=4.0, since=NOW - seconds)], 36_000.0, now=NOW).verdict

    assert after(1_000.0, "unbounded_shapes") == "fix"
    assert after(36_000.0, "unbounded_shapes") == "watch"
    assert after(36_000.0, "cold_requests") == "fix"
    assert of([finding("cold_requests", seconds=4.0)], 36_000.0).findings[0].cost.share is None


@pytest.mark.parametrize(
    ("seconds", "of_all", "word"), [(9.0, 100.0, "watch"), (21.0, 100.0, "fix"), (61.0, 900.0, "fix")]
)
def test_a_cost_that_comes_once_is_to_be_fixed_if_it_is_large(seconds: float, of_all: float, word: str) -> None:
    """A last batch that compiles the step again: a fifth of the time, or a minute."""
    last = finding("costly_recompilations", seconds=seconds, since=NOW - of_all)
    again = finding("weak_type_at_start", seconds=1.0, since=NOW - of_all)
    found = of([again, last], of_all, now=NOW)
    assert (found.verdict, [each.caused_by for each in found.findings]) == (word, [None, last.id])


@pytest.mark.parametrize(
    ("kind", "seconds", "word"),
    [("eager_initialization", 19.0, "ok"), ("eager_initialization", 21.0, "watch"), ("unbounded_shapes", 0.5, "watch")],
)
def test_the_ordinary_cost_of_a_start_is_nothing_to_fix(kind: str, seconds: float, word: str) -> None:
    """A model that is built operation by operation, for less than a fifth of the time, is told of below the account."""
    start = finding(kind, seconds=seconds, severity="info" if seconds > 20 else "warning")
    result = judged(start, wall=wall(init=20, step=100), **TRAINS)
    assert (result.verdict, [each.severity for each in result.findings]) == (word, ["info"])
    if word == "ok":
        assert result.headline.startswith("Nothing to fix: 100 % of") and result.headline.endswith("1 finding below.")
    waits = judged(start, wall=wall(init=20, step=50, input_wait=50), **TRAINS)
    assert waits.verdict == "watch"
    assert waits.headline.startswith("50 % of the time since the first step") and "1 finding below." in waits.headline
    assert of([start], 100.0).verdict == "watch", "a part of a process, which has no account"


@pytest.mark.parametrize(("seconds", "word", "severity"), [(59.0, "watch", "info"), (61.0, "fix", "warning")])
def test_a_model_that_is_built_for_a_minute_is_to_be_fixed(seconds: float, word: str, severity: str) -> None:
    """A short run is a start for the most part, which the user can avoid and need not."""
    start = finding("eager_initialization", seconds=seconds)
    result = judged(start, wall=wall(init=20, step=100), **TRAINS)
    assert (result.verdict, [each.severity for each in result.findings]) == (word, [severity])


def test_memory_that_grows_comes_before_what_is_lost_once() -> None:
    """A start costs less than a fifth of the time, and nothing from then on."""
    start = finding("eager_initialization", seconds=19.0, severity="info")
    leak = finding("array_leak", bytes=2**29, severity="info")
    assert [each.id for each in judged(start, leak, wall=wall(init=20, step=100)).findings] == [leak.id, start.id]


def test_arguments_that_recompile_together_are_one_fault() -> None:
    """Two static arguments that change at once have the same compilations as evidence; the others are their own."""
    first, second, other = (
        finding("static_values", subject=name, where="a.py:4", count=count, seconds=8.5)
        for name, count in (("alpha", 11), ("temperature", 11), ("width", 3))
    )
    found = {each.id: each.caused_by for each in judged(first, second, other).findings}
    assert found == {first.id: second.id, second.id: None, other.id: None}


def test_one_value_in_two_calls_is_one_fault() -> None:
    """A static argument that both functions of a loop get: the cheaper finding follows from the other."""
    values = {"some": ["1.5", "1.4", "1.3"]}
    act, learn = (finding("static_values", function=name, subject="temperature", seconds=seconds, data=values)
                  for name, seconds in (("act", 8.7), ("learn", 10.2)))  # fmt: skip
    other = finding("static_values", function="probe", subject="temperature", seconds=5.0, data={"some": ["3", "4"]})
    named = finding("static_values", function="probe", subject="rate", seconds=4.0, data=values)
    found = {each.id: each.caused_by for each in judged(act, learn, other, named).findings}
    assert found == {learn.id: None, act.id: learn.id, other.id: None, named.id: None}


def test_one_object_of_two_methods_is_one_fault() -> None:
    """Each new model recompiles both of its jitted methods; another class's objects are another fault."""
    kind, model = "identity_hashed_static", {"argument": "self", "prints_as": "Model object"}
    step = finding(kind, function="Model.step", subject="self", seconds=9.0, data=model)
    loss = finding(kind, function="Model.loss", subject="self", seconds=4.0, data=model)
    other = finding(
        kind, function="Policy.act", subject="self", seconds=5.0, data=model | {"prints_as": "Policy object"}
    )
    found = {each.id: each.caused_by for each in judged(step, loss, other).findings}
    assert found == {step.id: None, other.id: None, loss.id: step.id}


def test_memory_that_grows_comes_before_a_hundredth_of_the_time() -> None:
    """Pauses of 2 s come before a leak of 25 MiB only where they are much of the time."""
    leak, slow = finding("array_leak", bytes=25 * 2**20), finding("slow_steps", seconds=2.0)

    def first(seconds: float) -> str:
        return kinds(of([slow, leak], seconds))[0]

    assert first(190.0) == "array_leak"
    assert first(60.0) == "slow_steps"


def test_memory_that_fills_comes_before_lost_seconds() -> None:
    """A device that is full ends the program: within the hour it is critical, beyond 1 GiB it comes first."""
    shapes = finding("unbounded_shapes", seconds=400.0)
    leak = finding("array_leak", bytes=4 * 2**30)
    assert kinds(judged(shapes, leak)) == ["array_leak", "unbounded_shapes"]
    assert kinds(judged(shapes, finding("array_leak", bytes=2**21))) == ["unbounded_shapes", "array_leak"]
    soon = judged(shapes, finding("array_leak", bytes=2**21, data={"full_in_seconds": 600.0}))
    assert kinds(soon) == ["array_leak", "unbounded_shapes"]
    assert soon.findings[0].severity == "critical"


def test_a_finding_that_follows_from_another_comes_behind_it() -> None:
    """A cause is as bad as what it brings about."""
    shapes = finding("unbounded_shapes", function="serve.predict", seconds=3.0)
    cold = finding("cold_requests", function="serve.predict", subject="/p", seconds=30.0, data={"functions": ["x"]})
    lost = finding("static_values", seconds=9.0)
    result = judged(cold, lost, shapes)
    assert kinds(result) == ["unbounded_shapes", "cold_requests", "static_values"]
    assert [each.caused_by for each in result.findings] == [None, shapes.id, None]
    assert "1 other finding" in result.headline
    other = finding("unbounded_shapes", function="train.other", seconds=3.0)
    assert [each.caused_by for each in judged(cold, other).findings] == [None, None], "about another function"
    slow = finding("slow_steps", function="train", seconds=9.0, data={"functions": ["train.step"]})
    once = finding("costly_recompilations", seconds=3.0)
    assert [each.caused_by for each in judged(slow, once).findings] == [None, once.id], "they are slow for they compile"
    served = finding("slow_steps", function="train", seconds=9.0, data={"functions": ["serve.predict"]})
    assert [each.caused_by for each in judged(served, cold).findings] == [None, cold.id], "a request compiled in them"
    pauses = finding("slow_steps", seconds=9.0, data={"functions": []})
    assert [each.caused_by for each in judged(pauses, once).findings] == [None, None], "by something else"
    fits, asks, other = (
        finding("unbounded_shapes", function=name, seconds=seconds, data={"sizes": list(range(4, size))})
        for name, seconds, size in (("gp.fit", 12.0, 40), ("gp.ask", 20.0, 40), ("gp.plot", 9.0, 41))
    )
    found = {each.id: each.caused_by for each in judged(fits, asks, other).findings}
    assert found == {asks.id: None, fits.id: asks.id, other.id: None}, "one array grows"
    made = [finding("recreated_functions", function=f"k.{each}", seconds=9.0) for each in ("T.fit", "T.test", "a", "b")]
    assert sum(each.caused_by is not None for each in judged(*made).findings) == 1, "the methods of one class"
    waits = [finding("input_bound", function=name, seconds=9.0, where="a.py:4", data={"loop": name}) for name in "fg"]
    assert sum(each.caused_by is not None for each in judged(*waits).findings) == 1, "a line that two loops wait at"
    waits[1] = replace(waits[1], where="a.py:5")
    assert sum(each.caused_by is not None for each in judged(*waits).findings) == 0
    died = finding("memory_ran_out", severity="critical")
    ended = finding("uncaught_error", function="<unknown>", severity="critical")
    leak = finding("array_leak", bytes=2**31)
    result = judged(ended, died, leak)
    assert kinds(result) == ["array_leak", "memory_ran_out", "uncaught_error"]
    assert [each.caused_by for each in result.findings] == [None, leak.id, died.id]


def test_what_is_over_or_costs_little() -> None:
    """The first is no part of the verdict; the second is worth knowing."""
    assert judged(finding("array_leak", ended=NOW), wall=wall(step=100)).verdict == "ok"
    small = judged(finding("unbounded_shapes", seconds=0.2))
    assert (small.verdict, small.findings[0].severity) == ("watch", "info")
    assert judged(finding("unbounded_shapes", seconds=0.2), time=NOW - 995).verdict == "fix", "of 5 s it is much"


def wall(**seconds: float) -> TimeState:
    whole = sum(seconds.values())
    return TimeState(
        seconds=dict.fromkeys(TIME_CATEGORIES, 0.0) | seconds, counted={}, category="step", wall_seconds=whole,
        started=NOW - whole, steps=0, goodput=None, lost={}, recent=seconds,
    )  # fmt: skip


def line(where: str, category: str) -> HostLine:
    return HostLine(line=where, category=category, seconds=1.0, share=0.1)


COMPILED = {"functions": (FunctionState(name="f", compilations={"first_call": {"miss": 2}}, phase_seconds=PHASES),)}
SLOW = {"functions": (FunctionState(name="f", phase_seconds={"compile": 40.0}),)}
TRAINS = {"loops": (LoopState(name="train", steps=900),)}
FOUND = {"loops": (LoopState(name="f", steps=9, found=True),)}
FOUND_LINES = {"loops": (LoopState(name="f", steps=900, lines=(line("a.py:1", "step"), line("a.py:2", "input_wait"))),)}
WAITS = {"inputs": (InputState(name="rows", batches=9, wait_seconds=90.0),)}
NOTEBOOK, PROMPT = ({"process": replace(snapshot().process, program=each)} for each in ("ipykernel_launcher", None))
POOLED = {"wall": replace(wall(unattributed=3600, compile=8), serves=True), **COMPILED}
SERVES = {"routes": (RouteState(route="/p", requests={"false": {"ok": 7}}),)}
OPEN = {"in_progress": (OpenCompilation(function="train.step", phase="compile", started=NOW - 35, thread="t"),)}

ACCOUNTS = tomllib.loads((Path(__file__).parent / "accounts.toml").read_text())


@pytest.mark.parametrize("name", ACCOUNTS)
def test_an_account_without_findings(name: str) -> None:
    """`ok` is said only if four fifths of the time are accounted for, or the rest is ordinary and named."""
    given = ACCOUNTS[name]
    more = {key: value for each in given.get("with", ()) for key, value in globals()[each].items()}
    result = judged(**more, **({"wall": wall(**given["seconds"])} if "seconds" in given else {}))
    assert (result.verdict, result.headline, result.findings) == (given["verdict"], given["says"], ())


@pytest.mark.parametrize(("seconds", "steps", "verdict"), [(1.5, 50, "watch"), (1.5, 3, "ok"), (0.5, 50, "ok")])
def test_few_seconds_that_each_step_takes_are_not_ordinary(seconds: float, steps: int, verdict: str) -> None:
    """A short run may wait once, as for its first batch; a line where many steps wait costs more in a longer run."""
    waits = HostLine(line="a.py:2", category="input_wait", seconds=seconds, share=0.3, steps=steps)
    loop, times = LoopState(name="f", steps=900, lines=(waits,)), wall(init=2, step=4, input_wait=1.5)
    assert judged(wall=times, loops=(loop,)).verdict == verdict
    pauses = replace(loop, lines=(replace(waits, paces=True),))
    assert judged(wall=times, loops=(pauses,)).verdict == "ok", "a sleep in the loop itself"


def test_a_sleep_that_keeps_the_pace_is_ordinary_and_told() -> None:
    """A loop that sleeps until its next turn waits by design, however long; what it waits for besides does not."""
    sleeps = HostLine(line="a.py:2", category="input_wait", seconds=70.0, share=0.7, steps=900, paces=True)
    loop, times = LoopState(name="f", steps=900, lines=(sleeps,)), wall(init=2, step=30, input_wait=70)
    kept = replace(loop, lines=(replace(sleeps, keeps_pace=True),))
    assert judged(wall=times, loops=(loop,)).verdict == "watch"
    result = judged(wall=times, loops=(kept,))
    assert (result.verdict, result.headline) == (
        "ok",
        "Nothing to fix: 1m40s since the first step, of which waiting for input 70 s, steps 30 s; the `sleep` that "
        "keeps the loop's pace took 70 s.",
    )
    assert judged(wall=wall(init=2, step=30, input_wait=170), loops=(kept,)).verdict == "watch"


def test_the_latest_minutes_count_too() -> None:
    """A run that went well for hours and starves now is not `ok`, nor is one that starved for most of its time."""
    day = wall(init=20, step=40_000, input_wait=590)
    now = judged(wall=replace(day, recent={"step": 10.0, "input_wait": 590.0}), **TRAINS)
    assert (now.verdict, now.headline) == (
        "watch",
        "2 % of the last 10 minutes went into steps. The largest other part is waiting for input, 9m50s (98 %).",
    )  # fmt: skip
    stuck = judged(wall=replace(day, recent={"input_wait": 600.0}), **TRAINS)
    assert stuck.headline == "The largest part of the last 10 minutes is waiting for input, 10m00s (100 %)."
    assert judged(wall=replace(day, recent={"step": 590.0, "input_wait": 10.0}), **TRAINS).verdict == "ok"
    starved = replace(wall(init=20, step=900, input_wait=900), recent={"step": 600.0})
    assert judged(wall=starved, **TRAINS).headline.startswith("50 % of the time since the first step")


def test_the_account_beside_findings() -> None:
    """A finding is the headline, unless it costs little and the account lacks much."""
    starved = {"wall": wall(init=20.0, step=10.0, input_wait=90.0)} | TRAINS
    worst = judged(finding("unbounded_shapes", seconds=49.6), **starved)
    assert worst.headline.startswith("unbounded_shapes. Cost so far")
    assert worst.account == Account(
        since=NOW - 120, until=NOW, seconds={"init": 20.0, "step": 10.0, "input_wait": 90.0}, share_in_steps=0.1
    )
    little = judged(finding("unbounded_shapes", seconds=0.2), **starved)
    assert little.verdict == "watch"
    assert little.headline.startswith("10 % of") and little.headline.endswith("(90 %). 1 finding below.")
    well = judged(finding("unbounded_shapes", seconds=0.2), wall=wall(init=20, step=99), **TRAINS)
    assert (well.verdict, well.headline) == ("watch", "unbounded_shapes. Cost so far: 200 ms.")


def test_figures_of_a_log_that_are_none() -> None:
    """A log may say anything: not a number, or less than nothing."""
    result = judged(finding("unbounded_shapes", seconds=float("nan"), severity="terrible"))
    assert result.findings[0].cost.seconds is None and result.findings[0].severity == "warning"
    json.dumps(result.headline, allow_nan=False)
