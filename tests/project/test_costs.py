"""Costs of jaxobs, counted: calls, instructions and blocks of memory that a busy machine does not move.

`make bench` measures the same in seconds. A bound here is what the code needs today; raise one only for a reason.
"""

import statistics
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.counting import calls, instructions, kept_blocks
from helpers.made_by_hand import compilation

import jaxobs
from jaxobs.base.config import Settings
from jaxobs.exporters.forms import exposition
from jaxobs.exporters.forms.exposition import Renderer
from jaxobs.internals import Call
from jaxobs.reasons import signature
from jaxobs.reasons.explanation import Explainer
from jaxobs.session import lifecycle
from jaxobs.sources.found_loops import FoundLoopsSource
from jaxobs.state import input_waits
from jaxobs.state.input_waits import Inputs
from jaxobs.state.loops import Loops
from jaxobs.state.store import Store, current

USED = 1100
"""Calls after which a function is no longer timed: 1,024 of the first are."""


@pytest.fixture
def hot(fresh: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Callable[[], object]]]:
    jaxobs.install(capture_signal="off", sample_interval=3600, find_loops=False)
    assert lifecycle._session._sampler is not None
    lifecycle._session._sampler.stop()  # it has some calls timed at each tick

    monkeypatch.setattr(input_waits, "LOOK_SECONDS", 1e9)

    def increment(x: Any) -> Any:
        return x + 1

    x, bare = jnp.float32(1), jax.jit(increment)
    jitted, timed = jaxobs.jit(increment, name="jitted"), jaxobs.jit(increment, name="timed")
    instrumented = jaxobs.instrument(bare, name="instrumented")
    for function in (bare, jitted, timed, instrumented):
        for _ in range(USED):
            function(x)
    current().call_stats("timed").time("all")
    current().call_stats("timed").device_due = float("inf")
    turns, batches = iter(jaxobs.steps(iter(int, 1), "turns")), iter(jaxobs.data(iter(int, 1), "batches"))

    def step() -> None:
        with jaxobs.step("train"):
            pass

    def step_with_items() -> None:
        with jaxobs.step("train", items=64):
            pass

    def phase() -> None:
        with jaxobs.phase("eval"):
            pass

    def request() -> None:
        with jaxobs.request("predict"):
            pass

    def told_request() -> None:
        with jaxobs.request("predict", queue_seconds=0.01, batch=(24, 32)):
            pass

    found: dict[str, Callable[[], object]] = {
        "bare": lambda: bare(x), "jit": lambda: jitted(x), "jit, timed": lambda: timed(x),
        "instrument": lambda: instrumented(x), "step": step, "step with items": step_with_items,
        "turn of steps": lambda: next(turns), "batch of data": lambda: next(batches), "phase": phase,
        "request": request, "told request": told_request,
    }  # fmt: skip
    for fun in found.values():
        for _ in range(16):  # the first batches are sampled
            fun()
    settle()
    yield found
    turns.close()


def settle() -> None:
    current().snapshot(fresh=False)
    current().part(Inputs).frozen()
    for name in ("jitted", "instrumented"):
        current().call_stats(name).timed = 0
    for loop in current().part(Loops).all():
        loop.drain()
        loop.looks = 0


MOST = {
    "bare": (0, 0, 10, 0.1), "jit": (1, 1, 35, 0.1), "jit, timed": (1, 5, 105, 1.2), "instrument": (1, 1, 35, 0.1),
    "step": (8, 8, 530, 7), "step with items": (8, 8, 530, 7), "turn of steps": (9, 11, 600, 8),
    "batch of data": (4, 10, 305, 7), "phase": (14, 9, 430, 5), "request": (13, 9, 370, 5),
    "told request": (14, 9, 440, 6),
}  # fmt: skip
"""Calls in Python, calls in C, instructions, and blocks of memory that wait for the slow tick."""


def measured(fun: Callable[[], object], between: Callable[[], object]) -> tuple[float, ...]:
    """Returns the calls in Python and in C, instructions and kept blocks of a call."""
    made = calls(fun)
    own = sum(count for called, count in made.items() if not called.startswith("C "))
    between()
    kept = statistics.median(kept_blocks(fun) for _ in range(3))
    between()
    return own, made.total() - own, instructions(fun), kept


def test_what_a_program_calls_often_does_little(hot: dict[str, Callable[[], object]]) -> None:
    """In one call, scope, turn or batch; `install` alone adds nothing to a call."""
    assert hot.keys() == MOST.keys()
    found = {}
    for name, fun in hot.items():
        settle()
        fun()  # a step that was looked at closely when it began ends
        found[name] = measured(fun, settle)
    over = {
        name: f"{found[name]}, at most {most}"
        for name, most in MOST.items()
        if any(one > bound for one, bound in zip(found[name], most, strict=True))
    }
    assert over == {}, found


