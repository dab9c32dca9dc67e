"""Loops that are found: few long calls, evaluations apart, servers, and what is charged for their turns."""

from __future__ import annotations

import math
import sys
import threading
import time
from types import FrameType
from typing import Any

import pytest
from helpers.threads import elsewhere
from helpers.waiting import until

from jaxobs import internals
from jaxobs.loops import call_places
from jaxobs.loops.call_places import FirstCalls
from jaxobs.loops.found_loops import FoundLoops
from jaxobs.loops.host_waits import HostWaits
from jaxobs.loops.loop_outputs import LoopOutputs
from jaxobs.loops.seen import Seen
from jaxobs.loops.thread_looks import LOOK_SECONDS, ThreadLooks
from jaxobs.loops.turns import CHARGED_SECONDS, EarlyLooks, Turns
from jaxobs.state.wall import Wall


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


class _Clocked:
    """A wall and turns by a clock of the test's."""

    def __init__(self) -> None:
        self.now = 100.0
        self.wall = Wall(lambda: self.now, age=0.0)
        self.turns = Turns()
        self.train, self.evaluate = Seen("train_step"), Seen("eval_step")
        self.train.category = "step"

    def call(self, seen: Seen, seconds: float) -> None:
        """A call, and what passes until the next."""
        call = (self.now, self.wall.elsewhere(), 0, seen)
        if self.turns.begun:
            self.turns.turn(self.wall, call, 0.0, self.now)
        else:
            self.turns.begin(self.wall, [call], self.now, None)
        self.turns.last, self.turns.apart = call[:2]
        self.turns.count += 1
        self.now += seconds

    def found(self, calls: list[tuple[Seen | None, float]], looks: EarlyLooks | None = None) -> None:
        """Calls, each with what passes after it, by which the loop is found, and one more now; None compiles."""
        made = []
        for seen, seconds in calls:
            if seen is None:
                self.compile(seconds)
            else:
                made.append((self.now, self.wall.elsewhere(), 0, seen))
                self.now += seconds
        made.append((self.now, self.wall.elsewhere(), 0, self.train))
        self.train.usual, self.turns.longest, self.turns.pace = 0.1, 0.3, 0.0
        self.turns.begin(self.wall, made, self.now, looks)

    def compile(self, seconds: float) -> None:
        """Something compiles."""
        scope = self.wall.enter("compile")
        self.now += seconds
        self.wall.leave(scope)

    def spent(self) -> dict[str, float]:
        """To the millisecond."""
        return {name: round(value, 3) for name, value in self.wall.seconds().items() if round(value, 3)}


def test_turns_are_charged_by_what_is_called() -> None:
    """Steps, evaluations until the next step, and the last turn for as long as turns take; then it rests."""
    clocked = _Clocked()
    clocked.now += 2.0
    clocked.found([(clocked.train, 0.1)] * 10)
    for _ in range(3):
        for _ in range(10):
            clocked.call(clocked.train, 0.1)
        for _ in range(2):
            clocked.call(clocked.evaluate, 0.5)
    clocked.call(clocked.train, 9.0)
    going = {"init": 2.0, "step": 4.1 + CHARGED_SECONDS, "eval": 3.0, "idle": 8.9 - CHARGED_SECONDS}
    assert clocked.spent() == pytest.approx(going)
    assert clocked.wall.category == "idle"
    clocked.call(clocked.train, 0.0)
    assert clocked.spent() == {"init": 2.0, "step": 4.1, "eval": 3.0, "idle": 8.9}


def test_what_was_called_before_a_loop_was_found_is_charged_too() -> None:
    clocked = _Clocked()
    clocked.now += 2.0
    train, evaluate = (clocked.train, 0.1), (clocked.evaluate, 0.3)
    clocked.found([train, (None, 1.5), train, train, evaluate, train, (clocked.train, 7.0), train])
    clocked.call(clocked.train, 0.0)
    assert clocked.spent() == {"init": 8.9, "step": 0.6, "eval": 0.3, "compile": 1.5}


def test_a_compilation_in_a_turn_makes_it_no_rest() -> None:
    clocked = _Clocked()
    clocked.found([(clocked.train, 0.01)] * 3)
    for _ in range(3):
        clocked.call(clocked.train, 0.02)
        clocked.compile(4.0)
        clocked.now += 0.03
        clocked.call(clocked.train, 0.01)
    clocked.call(clocked.train, 0.0)
    assert clocked.spent() == {"step": 0.21, "compile": 12.0}


