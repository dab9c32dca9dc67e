"""Steps: exact counts, intervals that are what a step takes, slow ones told, and nothing in the program's way."""

import json
import pathlib
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.clock import Clock
from helpers.made_by_hand import compilation
from helpers.threads import at_once

import jaxobs
from jaxobs.base import guard
from jaxobs.facts.compilations import OTHER
from jaxobs.facts.events import Event, plain
from jaxobs.facts.loops import LoopState
from jaxobs.facts.standing import Standing
from jaxobs.facts.steps import Step
from jaxobs.sources import loops as loops_source
from jaxobs.sources.loops import LoopsSource
from jaxobs.state.loops import MOST_LOOPS, MOST_RECENT, MOST_WAITING, RHYTHM, Loop, Loops
from jaxobs.state.store import Store, current
from jaxobs.state.wall import Wall

pytestmark = pytest.mark.usefixtures("fresh")


def _loops() -> dict[str, LoopState]:
    return {each.name: each for each in current().snapshot(fresh=False).loops}


def test_counts_are_exact_when_threads_make_steps_of_one_loop() -> None:
    def work(_: int) -> None:
        for _ in range(3 * MOST_WAITING // 2):
            with jaxobs.step("train", items=2):
                pass

    at_once(4, work)
    loop = _loops()["train"]
    assert (loop.steps, loop.items, loop.failed) == (6 * MOST_WAITING, 12 * MOST_WAITING, 0)
    assert loop.seconds is not None and sum(loop.seconds.counts) == loop.steps
    assert len(loop.recent) <= MOST_RECENT


def test_the_interval_is_the_step_whether_the_time_passes_inside_the_scope_or_between_two(clock: Clock) -> None:
    """Half of each step passes before the scope; times, mean and rates are of whole ones."""
    for _ in range(25):
        clock.sleep(0.01)
        with jaxobs.step("train", items=64):
            clock.sleep(0.01)
    loop = _loops()["train"]
    assert loop.steps == 25 and loop.recent == pytest.approx((0.02,) * 24, rel=1e-6)
    assert (loop.p50_seconds, loop.least_seconds) == pytest.approx((0.02, 0.02), rel=0.1)
    assert (loop.mean_seconds, loop.p99_seconds) == pytest.approx((0.02, 0.02), rel=1e-6)
    assert (loop.steps_per_second, loop.items_per_second) == pytest.approx((50, 3200), rel=1e-6)


def test_evaluations_and_checkpoints_between_two_steps_are_neithers(clock: Clock) -> None:
    """A wait for input between them is the step's, as is what happens within the scope; some is known afterwards."""
    wall, took = current().part(Wall), []
    for category in ("idle", "eval", "checkpoint", "input_wait", "moved", "idle"):
        scope = None if category == "moved" else wall.enter(category)
        between = clock.sleep(0.05)
        if category == "moved":
            wall.move("checkpoint", between)
        wall.leave(scope, "checkpoint" if category == "idle" else None)
        with jaxobs.step("train"):
            took.append(clock.sleep(0.02) + (between if category == "input_wait" else 0.0))
    assert _loops()["train"].recent == pytest.approx(took[1:], rel=1e-6)


def test_a_step_that_returns_before_the_device_is_done_has_its_interval(clock: Clock) -> None:
    """The host runs ahead and waits every fourth step: the mean is what a step takes, and none of them is slow."""
    for number in range(97):
        with jaxobs.step("train"):
            clock.sleep(0.0005)  # the dispatch
        if number % 4 == 3:
            clock.sleep(4 * 0.01 - 4 * 0.0005)  # what the device still has to do
    loop = _loops()["train"]
    assert (loop.mean_seconds, loop.slow) == (pytest.approx(0.01, rel=0.05), 0)


def test_the_programs_exception_passes_as_it_is_and_its_step_does_not_count(clock: Clock) -> None:
    error = ValueError("the program's own")
    with jaxobs.step("train"):
        clock.sleep(0.02)
    with pytest.raises(ValueError) as caught, jaxobs.step("train"):
        clock.sleep(0.05)
        raise error
    assert caught.value is error
    with jaxobs.step("train"):
        clock.sleep(0.02)
    loop = _loops()["train"]
    assert (loop.steps, loop.failed, loop.recent) == (2, 1, pytest.approx((0.02,), rel=1e-6))


def test_nested_loops_count_each_for_itself(clock: Clock) -> None:
    for _ in range(3):
        with jaxobs.step("outer"):
            for _ in range(4):
                with jaxobs.step("inner"):
                    clock.sleep(0.005)
    loops = _loops()
    assert (loops["outer"].steps, loops["inner"].steps) == (3, 12)
    assert current().part(Wall).category == "idle"
    assert current().part(Wall).seconds()["step"] == pytest.approx(0.06, rel=1e-6)


def test_each_turn_of_an_iterator_is_a_step_and_the_one_that_break_ends_counts(clock: Clock) -> None:
    """Elements, items and the end of the loader are as they were; what the loader takes is a wait for input."""
    closed: list[bool] = []

    def loader() -> Iterator[list[int]]:
        try:
            for number in range(10):
                clock.sleep(0.01)
                yield [number] * 3
        finally:
            closed.append(True)

    assert [batch[0] for batch in jaxobs.steps(loader(), "whole", items=len)] == list(range(10))
    for batch in jaxobs.steps(loader(), "short", items=7):
        clock.sleep(0.02)
        if batch[0] == 2:
            break
    loops = _loops()
    assert (loops["whole"].steps, loops["whole"].items) == (10, 30)
    assert (loops["short"].steps, loops["short"].items) == (3, 21)
    assert loops["short"].recent == pytest.approx((0.03, 0.03), rel=1e-6)
    assert len(closed) == 2
    assert current().part(Wall).category == "idle"
    assert current().part(Wall).seconds()["input_wait"] == pytest.approx(0.13, rel=1e-6)


def test_what_a_loader_raises_reaches_the_program() -> None:
    def loader() -> Iterator[int]:
        yield 1
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        for _ in jaxobs.steps(loader()):
            pass
    assert _loops()["train"].steps == 1
    assert current().part(Wall).category == "idle"


def test_items_may_be_told_within_the_step_and_an_array_on_a_device_is_not_read() -> None:
    """Numbers of NumPy are numbers; what would have to be waited for is passed over, and so is nonsense."""
    import jax.numpy as jnp

    for items in (3, 2.5, np.int64(4), jnp.ones(()), -1, float("nan"), "many"):
        with jaxobs.step("train") as scope:
            scope.items = items
    assert _loops()["train"].items == 9.5


def test_a_name_that_is_none_is_told_at_once() -> None:
    with pytest.raises(TypeError, match=r"needs the name of a loop.*got function"):
        jaxobs.step(_loops)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"got int: 3"):
        jaxobs.steps([1], 3)  # type: ignore[arg-type]


