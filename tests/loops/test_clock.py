"""The clock: what a second is, by what a look sees; and what was seen before a loop was known."""

import sys
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.clock import ByHand
from helpers.threads import elsewhere
from helpers.waiting import until

from jaxobs import internals
from jaxobs.loops.call_places import Place
from jaxobs.loops.clock import FEWEST_LOOKS, MOST_SHOWN, Clock
from jaxobs.loops.loop_outputs import LoopOutputs
from jaxobs.loops.positions import IN_INPUT, IN_LIBRARY
from jaxobs.loops.seen import Seen
from jaxobs.loops.spots import Spot
from jaxobs.state.wall import Wall


@dataclass
class Calls:
    """Calls that were seen."""

    _wall: Wall | None
    functions: dict[str, Seen] = field(default_factory=dict)
    latest: Seen | None = None
    threads: set[int] = field(default_factory=set)
    serves: bool = False


class Array:
    """An array of a device that a test lets compute."""

    ready = False

    def is_deleted(self) -> bool:
        return False

    def is_ready(self) -> bool:
        return self.ready


class Program:
    """A program on this thread, at which a clock looks when the test says so."""

    def __init__(self) -> None:
        self.clock = ByHand()
        self.wall = Wall(self.clock, age=0.0)
        self.wall.thread = threading.get_ident()
        self.train, self.evaluate = Seen("train"), Seen("evaluate")
        self.calls = Calls(self.wall, {each.name: each for each in (self.train, self.evaluate)})
        self.looks = Clock(self.calls, LoopOutputs())
        self.looks.stop()
        self.runs = False
        self.looks._running.runs = lambda thread, *, probe: self.runs  # type: ignore[method-assign]

    def look(self, seconds: float = 1.0) -> None:
        """Lets so many seconds pass; then the clock looks."""
        self.clock.now += seconds
        elsewhere(self.looks.look)

    def call(self, seen: Seen | None = None, seconds: float = 0.0, output: Array | None = None) -> None:
        """A call of a function, which takes so long, with a look while it does."""
        seen = seen or self.train
        if seconds:
            self.look(seconds)
        seen.marks.append((time.perf_counter(), 0, 0.0, 0))
        seen.called(time.perf_counter(), sys._getframe(1))
        seen.output = None if output is None else weakref.ref(output)
        self.calls.latest = seen

    def found(self) -> None:
        """The loop is found."""
        self.train.category = "step"
        elsewhere(lambda: self.looks.found([self.train], 1.0))

    def batches(self, count: int, seconds: float) -> Iterator[int]:
        for number in range(count):
            self.look(seconds)
            yield number

    def lines(self) -> list[tuple[str, str, float, float]]:
        """To the millisecond and the permille."""
        return [
            (each.line, each.category, round(each.seconds, 3), round(each.share, 3))
            for each in self.looks.host_lines("train")
        ]

    def spent(self) -> dict[str, float]:
        """To the millisecond."""
        return {name: round(value, 3) for name, value in self.wall.seconds().items() if round(value, 3)}


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    """A program, one second old. What other tests have left to compute does not matter."""
    monkeypatch.setattr(internals, "computing", lambda _: False)
    program = Program()
    program.look()
    for seen in program.calls.functions.values():
        seen.began = time.perf_counter()
    return program


def test_seconds_are_what_a_look_sees(program: Program) -> None:
    """In the loop's input, in the call, blocked in the body, in Python, and behind the loop."""
    for number in program.batches(5, 2.0):
        program.call(seconds=1.0 if number else 0.0)
        if number == 1:
            program.found()
        if number == 3:
            program.look(5.0)
            program.runs = True
            program.look(7.0)
            program.runs = False
    program.look(3.0)
    assert program.spent() == {"init": 1.0, "step": 4.0, "input_wait": 10.0 + 5.0, "idle": 7.0 + 3.0}


def test_a_wait_of_many_turns_is_one_while_it_lasts(program: Program) -> None:
    """Seconds after a look count as what it saw, unless the looks end."""
    for number in range(3):
        program.call(seconds=1.0)
        program.found()
        if number == 2:
            for _ in range(10):
                program.look(2.0)
            assert program.wall.category == "input_wait"
            program.clock.now += 1.5
            assert program.spent()["input_wait"] == 21.5
            program.clock.now += 100.0
            assert program.spent()["input_wait"] <= 24.0
            program.look(0.0)
            assert program.spent()["input_wait"] == 121.5


