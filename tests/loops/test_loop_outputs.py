"""Scalars that loops return: NaN for good, and what only looks like it."""

import itertools
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxobs.facts.numbers import NonFinite
from jaxobs.loops import loop_outputs
from jaxobs.loops.loop_outputs import LoopOutputs
from jaxobs.state.store import Store
from jaxobs.state.watched import Watched

NAN, INF = float("nan"), float("inf")
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call is taken."""
    monkeypatch.setattr(loop_outputs, "EARLY", 0.0)


def run(values: list[float], made: Callable[[Any], Any] = lambda loss: (jnp.ones(3), loss)) -> list[NonFinite]:
    return _run(LoopOutputs(), values, made)


def _run(outputs: LoopOutputs, values: list[float], made: Callable[[Any], Any]) -> list[NonFinite]:
    found: list[NonFinite] = []
    for number, value in enumerate(values):
        output = jax.block_until_ready(made(jnp.asarray(value, jnp.float32)))
        outputs.take("m.step", 1 + 10 * number, output, sys._getframe())
        found += outputs.look()
    return found


def test_a_loss_that_turned_nan_is_reported_once() -> None:
    assert not run([1.0, NAN, NAN])
    (event,) = run([1.0, INF, NAN, NAN, NAN, NAN, NAN])
    assert (event.name, event.what, event.source, event.step) == ("m.step()", "nan", "loop", None)
    (event,) = run([1.0, *[INF] * 5])
    assert event.what == "inf"
    assert event.call_site is not None and event.call_site.startswith(__file__)


def test_a_loss_that_was_nan_from_the_start() -> None:
    """Before it was looked at. A metric beside a loss that is finite may be made so."""
    assert len(run([NAN] * 8)) == 1 and len(run([INF, *[NAN] * 8])) == 1
    (event,) = run([NAN] * 8, lambda value: {"loss": value, "rate": jnp.float32(1.0)})
    assert event.name == "m.step()['loss']"
    assert not run([NAN] * 8, lambda value: {"recall": value, "loss": jnp.float32(1.0)})


def test_what_is_taken_is_held_until_it_has_arrived() -> None:
    outputs, loss = LoopOutputs(), jnp.float32(1.0)
    woken = threading.Thread(target=outputs.settle_until, args=(time.perf_counter() + 60,))
    woken.start()
    outputs.take("m.step", 1, loss, sys._getframe())
    kept = weakref.ref(loss)
    del loss
    while kept() is not None:
        time.sleep(0.001)
    assert outputs.pending == 0
    outputs.wake()
    woken.join(30)
    assert not woken.is_alive()


@pytest.mark.parametrize(
    "values", [[INF] * 8, [1.0, NAN, NAN, 1.0, NAN, NAN, 1.0, NAN], [*[INF] * 8, 1.0, 0.5], [1.0] * 8]
)
def test_what_is_no_divergence(values: list[float]) -> None:
    """A value that is NaN now and then, one that is infinite at first: the best loss so far."""
    assert not run(values)


def test_only_scalars_and_small_arrays_of_floats_are_looked_at() -> None:
    for made in (
        lambda loss: jnp.full(5000, loss),
        lambda loss: jnp.stack([loss, jnp.float32(1.0)]),
        lambda loss: (jnp.int32(1), jax.random.key(0)),
        lambda loss: float(loss),
        lambda loss: None,
    ):
        assert not run([1.0, *[NAN] * 8], made)
    assert run([1.0, *[NAN] * 8], lambda loss: {"a": {"loss": loss.astype(jnp.bfloat16)}})


@pytest.mark.parametrize(
    ("made", "reported"),
    [
        (lambda loss: {"a": loss, "loss": loss}, ["['loss']"]),
        (lambda loss: {"a": loss, "b": loss * 2}, ["['a']"]),
        (lambda loss: (jnp.full((3, 4), loss * 2), jnp.full(30, loss)), ["[0]"]),
        (lambda loss: {"a": loss, "rate": jnp.float32(1.0)}, ["['a']"]),
        (lambda loss: {"recall": loss, "loss": jnp.float32(next(_numbers))}, []),
        (lambda loss: {"loss": loss, "rate": jnp.float32(next(_numbers))}, ["['loss']"]),
    ],
)
def test_of_several_scalars_one_is_reported(made: Callable[[Any], Any], reported: list[str]) -> None:
    """By its path as JAX prints it: the loss, or one with which all turned NaN. A metric alone is none."""
    assert [event.name.removeprefix("m.step()") for event in run([2.0, 1.0, *[NAN] * 5], made)] == reported


def test_the_state_has_what_was_reported() -> None:
    outputs = LoopOutputs()
    assert not _run(outputs, [1.0], lambda loss: loss) and outputs.frozen() == ()
    assert len(_run(outputs, [1.0, *[NAN] * 4], lambda loss: loss)) == 1
    (state,) = outputs.frozen()
    assert (state.name, state.nonfinite, state.checked, state.finite) == ("m.step()", 4, 6, False)
    assert not _run(outputs, [1.0], lambda loss: loss)
    (state,) = outputs.frozen()
    assert (state.nonfinite, state.checked, state.finite) == (4, 7, True)
    assert len(_run(outputs, [NAN] * 4, lambda loss: loss)) == 1


def test_a_value_that_was_donated_is_passed_over() -> None:
    outputs = LoopOutputs()
    loss = jnp.float32(1.0)
    outputs.take("m.step", 1, loss, sys._getframe())
    loss.delete()
    assert outputs.look() == [] and outputs.pending == 0


def test_few_calls_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_outputs, "EARLY", 1.5)
    monkeypatch.setattr(loop_outputs, "LOOK_SECONDS", 1e6)
    outputs, loss = LoopOutputs(), jnp.float32(1.0)
    monkeypatch.setattr(outputs, "wake", lambda: None)
    taken = []
    for call in range(1, 101):
        before = outputs.pending
        outputs.take("m.step", call, loss, sys._getframe())
        if outputs.pending > before:
            taken.append(call)
    assert taken == [1, 2, 3, 5, 8, 12, 18, 27, 41, 62, 93]
    monkeypatch.setattr(loop_outputs, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(loop_outputs, "BUDGET", np.inf)
    for call in range(101, 1000):
        outputs.take("m.step", call, loss, sys._getframe())
    assert outputs.pending == loop_outputs.MOST_PENDING


def test_what_the_program_watches_itself_takes_precedence() -> None:
    known = Store()
    assert len(_run(known.part(LoopOutputs), [1.0, *[NAN] * 4], lambda loss: loss)) == 1
    assert [each.name for each in known.snapshot(fresh=False).watched] == ["m.step()"]
    known.part(Watched).add("loss", None)
    assert [each.name for each in known.snapshot(fresh=False).watched] == ["loss"]