@pytest.mark.parametrize(
    ("going", "resting", "step", "idle"),
    [
        (0.0, 0.0, 1.0, 5.9),  # nobody looked: of the last turn only its usual length is charged
        (0.0, 5.6, 1.0, 5.9),  # a rest
        (5.6, 0.0, 6.9, 0.0),  # it went on until the next call
        (3.6, 2.0, 4.9, 2.0),  # it went on, and then rested
    ],
)
def test_of_a_turn_that_takes_long_the_rest_is_what_was_seen_to_be_one(
    going: float, resting: float, step: float, idle: float
) -> None:
    """By the looks of the thread that looks, of this turn and no other."""
    for of, expected in ((True, {"step": step, "idle": idle}), (False, {"step": 1.0, "idle": 5.9})):
        clocked = _Clocked()
        clocked.found([(clocked.train, 0.1)] * 9)
        clocked.now += 6.0
        clocked.turns.overdue = (clocked.turns.last if of else 0.0, going, resting)
        clocked.call(clocked.train, 0.0)
        assert {name: clocked.spent().get(name, 0.0) for name in ("step", "idle")} == expected


class _Early:
    """Looks before the loop was found: 0.25 s in its input, and 5 s of a slow turn in which it rested."""

    def __init__(self) -> None:
        self.learnt: list[float] = []

    def waited(self, since: float) -> float:
        return 0.25

    def learn(self, began: float, ended: float) -> None:
        self.learnt.append(round(ended - began, 3))

    def seen(self, began: float, ended: float) -> tuple[float, float]:
        return ended - began - 5.0, 5.0


def test_of_a_slow_turn_before_the_loop_was_found_looks_tell_what_was_a_rest() -> None:
    clocked, early = _Clocked(), _Early()
    clocked.found([(clocked.train, 0.1), (clocked.train, 7.0), (clocked.evaluate, 0.3), (clocked.train, 0.2)], early)
    assert early.learnt == [0.1, 7.0, 0.2]
    clocked = _Clocked()
    clocked.found([(clocked.train, 0.1), (clocked.train, 7.0), (clocked.train, 0.2)], early)
    clocked.call(clocked.train, 0.0)
    assert clocked.spent() == {"init": 5.0, "step": 2.05, "input_wait": 0.25}


def test_what_the_loop_waited_for_its_input_is_no_step() -> None:
    clocked = _Clocked()
    clocked.found([(clocked.train, 0.1)] * 10, _Early())
    for _ in range(10):
        clocked.turns.waited += 0.06
        clocked.call(clocked.train, 0.1)
    clocked.call(clocked.train, 0.0)
    assert clocked.spent() == {"step": 1.15, "input_wait": 0.85}


class _Looked:
    """A thread that looks when the test says so, at this thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *computing: bool) -> None:
        self.asked, answers = 0, list(computing)

        def answer() -> bool:
            self.asked += 1
            return answers.pop(0)

        monkeypatch.setattr(internals, "computing", answer)
        self.turns = Turns()
        self.turns.category, self.turns.longest, self.turns.called = "step", 0.8, time.perf_counter() + 60.0
        self.wall = Wall(age=0.0)
        monkeypatch.setattr(self.wall, "thread", threading.get_ident())
        self.looks = ThreadLooks(self.turns, lambda: self.wall, HostWaits(), LoopOutputs())
        self.looks.stop()

    def turn(self, ago: float = 0.0) -> None:
        """A turn has begun so long ago."""
        self.turns.last, self.turns.overdue = time.perf_counter() - ago, (0.0, 0.0, 0.0)

    def look(self) -> str:
        _, going, resting = self.turns.overdue
        time.sleep(0.01)
        elsewhere(self.looks.look)
        return "goes on" if self.turns.overdue[1] > going else "rests" if self.turns.overdue[2] > resting else ""

    def call(self) -> None:
        """A call of the loop."""
        self.turns.place = call_places.place(sys._getframe(1))


@pytest.mark.parametrize(
    ("turns", "slow", "besides", "found"),
    [
        (6, (4, 5), (4,), ["", "", "", "", "rests", "goes on", "goes on"]),
        (5, (4,), (2, 4), ["", "", "", "", "", "rests", "goes on"]),  # what an earlier slow turn did is not usual
    ],
)
def test_a_slow_turn_goes_on_where_usual_turns_are(
    turns: int, slow: tuple[int, ...], besides: tuple[int, ...], found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a loaded machine each part of a turn takes longer. What no usual turn does is none of it."""
    looked = _Looked(monkeypatch, False, False, False)
    seen = []
    for number in range(turns):
        looked.turn(1.0 if number in slow else 0.0)
        if number in besides:
            looked.turns.slow = looked.turns.last
            seen.append(looked.look())
        seen.append(looked.look())
        looked.call()
    assert seen == found
    looked.turn(1.0)
    assert looked.look() == "rests"  # behind the loop