MOST_FOUND = (1, 6, 120, 2.1)
"""Bounds of a call by which a loop is found, as in `MOST`."""


def test_a_call_that_is_seen_does_little(fresh: None) -> None:
    jaxobs.install(capture_signal="off", sample_interval=3600, find_loops=True)
    assert lifecycle._session is not None and lifecycle._session._sampler is not None
    lifecycle._session._sampler.stop()
    jitted, x = jax.jit(lambda x: x + 1), jnp.float32(1)
    for _ in range(100):
        jitted(x)
    (seen,) = (each._calls for each in lifecycle._session.sources if isinstance(each, FoundLoopsSource))
    assert seen.clock is not None and seen.latest is not None and seen.latest.first is None
    seen.clock.stop()
    seen.latest.due = float("inf")  # to count is slow, and no call is looked at more closely now
    seen._left = 2**40  # or the hook comes off while it is counted

    def call() -> None:
        jitted(x)

    call()
    found = measured(call, lambda: None)
    assert all(one <= bound for one, bound in zip(found, MOST_FOUND, strict=True)), found
    assert found[0] > 0


def grown(count: Callable[[int], int], *sizes: int) -> list[float]:
    """By how much a count grows for one more, between each two neighbouring sizes."""
    counts = [count(size) for size in sizes]
    return [
        (more - less) / (large - small)
        for small, large, less, more in zip(sizes, sizes[1:], counts, counts[1:], strict=False)
    ]


def busy_store(functions: int) -> Store:
    store = Store(Settings(max_functions=functions))
    for number in range(functions):
        stats = store.call_stats(f"train.part_{number}")
        for _ in range(64):
            next(stats.counter)
            stats.durations.append(1e-4)
        store.record(compilation(f"train.part_{number}"))
    return store


def test_a_tick_does_the_same_for_each_function() -> None:
    each = grown(lambda size: calls(busy_store(size).tick).total(), 25, 50, 100, 200)
    assert max(each) <= 140 and max(each) <= 1.02 * min(each), each


def test_a_scrape_does_the_same_for_each_function_and_less_for_what_has_not_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Calls for one more function: in a first scrape, in the next, and where one function of all was called."""
    monkeypatch.setattr(exposition, "_STRETCH", 1e9)  # else it rests now and then
    scrapes: dict[str, dict[int, int]] = {"first": {}, "again": {}, "one called": {}}
    for size in (10, 20, 40):  # below the bounds on series
        store = busy_store(size)
        store.tick()
        renderer = Renderer(store)
        renderer.render()
        scrapes["first"][size] = calls(Renderer(store).render).total()
        scrapes["again"][size] = calls(renderer.render).total()
        next(store.call_stats("train.part_0").counter)
        store.tick()
        scrapes["one called"][size] = calls(renderer.render).total()
    for name, most in (("first", 400), ("again", 105), ("one called", 115)):
        each = grown(scrapes[name].__getitem__, 10, 20, 40)
        assert max(each) <= most and max(each) <= 1.1 * min(each), (name, each)
    assert 3 * scrapes["again"][40] < scrapes["first"][40]


def step(parameters: Any, batch: Any) -> None:
    """Two arguments."""


def compile_call(leaves: int, size: int) -> Call:
    parameters = {f"layer_{n}": jax.ShapeDtypeStruct((8, n % 20), np.float32) for n in range(leaves)}
    return Call(step, step, (parameters, jax.ShapeDtypeStruct((size,), np.float32)), {})


def test_a_signature_does_the_same_for_each_array() -> None:
    """For 100 as for 1,600, and its comparison with earlier ones does nothing for those that are the same."""

    def explained(leaves: int) -> tuple[int, int]:
        explainer, found = Explainer(), SimpleNamespace()
        for size in range(1, 5):
            call = compile_call(leaves, size)
            taking = calls(lambda call=call: setattr(found, "signature", signature.take(call)))  # type: ignore[misc]
            comparing = calls(lambda call=call: explainer.explain("step", call, found.signature))  # type: ignore[misc]
        return taking.total(), comparing.total()

    each = grown(lambda leaves: explained(leaves)[0], 100, 400, 1600)
    assert max(each) <= 11 and max(each) <= 1.02 * min(each), each
    assert explained(1600)[1] == explained(100)[1] <= 320


def test_recording_does_the_same_however_much_was_recorded() -> None:
    store, event = Store(), compilation()
    store.record(event)
    early = calls(lambda: store.record(event)).total()
    for _ in range(3 * Settings().max_events):
        store.record(event)
    assert calls(lambda: store.record(event)).total() <= early + 5 <= 115
