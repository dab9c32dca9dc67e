"""Loops that are found: few long calls, evaluations apart, and servers."""

import sys
import time
from types import FrameType
from typing import Any

import pytest

from jaxobs.loops import call_places
from jaxobs.loops.call_places import FirstCalls
from jaxobs.loops.found_loops import FoundLoops
from jaxobs.loops.seen import Seen


def _here() -> FrameType:
    return sys._getframe(1)


def _calls(times: list[float], *compiled: float) -> int | None:
    """At which call of one place a loop is seen."""
    first = FirstCalls(compiled)
    for number, when in enumerate(times, 1):
        if first.add(when, _here()):
            return number
    return None


@pytest.mark.parametrize(
    ("times", "compiled", "found"),
    [
        ([0.0, 1.0, 2.0], (), 3),
        ([1.0, 2.0], (0.0,), 2),  # the call that compiled is one
        ([0.0, 0.7, 1.4], (), None),  # together too short
        ([0.0, 0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.1], (), 8),
        ([0.0, 0.01, 0.02, 9.0, 9.01], (), None),
        ([0.0, 1.0, 9.0], (), None),  # not alike
        ([0.0, 9.0, 10.0, 11.0], (), 4),
    ],
)
def test_few_long_calls_are_a_loop(times: list[float], compiled: tuple[float, ...], found: int | None) -> None:
    """Three that are alike, from one place, of two seconds together."""
    assert _calls(times, *compiled) == found


def test_calls_from_several_places_are_no_loop() -> None:
    """Nor is a cell of a notebook that is run three times, whose code is equal each time; a loop in it is one."""
    first = FirstCalls()
    assert not any([first.add(0.0, _here()), first.add(1.0, _here()), first.add(2.0, _here())])
    found: list[bool] = []
    namespace: dict[str, Any] = {"found": found, "here": _here, "first": FirstCalls()}
    for number in range(3):
        namespace["number"] = number
        exec(compile("found.append(first.add(float(number), here()))", "<cell>", "exec"), namespace)
    assert found == [False, False, False]
    cell = "for number in range(3):\n    found.append(first.add(10.0 + number, here()))"
    exec(compile(cell, "<cell>", "exec"), namespace)
    assert found[-1]


def test_what_evaluates_is_known_by_its_name() -> None:
    yes = ("eval_step", "m.Trainer.evaluate", "f.<locals>.test_step", "model.evalStep", "validation", "val_loss")
    no = ("train_step", "m.evaluate.<locals>.step", "latest", "interval", "retrieval", "contest_step", "value")
    training = ("predict", "m.Model.predict", "predict_step", "accuracy")
    every = (*yes, *no, *training, "unpredictable")
    assert [each for each in every if call_places.evaluates(each)] == list(yes)
    assert [each for each in every if call_places.evaluates(each, training=True)] == [*yes, *training]


def test_what_a_server_calls_is_known_by_its_stack() -> None:
    code = "def handle(check): return check(frame())"
    for name, served in (("wsgiref.handlers", True), ("flask.app", True), ("tornado.platform", False), ("mine", False)):
        namespace: dict[str, Any] = {"__name__": name, "frame": _here}
        exec(code, namespace)
        assert namespace["handle"](call_places.is_served) is served, name


def _loops(*functions: Seen) -> dict[str, Any]:
    for each in functions:
        each.fold()
    found = FoundLoops()
    found.see(
        functions, lambda calls: {name: made * (1.0 if "train" in name else 0.1) for name, made in calls.items()}, {}
    )
    return {each.name: each for each in found.frozen()}


@pytest.mark.parametrize("name", ("eval_step", "compare"))
def test_evaluations_are_apart_from_training(name: str) -> None:
    """Ten calls each epoch, whatever they are called: their time is in no step, nor their calls in the loop's."""
    train, metrics, evaluate = Seen("train_step"), Seen("metrics"), Seen(name)
    now = 0.0
    for _ in range(4):
        for _ in range(50):
            train.marks.append((now, 0, 0.0, 1))
            metrics.marks.append((now + 0.001, 0, 0.0, 1))
            now += 0.008
        for _ in range(10):
            evaluate.marks.append((now, 0, 0.0, 1))
            now += 0.3
    (loop,) = _loops(train, metrics, evaluate).values()
    assert loop.name == "train_step" and loop.calls == pytest.approx({"train_step": 1.0, "metrics": 1.0}, rel=0.01)
    assert loop.mean_seconds == pytest.approx(0.008) and loop.p99_seconds == pytest.approx(0.008)


def test_the_history_of_a_loop_has_each_turn_once() -> None:
    """Samples overlap, for a loop keeps its recent turns; the function that gives it its name may change."""
    train, other, found, now = Seen("train_step"), Seen("other"), FoundLoops(), 0.0
    changes = (other, train, other, train)
    for seconds, first in zip((0.01, 0.01, 0.05, 0.05), changes, strict=True):
        for _ in range(100):
            train.marks.append((now, 0, 0.0, 1))
            other.marks.append((now + 0.003, 0, 0.0, 1))
            now += seconds
        for function in (train, other):
            function.fold()
            function.met = 0.0 if function is first else 1.0
        found.see((train, other), lambda calls: dict.fromkeys(calls, 1.0), {})
    (loop,), (kept,) = found.frozen(), found.charged()
    means = [mean for _, mean, _ in loop.history]
    assert loop.name == "train_step" and means[0] == 0.01 and means[-1] == 0.05 and means == sorted(means)
    assert 0 <= sum(made for made, _, _ in kept.history._spans.values()) - 399 <= len(changes)


def test_what_is_called_now_and_then_and_quickly_is_part_of_the_loop() -> None:
    """A target network that is updated every tenth step; two networks by turns; gradients that are accumulated."""
    train, update, other = Seen("train_step"), Seen("update_target"), Seen("discriminator")
    now = 0.0
    for turn in range(200):
        train.marks.append((now, 0, 0.0, 1))
        other.marks.append((now + 0.003, 0, 0.0, 1))
        if turn % 10 == 9:
            update.marks.append((now + 0.006, 0, 0.0, 1))
            now += 0.001
        now += 0.01
    (loop,) = _loops(train, other, update).values()
    assert loop.calls == pytest.approx({"train_step": 1.0, "discriminator": 1.0, "update_target": 0.1}, rel=0.06)
    assert loop.mean_seconds == pytest.approx(0.0101, rel=0.01)


def test_few_long_calls_are_shown_with_an_evaluation_between() -> None:
    train, evaluate = Seen("train_epoch"), Seen("evaluate")
    now = time.perf_counter() - 25.0
    for _ in range(5):
        for seen, seconds in ((train, 4.0), (evaluate, 1.0)):
            seen.marks.append((now, 0, 0.0, 1))
            now += seconds
            seen.long = True
    (loop,) = _loops(train, evaluate).values()
    assert loop.name == "train_epoch" and loop.steps == 5
