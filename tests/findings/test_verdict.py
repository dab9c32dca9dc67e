"""The verdict: which finding comes first, what follows from what, and what is said where there is none."""

from __future__ import annotations

import json
from dataclasses import replace
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

    assert after(1_000.0, "costly_recompilations") == "fix"
    assert after(36_000.0, "costly_recompilations") == "watch"
    assert after(36_000.0, "cold_requests") == "fix"
    assert of([finding("cold_requests", seconds=4.0)], 36_000.0).findings[0].cost.share is None


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


def program(name: str | None) -> dict[str, Any]:
    return {"process": replace(snapshot().process, program=name)}


COMPILED = {"functions": (FunctionState(name="f", compilations={"first_call": {"miss": 2}}, phase_seconds=PHASES),)}
SLOW = {"functions": (FunctionState(name="f", phase_seconds={"compile": 40.0}),)}
TRAINS = {"loops": (LoopState(name="train", steps=900),)}
SERVES = {"routes": (RouteState(route="/p", requests={"false": {"ok": 7}}),)}
OPEN = {"in_progress": (OpenCompilation(function="train.step", phase="compile", started=NOW - 35, thread="t"),)}
OF_STEPS = "of the time since the first step went into steps"
UNMARKED = "jaxobs knows no steps and no requests here. Mark them with `jaxobs.step` or `jaxobs.request`."

ACCOUNTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a young process": ({"wall": wall(unattributed=9)}, "ok", "Nothing to fix: no compilation has ended yet."),
    "a log without an account": (
        COMPILED, "watch", "Nothing found, but the log does not say where the time went: 2 programs compiled in 3.5 s.",
    ),
    "a notebook, where nobody types": (
        {"wall": wall(unattributed=3000, compile=3.5)} | COMPILED | program("ipykernel_launcher"),
        "ok", "Nothing to fix: 2 programs compiled in 3.5 s.",
    ),
    "a prompt after a loop": (
        {"wall": wall(init=20, step=30, compile=4, idle=600)} | TRAINS | program(None),
        "ok",
        "Nothing to fix: 10m34s since the first step, of which idle 10m00s, steps 30 s, tracing and compiling 4 s.",
    ),
    "a notebook that compiles": (
        {"wall": wall(unattributed=60, compile=30, trace=10)} | SLOW | program(None),
        "watch", "The largest part of the time is tracing and compiling, 40 s (40 %), most of it of `f`.",
    ),
    "a script that computes once": (
        {"wall": wall(unattributed=20, compile=2.5, trace=1)} | COMPILED,
        "ok", "Nothing to fix: 2 programs compiled in 3.5 s.",
    ),
    "a script that does so for long": (
        {"wall": wall(unattributed=96, compile=4)} | COMPILED,
        "watch", f"The largest part of the time is unknown, 96 s (96 %): {UNMARKED}",
    ),
    "training": (
        {"wall": wall(init=20, step=97, compile=3)} | TRAINS, "ok", f"Nothing to fix: 97 % {OF_STEPS}.",
    ),
    "training for so short that it compiled for most of the time": (
        {"wall": wall(init=5, step=3, trace=1, compile=5)} | TRAINS,
        "ok", "Nothing to fix: 9 s since the first step, of which tracing and compiling 6 s, steps 3 s.",
    ),
    "training that compiled for long": (
        {"wall": wall(init=5, step=1, compile=40, idle=9)} | TRAINS | SLOW,
        "watch", f"2 % {OF_STEPS}. The largest other part is tracing and compiling, 40 s (80 %), most of it of `f`.",
    ),
    "training that compiles now": (
        {"wall": wall(init=5, step=5, compile=35)} | TRAINS | OPEN,
        "watch",
        f"12 % {OF_STEPS}. The largest other part is tracing and compiling, 35 s (88 %), most of it of `train.step`.",
    ),
    "training that waits for its input": (
        {"wall": wall(init=5, step=10, input_wait=90)} | TRAINS
        | {"inputs": (InputState(name="rows", batches=9, wait_seconds=90.0),)},
        "watch", f"10 % {OF_STEPS}. The largest other part is waiting for input, 90 s (90 %), most of it for `rows`.",
    ),
    "training that waits in a loop that was found": (
        {
            "wall": wall(init=5, step=10, input_wait=90),
            "loops": (LoopState(name="f", steps=900, lines=(line("a.py:1", "step"), line("a.py:2", "input_wait"))),),
        },
        "watch", f"10 % {OF_STEPS}. The largest other part is waiting for input, 90 s (90 %), above all at a.py:2.",
    ),
    "training that hardly takes a step": (
        {"wall": wall(init=5, step=0.1, checkpoint=99.9)} | TRAINS,
        "watch", f"0 % {OF_STEPS}. The largest other part is checkpoints, 99.9 s (100 %).",
    ),
    "training that is over": (
        {"wall": wall(init=5, step=15, idle=45)} | TRAINS,
        "watch", f"25 % {OF_STEPS}. The largest other part is idle, 45 s (75 %).",
    ),
    "training of which much is unknown": (
        {"wall": wall(init=5, step=15, unattributed=45)} | TRAINS,
        "watch", f"25 % {OF_STEPS}. The largest other part is unknown, 45 s (75 %).",
    ),
    "steps of a log that does not say how long they took": (
        TRAINS, "watch", "Nothing found, but the log does not say where the time went: 900 steps of `train`.",
    ),
    "training and evaluation": (
        {"wall": wall(init=5, step=60, eval=30, compile=10)} | TRAINS,
        "ok", "Nothing to fix: 90 % of the time since the first step went into steps and evaluation.",
    ),
    "evaluation only": (
        {"wall": wall(init=5, eval=90, compile=10)},
        "ok", "Nothing to fix: 90 % of the time since the first evaluation went into evaluation.",
    ),
    "a server at rest": (
        {"wall": wall(unattributed=3600, compile=8)} | SERVES, "ok", "Nothing to fix: 7 requests answered.",
    ),
    "a server whose loop was found": (
        {"wall": wall(init=60, step=5, idle=600)} | SERVES | {"loops": (LoopState(name="f", steps=9, found=True),)},
        "ok", "Nothing to fix: 7 requests answered.",
    ),
    "a server that compiles": (
        {"wall": wall(unattributed=60, compile=40)} | SERVES | SLOW,
        "watch", "The largest part of the time is tracing and compiling, 40 s (40 %), most of it of `f`.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCOUNTS)
def test_an_account_without_findings(name: str) -> None:
    """`ok` is said only if four fifths of the time are accounted for, or the rest is ordinary and named."""
    more, word, says = ACCOUNTS[name]
    result = judged(**more)
    assert (result.verdict, result.headline, result.findings) == (word, says, ())


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