def test_while_a_device_computes_seconds_are_steps(program: Program) -> None:
    """Seconds are evaluations if one is computed, and no step, or if Python runs meanwhile. Nothing keeps the array."""
    program.evaluate.category = "eval"
    array, before = Array(), Array()
    for number in range(3):
        program.call(output=before if number == 1 else array)
        if number == 0:
            program.found()
        if number == 1:
            program.call(program.evaluate, output=array)
            program.look(3.0)
            program.runs = True
            program.look(4.0)
            program.runs, before.ready = False, True
        program.look(2.0)
        array.ready = number == 1
    assert program.spent() == {"init": 1.0, "step": 2.0 + 3.0, "eval": 4.0 + 2.0, "input_wait": 2.0}
    program.call(output=Array())
    program.look(1.0)
    assert program.wall.category != "step"


def test_evaluations_are_where_evaluations_are_called(program: Program) -> None:
    """Python between the calls of the second one is known; all are called from the line that calls the steps, too."""
    program.evaluate.category = "eval"

    def evaluation(number: int) -> None:
        program.runs = number > 0
        batches(program.evaluate, 2.0)

    def batches(seen: Seen, seconds: float) -> None:
        for _ in program.batches(2, 0.0):
            program.look(seconds) if program.runs else None
            program.call(seen, seconds)

    for number in range(3):
        program.runs = False
        batches(program.train, 1.0)
        if number == 0:
            program.found()
        evaluation(number)
    assert program.spent() == {"init": 1.0, "step": 6.0, "eval": 10.0, "idle": 8.0, "input_wait": 2.0}