def test_loops_are_bounded_and_later_ones_share_a_name() -> None:
    """None of their steps is lost, and what the bound cut off is counted."""
    for number in range(MOST_LOOPS + 3):
        for _ in range(2):
            with jaxobs.step(f"loop {number}"):
                pass
    loops = _loops()
    assert len(loops) == MOST_LOOPS + 1 and loops[OTHER].steps == 6
    LoopsSource(current()).sample()
    assert current().snapshot(fresh=False).observer.dropped["loops"] == 6


def test_how_the_process_stands_is_logged_once_a_minute_and_not_kept(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the first steps at once, so that a process killed early leaves it; not where nothing is logged."""
    store = current()
    source, told = LoopsSource(store), list[Event]()
    monkeypatch.setattr(store, "settings", replace(store.settings, event_log=str(tmp_path / "log"), sample_interval=0))
    store.subscribe(told.append)

    def go_on() -> Standing | None:
        with jaxobs.step("train"):
            pass
        source.sample()
        assert isinstance(told[-1], Step)
        return told[-1].standing

    first = go_on()
    assert first is not None and first.wall is not None and [each.name for each in first.loops] == ["train"]
    assert go_on() is None
    monkeypatch.setattr(loops_source, "STANDING_SECONDS", 0.0)
    again = go_on()
    assert again is not None and again.loops[0].steps == 3
    monkeypatch.setattr(store, "settings", replace(store.settings, event_log=None))
    assert go_on() is None
    assert all(each.standing is None for each in store.events(kind="step")[0] if isinstance(each, Step))


def test_what_is_logged_of_how_a_process_stands_is_bounded() -> None:
    store = current()
    for loop in range(20):
        for _ in range(200):
            with jaxobs.step(f"loop {loop}"):
                pass
    for name in range(40):
        for _ in jaxobs.data([{str(leaf): 1.0 for leaf in range(100)}] * 3, f"input {name}"):
            pass
    for name in range(200):
        jaxobs.watch(**{f"value_{name}": 1.0})
    standing = store.standing()
    assert len(standing.inputs) == 21
    assert len(json.dumps(plain(standing))) < 60_000


def test_a_slow_step_is_told_with_what_happened_in_it(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(loops_source, "time", SimpleNamespace(time=clock.time, monotonic=clock))
    store = current()
    source = LoopsSource(store)
    store.record(compilation("train.before", time=clock.time() - 1))
    for number in range(100):
        with jaxobs.step("train", items=8):
            clock.sleep(0.15 if number == 80 else 0.03 if number == 90 else 0.002)
            if number == 80:
                store.record(compilation("train.evaluate", time=clock.time(), cause="shape"))
    source.ending()
    events = [each for each in store.events(kind="step")[0] if isinstance(each, Step)]
    slow, together = events
    assert (slow.slow, slow.count, slow.last, slow.compilations) == (True, 1, 81, 1)
    assert slow.seconds == pytest.approx(0.15)
    assert slow.reason is not None and "`train.evaluate` compiled in 0.33 s (shape)." in slow.reason
    assert (together.slow, together.count, together.last, together.items) == (False, 100, 100, 800)
    assert together.most_seconds == slow.seconds
    assert together.seconds == pytest.approx(0.15 + 0.03 + 98 * 0.002)
    assert together.median_seconds == pytest.approx(0.002)
    assert _loops()["train"].slow == 1
    source.ending()
    assert len(store.events(kind="step")[0]) == 2


@pytest.mark.parametrize(
    ("rhythm", "stall"), [([0.2], 20.0), ([0.001] * 9 + [2.0], 60.0), ([0.001] * 32 + [0.2] * 67 + [6.4], 60.0)]
)
def test_a_host_that_waits_for_its_device_now_and_then_has_no_slow_steps(rhythm: list[float], stall: float) -> None:
    loop = Loop("train", current().part(Wall), dict)
    ended = 0.0

    def make(times: list[float]) -> int:
        nonlocal ended
        for seconds in times:
            loop.marks.append((0, ended, ended + seconds, 0.0, 0.0, None, True, None))
            ended += seconds
        return loop.frozen().slow

    before = make(rhythm * max(10, 400 // len(rhythm)))
    assert before <= RHYTHM + 4
    assert make(rhythm * 20) == before
    assert make([stall]) == before + 1


def test_a_reset_forgets_the_loops() -> None:
    for _ in range(2):
        with jaxobs.step("train"):
            pass
        assert _loops()["train"].steps == 1
        current().reset()
        assert _loops() == {}


def test_a_failure_of_ours_does_not_reach_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    guard.raise_internal_errors(False)

    def fails(*_: Any) -> Any:
        raise RuntimeError("ours")

    monkeypatch.setattr(Wall, "apart", fails)
    ran = []
    for number in jaxobs.steps(range(3)):
        with jaxobs.step("other"):
            ran.append(number)
    assert ran == [0, 1, 2]
    assert guard.internal_errors()["step"] == 6


def test_a_store_of_its_own_has_no_loops() -> None:
    with jaxobs.step("train"):
        pass
    assert Store().snapshot(fresh=False).loops == ()
    assert current().part(Loops).steps() == {"train": 1}


def test_the_history_has_the_step_times_of_the_whole_run(clock: Clock) -> None:
    """Many more steps than the recent ones; the first step, which may compile, has no step before it and is not in."""
    for _ in range(3 * MOST_RECENT):
        with jaxobs.step("train"):
            clock.sleep(0.1)
    for _ in range(MOST_RECENT):
        with jaxobs.step("train"):
            clock.sleep(0.3)
    history = _loops()["train"].history
    assert [mean for _, mean, _ in history][:2] == [0.1, 0.1] and history[-1][1:] == (0.3, 0.3)
    assert history[-1][0] - history[0][0] == pytest.approx(0.6 * MOST_RECENT, rel=0.05)