def test_the_last_turn_is_as_long_as_it_was_seen_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that waits for its devices at the end makes no call any more, and one that rests is at rest."""
    clocked, looked = _Clocked(), _Looked(monkeypatch, True, False)
    clocked.found([(clocked.train, 0.1)] * 3)
    looked.wall, looked.turns.place = clocked.wall, ((looked.look.__func__.__code__, 0),)  # type: ignore[attr-defined]
    clocked.wall.thread = threading.get_ident()
    for seconds, step, category in ((4.0, 4.3, "step"), (2.0, 4.3, "idle")):
        clocked.now += seconds
        looked.turn(1.0)
        looked.look()
        assert clocked.spent()["step"] == step and clocked.wall.category == category


def test_early_looks_are_sorted_when_the_loop_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = _Looked(monkeypatch)
    looked.turns.category = None
    edges = []
    for number in range(4):
        edges.append(time.perf_counter())
        if number == 2:
            looked.look()
        looked.look()
        looked.call()
    edges.append(time.perf_counter())
    assert looked.looks.seen(edges[0], edges[-1])[0] == 0.0
    for number in (0, 1):
        looked.looks.learn(edges[number], edges[number + 1])
    going, resting = looked.looks.seen(edges[2], edges[3])
    assert going > 0.0 and resting > 0.0
    assert looked.looks.seen(edges[3], edges[4])[1] == 0.0
    assert looked.looks.waited(edges[0]) == 0.0


def test_a_pause_before_the_loop_was_known_goes_on_while_devices_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the end of an epoch, where the host waits for what it has dispatched. They are asked only in a pause, and
    of one in which they are idle not again."""
    looked = _Looked(monkeypatch, True, False)
    looked.turns.category = None
    looked.turns.called = time.perf_counter()
    looked.look()
    assert looked.asked == 0
    looked.turns.called = time.perf_counter() - 1.0
    edges = [time.perf_counter()]
    for _ in range(3):
        looked.look()
        edges.append(time.perf_counter())
    looked.call()
    assert looked.asked == 2
    assert looked.looks.seen(edges[0], edges[1])[1] == 0.0
    assert looked.looks.seen(edges[1], edges[3])[0] == 0.0


def test_devices_are_asked_while_a_turn_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before, and of a turn in which they were idle not again: what they were given is part of the steps."""
    looked = _Looked(monkeypatch, True, True, False)
    looked.turns.place = ((looked.look.__func__.__code__, 0),)  # type: ignore[attr-defined]
    looked.turn()
    assert looked.look() == "" and looked.asked == 0
    looked.turn(1.0)
    assert [looked.look() for _ in range(5)] == ["goes on"] * 2 + ["rests"] * 3
    assert looked.asked == 3


def test_a_thread_looks_until_it_is_stopped() -> None:
    turns, asked = Turns(), []
    turns.called = time.perf_counter()

    def wall() -> None:
        asked.append(time.perf_counter())

    looks = ThreadLooks(turns, wall, HostWaits(), LoopOutputs())
    until(lambda: len(asked) >= 3)
    looks.stop()
    time.sleep(2 * LOOK_SECONDS)
    count = len(asked)
    time.sleep(3 * LOOK_SECONDS)
    assert len(asked) == count


def test_a_call_began_when_the_thread_was_first_seen_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = _Looked(monkeypatch)
    inside: list[float] = []

    def call() -> call_places.Place:
        inside.append(time.perf_counter())
        for _ in range(3):
            looked.look()
        return call_places.place(sys._getframe(1))

    def again() -> call_places.Place:
        return looked_at(call_places.place(sys._getframe(1)))

    def looked_at(place: call_places.Place) -> call_places.Place:
        looked.looks._here = (place, began)
        return place

    began, now = 50.0, 100.0
    here = again()
    assert looked.looks.began(here, 40.0, now) == began
    assert looked.looks.began(here, 60.0, now) == math.nextafter(60.0, now)
    assert looked.looks.began(call(), 40.0, now) == now


def test_a_thread_is_adopted_until_somebody_declares_steps() -> None:
    """The time so far stays whole; with a declared step it is over."""
    clocked = _Clocked()
    wall = clocked.wall
    clocked.now += 1.0

    def train() -> None:
        assert wall.adopt() and wall.adopt()
        clocked.now += 2.0
        assert wall.turned(2.0)

    elsewhere(train)
    assert clocked.spent() == {"init": 1.0, "step": 2.0}
    wall.leave(wall.enter("step"))
    assert wall.thread == threading.get_ident()
    assert elsewhere(wall.adopt) is False
