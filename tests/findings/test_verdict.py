"""The verdict: which finding comes first, what follows from what, and what is said where there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from helpers.condition_scenes import NOW, snapshot

from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import FunctionState
from jaxobs.facts.loops import LoopState
from jaxobs.facts.requests import RouteState
from jaxobs.facts.verdicts import Verdict
from jaxobs.facts.wall import TIME_CATEGORIES, TimeState
from jaxobs.findings.verdict import verdict


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
    assert judged(finding("array_leak", ended=NOW)).verdict == "ok"
    small = judged(finding("unbounded_shapes", seconds=0.2))
    assert (small.verdict, small.findings[0].severity) == ("watch", "info")
    assert judged(finding("unbounded_shapes", seconds=0.2), time=NOW - 995).verdict == "fix", "of 5 s it is much"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "Nothing to fix: nothing has compiled yet."),
        (
            {"functions": (FunctionState(name="f", compilations={"first_call": {"miss": 2}}, phase_seconds=PHASES),)},
            "Nothing to fix: 2 programs compiled in 3.5 s.",
        ),
        ({"routes": (RouteState(route="/p", requests={"false": {"ok": 7}}),)}, "Nothing to fix: 7 requests answered."),
        ({"loops": (LoopState(name="train", steps=1953),)}, "Nothing to fix: 1,953 steps of `train`."),
        (
            {
                "loops": (LoopState(name="train", steps=900),),
                "wall": TimeState(
                    seconds={**dict.fromkeys(TIME_CATEGORIES, 0.0), "init": 20.0, "step": 97.0, "compile": 3.0},
                    counted={}, category="step", wall_seconds=120.0, started=NOW, steps=900, goodput=97 / 120, lost={},
                )
            },
            "Nothing to fix: 97 % of the time since the first step went into steps.",
        ),
    ],
)  # fmt: skip
def test_nothing_to_fix(more: dict[str, Any], says: str) -> None:
    """With the figure that shows best how it goes."""
    result = judged(**more)
    assert (result.verdict, result.headline, result.findings) == ("ok", says, ())


def test_figures_of_a_log_that_are_none() -> None:
    """A log may say anything: not a number, or less than nothing."""
    result = judged(finding("unbounded_shapes", seconds=float("nan"), severity="terrible"))
    assert result.findings[0].cost.seconds is None and result.findings[0].severity == "warning"
    json.dumps(result.headline, allow_nan=False)
