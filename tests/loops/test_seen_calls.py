"""Single calls that are seen: when they make a loop."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxobs.base.arrivals import reference
from jaxobs.loops.loop_outputs import LoopOutputs
from jaxobs.loops.seen import Seen
from jaxobs.loops.seen_calls import FEWEST_CALLS, FEWEST_COMPILED, SeenCalls
from jaxobs.state.wall import Wall


@pytest.fixture
def calls() -> Iterator[SeenCalls]:
    """A recorder that is on."""
    calls = SeenCalls(lambda _: None, LoopOutputs())
    wall = Wall(age=0.0)
    wall.thread = threading.get_ident()
    calls.watch(wall)
    yield calls
    calls.stop()


def refuse(*_: Any) -> Any:
    raise RuntimeError("code of the user's was run")


Hostile: Any = type(
    "Hostile", (tuple,), dict.fromkeys(("__getattribute__", "__bool__", "__len__", "__iter__", "__getitem__"), refuse)
)
"""A node of a pytree whose methods are the user's."""


def test_outputs_are_looked_into_without_running_code_of_theirs() -> None:
    x = jnp.zeros(4)
    found = reference([0, Hostile((1, {"x": x}))])
    assert found is not None and found() is x
    assert [reference(each) for each in (None, (), Hostile(()), {}, 3, [[[[[[[x]]]]]]])] == [None] * 6


def test_calls_say_where_the_loop_is_and_what_it_returns(calls: SeenCalls) -> None:
    """No array is kept."""
    step = jax.jit(lambda x: {"x": x + 1, "y": [x, (x,)]})
    x = jnp.zeros(4)
    for _ in range(3):
        found = step(x)
        if calls.clock is not None:
            calls.clock.stop()  # it would let go of an output that has arrived
    (seen,) = calls.fold()
    assert calls.latest is seen and seen.output is not None
    assert seen.output() is found["x"]
    assert seen.place is not None and seen.place[0][0].co_name == "test_calls_say_where_the_loop_is_and_what_it_returns"
    assert len(seen.places) == 1 and next(iter(seen.places))[0] == id(seen.place[0][0])
    del found
    assert seen.output() is None


@pytest.mark.parametrize("before", range(0, FEWEST_CALLS, 3))
def test_a_loop_is_found_whenever_the_sampler_comes(calls: SeenCalls, before: int) -> None:
    """With its twentieth call, on its own thread: what the sampler has taken in counts. A program may end soon."""
    step = jax.jit(lambda x: x + 1)
    x = step(jnp.zeros(4))
    for number in range(FEWEST_CALLS):
        if number == before:
            calls.fold()
        x = step(x)
        (seen,) = calls.functions.values()
        assert (seen.first is None) == (seen.category == "step") == (seen.made >= FEWEST_CALLS)
    assert calls.clock is not None
    assert calls.clock._loops == [seen]


def test_a_numpy_array_that_is_given_again_is_known_by_the_array() -> None:
    """A batch is another array each time, wherever it lies; a small array costs nothing."""
    seen, kept, small = Seen("step"), np.zeros(2**18, np.float32), np.zeros(8)
    for expected in (0, 2**20, 2**20):
        seen.given(({"x": np.zeros(2**18, np.float32), "all": kept}, small, jnp.zeros(2**18), None), {}, None)
        assert seen.again == expected
    seen.given((np.zeros(2**18),), {}, None)
    assert seen.again == 0 and [each() for each in seen.large] == [None]
    own = type("Own", (np.ndarray,), {"nbytes": property(refuse), "__array_finalize__": lambda *_: None})
    seen.given((np.zeros(2**18).view(own), type("Mapping", (dict,), {"values": refuse})()), {}, None)


def test_a_call_that_is_given_what_the_call_before_returned_carries() -> None:
    """As in a training; a service has the same parameters and another input each time, and perhaps a key."""
    arrays, (kept, *keys) = [jnp.full(64, each) for each in range(9)], [jnp.full(2, each) for each in range(9)]
    for before, after, carried in (
        (lambda n: (arrays[n], kept), lambda n: (arrays[n + 1], kept), True),
        (lambda n: (Hostile(({"w": arrays[n]},)),), lambda n: {"w": [arrays[n + 1], kept]}, True),
        (lambda n: (arrays[8], keys[n]), lambda n: arrays[n], False),
        (lambda n: (arrays[8], keys[n]), lambda n: (keys[n + 1], arrays[n]), False),
    ):
        seen = Seen("step")
        for number in range(7):
            seen.given(before(number), {}, after(number))
        assert (seen.carries, seen.looks, seen.returned) == (carried, 0, [])


def test_no_array_of_a_callers_is_kept(calls: SeenCalls) -> None:
    """A method `__call__` is not our wrapper: before Python 3.13 a frame keeps the variables that are read."""
    step = jax.jit(lambda x: x + 1)
    left: list[weakref.ref[Any]] = []

    class Trainer:
        def __call__(self) -> None:
            x = jnp.zeros(4)
            for _ in range(3):
                left.append(weakref.ref(x))
                x = step(x)
            assert [each() for each in left] == [None] * 3

    Trainer()()
    assert calls.functions


def test_a_call_that_compiles_is_known_by_the_programs_line(calls: SeenCalls) -> None:
    """JAX's frames above it are no part of the loop."""
    step = jax.jit(lambda x: x + 1)
    x = step(jnp.zeros(4))
    for _ in range(5):
        x = step(x)
    ((name, seen),) = calls.functions.items()
    before, seen.place, seen.due = seen.place, None, 0.0
    jax.eval_shape(lambda: calls.compiled(name, 1.0, alike=True))
    assert before is not None and seen.place is not None
    assert seen.place[0][0].co_name == "<lambda>" and seen.place[0][0].co_filename == __file__
    assert calls.latest is seen and seen.compiled == 1


@pytest.mark.parametrize(("seconds", "fewest"), [(0.2, FEWEST_COMPILED), (0.01, FEWEST_CALLS)])
def test_calls_that_all_compile_are_a_loop(calls: SeenCalls, seconds: float, fewest: int) -> None:
    """Few of them if they are long; from one place."""
    for number in range(FEWEST_CALLS):
        calls.compiled("step", 10.0 + number * seconds, alike=True)
        assert bool(calls.functions) == (number + 1 >= fewest)
    assert calls.functions["step"].category == "step"


def test_calls_that_all_compile_elsewhere_are_no_loop(calls: SeenCalls) -> None:
    for number in range(FEWEST_CALLS // 2):
        calls.compiled("step", 10.0 + number, alike=True)
        calls.compiled("step", 10.5 + number, alike=True)
    assert not calls.functions