def test_jax_is_asked_whether_it_computes(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while the thread runs, nor where other threads call JAX, and not again soon if the answer took long."""
    asked: list[int] = []

    def computing(most: int) -> bool:
        began = time.thread_time()
        while time.thread_time() - began < 0.1:
            pass
        asked.append(most)
        return True

    monkeypatch.setattr(internals, "computing", computing)
    program.runs = True
    program.call()
    program.found()
    program.look()
    program.runs, program.calls.threads = False, {-1}
    program.look()
    assert not asked and program.spent() == {"init": 1.0, "idle": 1.0, "input_wait": 1.0}
    program.calls.threads = {threading.get_ident()}
    for _ in range(4):
        program.look()
    assert program.spent()["step"] == 4.0 and len(asked) == 1


def test_a_scope_that_is_open_comes_first(program: Program) -> None:
    """Seconds that passed before it are in the next look."""
    for number in range(3):
        program.call()
        program.found()
        if number == 1:
            program.clock.now += 1.0
            scope = program.wall.enter("checkpoint")
            program.look(4.0)
            program.wall.leave(scope)
            program.look(1.0)
    assert program.spent() == {"init": 1.0, "checkpoint": 4.0, "input_wait": 2.0}


def _spot(line: str, call: Place | None, *, reads: bool) -> Spot:
    """A spot in JAX, in a function that this call calls; outside of all loops for no call."""
    return Spot(((_spot.__code__, 0), *(call or ())), line, in_jax=True, reads=reads, waits=False, at=(0, 0))


def test_what_a_line_dispatches_to_read_it_is_part_of_the_reading(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As elements that are read one by one; it is known with the first read. Other lines dispatch."""
    program.call()
    program.found()
    call = program.train.place
    spots = [_spot("a.py:1", call, reads=reads) for reads in (False, False, True, False)]
    spots.append(_spot("a.py:2", call, reads=False))
    monkeypatch.setattr(program.looks._spots, "of", lambda _: spots.pop(0))
    transfers = []
    for _ in range(5):
        program.look(1.0)
        transfers.append(program.spent().get("transfer", 0.0))
    assert transfers == [0.0, 0.0, 3.0, 4.0, 4.0]
    assert program.spent()["step"] == 1.0
    assert program.lines() == [("a.py:1", "transfer", 4.0, 0.8), ("a.py:2", "step", 1.0, 0.2)]
    assert program.looks.host_lines("another") == ()


def test_operations_outside_of_all_loops_are_no_steps(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a conversion of the trained model; a line that turns out to read results dispatched them to read them."""
    program.call()
    program.found()
    spots = [_spot("a.py:1", None, reads=False), *(_spot("a.py:2", None, reads=reads) for reads in (False, True))]
    monkeypatch.setattr(program.looks._spots, "of", lambda _: spots.pop(0))
    program.look(3.0)
    program.look(2.0)
    assert program.spent() == {"init": 1.0, "idle": 5.0}
    program.look(1.0)
    assert program.spent() == {"init": 1.0, "idle": 3.0, "transfer": 3.0}
    assert program.looks.dispatching("train") is None


def test_the_first_line_of_each_category_is_shown(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of days that reads one by one for half a minute now: a small part, and the line that holds it up."""
    program.call()
    program.found()
    seconds = {"a.py:1": 9000.0, "a.py:2": 30.0, "a.py:3": 20.0}
    spots = [_spot(line, program.train.place, reads=line != "a.py:1") for line in seconds]
    monkeypatch.setattr(program.looks._spots, "of", lambda _: spots.pop(0))
    for spent in seconds.values():
        program.look(spent)
    assert program.lines() == [("a.py:1", "step", 9000.0, 0.994), ("a.py:2", "transfer", 30.0, 0.003)]


def test_the_seconds_of_lines_add_up_to_the_account(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds from before the loop was known count less if some became a compilation's, and dispatching may become
    reading. Lines with the most seconds are listed."""
    program.call()
    call = program.train.place
    spots = [_spot("a.py:1", call, reads=False), _spot("a.py:2", call, reads=False)]
    monkeypatch.setattr(program.looks._spots, "of", lambda _: spots[0])
    for _ in range(4):
        program.look(2.0)
        spots.reverse()
    program.wall.move("compile", 4.0)
    program.found()
    assert program.lines() == [("a.py:1", "step", 2.5, 0.278), ("a.py:2", "step", 2.5, 0.278)]
    assert program.spent() == {"compile": 4.0, "step": 5.0}
    spots[0] = _spot("a.py:1", program.train.place, reads=True)
    program.look(1.0)
    assert program.lines() == [("a.py:1", "transfer", 3.5, 0.35), ("a.py:2", "step", 2.5, 0.25)]
    assert program.spent() == {"compile": 4.0, "step": 2.5, "transfer": 3.5}
    for number in range(MOST_SHOWN):
        spots[0] = _spot(f"b.py:{number}", call, reads=True)
        program.look(1.0 if number else 0.001)
    assert program.spent() == {"compile": 4.0, "step": 2.5, "transfer": 3.501 + MOST_SHOWN - 1}
    lines = [line for line, *_ in program.lines()]
    assert lines == ["a.py:1", "a.py:2", *(f"b.py:{number}" for number in range(1, MOST_SHOWN - 1))]


def test_a_line_that_calls_what_compiles_is_listed(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the seconds that JAX told on this thread; small ones are not listed, nor those of another thread."""
    program.call()
    monkeypatch.setattr(program.looks._spots, "of", lambda _: _spot("a.py:1", program.train.place, reads=False))
    program.found()
    program.look(10.0)
    program.wall.compiled_at("a.py:1", {"trace": 0.5, "lower": 0.7, "compile": 4.0})
    program.wall.compiled_at("a.py:1", {"trace": 0.1, "cache_load": 2.0})
    program.wall.compiled_at("a.py:2", {"compile": 0.1})
    program.wall.compiled_at(None, {"compile": 9.0})
    elsewhere(lambda: program.wall.compiled_at("a.py:3", {"compile": 9.0}))
    told = {(line, category): seconds for line, category, seconds, _ in program.lines()}
    assert told == {
        ("a.py:1", "step"): 10.0, ("a.py:1", "compile"): 4.0, ("a.py:1", "cache_load"): 2.0, ("a.py:1", "trace"): 1.3,
    }  # fmt: skip


def test_an_array_that_has_just_arrived_was_waited_for(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a line that mostly waits for a device, a read of what is there is the end of a wait; elsewhere, a read."""
    monkeypatch.setattr(program.looks._spots, "of", lambda _: _spot("a.py:1", program.train.place, reads=True))
    array = Array()
    program.call(output=array)
    program.found()
    for array.ready in (False, False, False, True):
        program.look(1.0)
    assert program.spent() == {"init": 1.0, "step": 4.0}
    for _ in range(5):
        program.look(1.0)
    assert program.spent() == {"init": 1.0, "step": 3.0, "transfer": 6.0}


@pytest.mark.parametrize("size", [1, 600])
def test_python_that_a_program_calls_back_holds_devices_up(size: int, program: Program) -> None:
    """On the thread that called the program, and on one of the runtime's, where the program takes long."""

    def look(x: Any) -> Any:
        program.look(2.0)
        return np.asarray(x)

    @jax.jit
    def step(x: Any) -> Any:
        for _ in range(8):
            x = x @ x
        return jax.pure_callback(look, x, x)

    program.call()
    program.found()
    jax.block_until_ready(step(jnp.zeros((size, size))))
    assert program.spent() == {"init": 1.0, "idle": 2.0}


def test_the_code_of_a_library_around_the_call_is_part_of_a_step(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program.looks, "_position", lambda *_: IN_LIBRARY)
    program.call()
    program.found()
    program.runs = True
    program.look(2.0)
    program.runs = False
    program.look(3.0)
    assert program.spent() == {"init": 1.0, "step": 2.0, "input_wait": 3.0}


@pytest.mark.parametrize("position", [IN_LIBRARY, IN_INPUT])
def test_reads_in_turns_of_a_usual_length_are_waits_of_the_host(
    position: str, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share is of all the time of the turns, with the waits for their input."""
    program.call()
    program.found()  # looks once
    monkeypatch.setattr(program.looks, "_position", lambda *_: position)
    call = program.train.place
    spots = [_spot(f"a.py:{number % 3}", call, reads=number % 4 == 0) for number in range(FEWEST_LOOKS)]
    monkeypatch.setattr(program.looks._spots, "of", lambda _: spots.pop(0))
    for _ in range(FEWEST_LOOKS - 1):
        assert program.looks.host_wait("train") is None
        program.call()
        program.look()
    found = program.looks.host_wait("train")
    assert found is not None and (found.share, found.idle_share, found.where) == (0.25, 0.25, "a.py:0")
    assert program.looks.host_wait("another") is None


def test_looks_before_the_loop_was_known_count_from_its_first_call(program: Program) -> None:
    program.look(4.0)
    program.train.began = time.perf_counter()
    for number in program.batches(4, 3.0):
        program.call(seconds=1.0)
        if number == 2:
            program.found()
    assert program.spent() == {"init": 5.0, "step": 4.0, "input_wait": 12.0}


def test_a_thread_that_is_adopted_was_looked_at_before(program: Program) -> None:
    """The time so far stays whole; a step that is declared elsewhere ends it."""
    main, ready, ends = program.wall.thread, threading.Event(), threading.Event()

    def train(seen: Seen) -> None:
        for number in range(2):
            seen.called(time.perf_counter(), sys._getframe(0))
            if number == 1:
                assert all(program.wall.adopt(threading.get_ident()) for _ in range(2))
                program.looks.found([seen], 1.0)
            program.calls.threads.add(threading.get_ident())
            ready.set()
            ends.wait()

    thread = threading.Thread(target=train, args=(program.train,))
    thread.start()
    ready.wait()
    program.look(3.0)
    ends.set()
    thread.join()
    assert program.wall.thread == thread.ident != main
    assert program.spent() == {"init": 1.0, "input_wait": 3.0}
    program.wall.leave(program.wall.enter("step"))
    assert program.wall.thread == main
    assert elsewhere(lambda: program.wall.adopt(threading.get_ident())) is False


def test_a_thread_looks_until_it_is_stopped() -> None:
    calls = Calls(Wall(age=0.0))
    assert calls._wall is not None
    calls._wall.thread = threading.get_ident()
    looks = Clock(calls, LoopOutputs())
    until(lambda: looks._made >= 3, lambda: looks._made)
    looks.stop()
    assert not looks._thread.is_alive()
