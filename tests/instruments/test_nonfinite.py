"""`jaxobs.watch`: NaN and infinities found without waiting, with the first step; and by `jax_debug_nans`."""

import json
import re
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.waiting import until

import jaxobs
from jaxobs.exporters.forms.exposition import SnapshotCollector
from jaxobs.facts.numbers import NonFinite, WatchedState
from jaxobs.sources.watched import WatchedSource
from jaxobs.state import store
from jaxobs.state.watched import MOST_ARRAY_BYTES, MOST_LEAVES, MOST_NAMES, MOST_PENDING, Watched

pytestmark = pytest.mark.usefixtures("fresh")


def told() -> list[NonFinite]:
    """The events so far, once everything that arrived was looked at."""
    until(lambda: not store.current().part(Watched).pending)
    time.sleep(0.02)
    return [each for each in store.current().events(kind="nonfinite")[0] if isinstance(each, NonFinite)]


def state_of(name: str) -> WatchedState:
    """The snapshot's row of one name."""
    return next(each for each in jaxobs.snapshot().watched if each.name == name)


def test_a_training_run_that_diverges_is_told_with_its_first_step() -> None:
    @jax.jit
    def step(w: Any) -> Any:
        return w * w, (w * w).sum()

    w, first = jnp.full(4, 2.0), None
    for number in range(12):
        w, loss = step(w)
        jaxobs.watch(loss=loss, lr=0.1)
        if first is None and not np.isfinite(loss):
            first = number
    (event,) = told()
    assert (event.name, event.what, event.step, event.last_finite_step, event.exact) == (
        "loss", "inf", first, (first or 0) - 1, True,
    )  # fmt: skip
    assert (event.infs, event.nans, event.size, event.dtype, event.source) == (1, 0, 1, "float32", "watch")
    assert event.call_site is not None
    assert event.call_site.startswith(__file__)
    assert event.program_step is None
    row = state_of("loss")
    assert (row.calls, row.checked, row.nonfinite, row.finite, row.step) == (12, 12, 12 - (first or 0), False, first)
    assert state_of("lr").finite is True
    jaxobs.watch(loss=jnp.float32(1))
    jaxobs.watch(loss=jnp.float32(jnp.nan))
    assert [(each.what, each.step) for each in told()] == [("inf", first), ("nan", 13)]
    metrics = {metric.name: dict(samples) for metric, samples in SnapshotCollector(store.current()).samples()}
    assert metrics["jax_nonfinite_total"]["loss",] == row.nonfinite + 1


def test_the_number_of_the_programs_step_is_told() -> None:
    for number in range(5):
        with jaxobs.step("train"):
            jaxobs.watch(loss=jnp.float32(jnp.nan if number == 3 else 1.0))
    (event,) = told()
    assert (event.step, event.program_step) == (3, 4)


def test_nothing_is_waited_for() -> None:
    @jax.jit
    def slow(x: Any) -> Any:
        return jax.lax.fori_loop(0, 300, lambda _, y: (y @ y) / 400, x).sum() * jnp.nan

    ones = jnp.ones((400, 400))
    slow(ones).block_until_ready()
    for number in range(20):  # on a busy machine the device may be done before this thread goes on
        result = slow(ones)
        jaxobs.watch(**{f"slow {number}": result})
        early, arrived = state_of(f"slow {number}").checked, result.is_ready()
        result.block_until_ready()
        if not arrived:
            break
    assert (early, arrived) == (0, False)
    assert told()[-1].name == f"slow {number}"


def test_the_end_releases_what_has_not_arrived() -> None:
    """A kept array keeps the backend, which then does not wait for its work."""
    watched = store.current().part(Watched)
    loss = jnp.ones(2) * 3
    watched.take(watched.add("loss", None), loss)
    kept = weakref.ref(loss)
    del loss
    assert (watched.pending, kept() is None) == (1, False)
    WatchedSource(store.current()).concluding()
    assert (watched.pending, kept()) == (0, None)


def test_pytrees_name_the_leaf() -> None:
    tree = {
        "count": jnp.arange(3),
        "key": jax.random.key(0),
        "w": [jnp.ones(3, jnp.bfloat16), jnp.array([1.0, np.nan, np.inf, np.nan])],
        "z": np.array([np.inf]),
        "scale": 2.5,
    }
    jaxobs.watch(grads=tree)
    (event,) = told()
    assert (event.path, event.what, event.leaves) == ("['w'][1]", "nan and inf", 2)
    assert (event.nans, event.infs, event.size) == (2, 1, 4)


def test_every_kind_of_number_is_looked_at() -> None:
    values = (
        (float("nan"), "nan"), (np.float32("-inf"), "inf"), (complex(0, float("nan")), "nan"),
        (np.array([1.0, np.nan]), "nan"), (jnp.array([1, jnp.inf], jnp.bfloat16), "inf"),
        (jnp.array([1, jnp.nan], jnp.float8_e4m3fn), "nan"),
    )  # fmt: skip
    for number, (value, _) in enumerate(values):
        jaxobs.watch(**{f"x{number}": value})
    assert {each.name: each.what for each in told()} == {f"x{number}": what for number, (_, what) in enumerate(values)}


def test_a_numpy_array_is_seen_as_it_was_in_the_call() -> None:
    buffer = np.ones(8)
    jaxobs.watch(x=buffer)
    buffer[:] = np.nan
    assert told() == []


@jax.jit
def traced(x: Any) -> Any:
    jaxobs.watch(loss=x)
    return x


def test_what_is_not_looked_at_is_counted() -> None:
    large = jnp.zeros(MOST_ARRAY_BYTES // 4 + 1)
    jaxobs.watch(large=large)
    kept = weakref.ref(large)
    del large
    assert kept() is None
    array = jnp.full(1000, jnp.nan)
    jaxobs.watch(donated=array)
    jax.jit(lambda x: x + 1, donate_argnums=0)(array)
    traced(jnp.float32(1))
    jaxobs.watch(many=[1.0] * (MOST_LEAVES + 1))
    told()
    rows = {each.name: each for each in jaxobs.snapshot().watched}
    assert rows["large"].finite is None
    assert [dict(rows[name].skipped) for name in ("large", "loss", "many")] == [
        {"too_large": 1}, {"tracing": 1}, {"too_many": 1}
    ]  # fmt: skip
    assert rows["donated"].skipped.get("deleted", 0) + rows["donated"].nonfinite == 1


def test_what_a_name_is_given_may_change() -> None:
    large = jnp.ones(MOST_ARRAY_BYTES // 4 + 1)
    for value in (jnp.ones(3), jnp.ones(3), large, jnp.ones(3), jnp.arange(3), np.ones(3), jnp.full(3, jnp.nan)):
        jaxobs.watch(loss=value)
    traced(jnp.full(3, jnp.nan))
    (event,) = told()
    assert (event.step, event.nans, event.exact) == (6, 3, True)
    found = state_of("loss")
    assert (found.calls, found.checked, found.skipped) == (8, 6, {"too_large": 1, "tracing": 1})


def test_a_flood_is_bounded_and_the_first_step_is_then_no_exact_one() -> None:
    """Values beyond the bound are passed over; what is found after that says so."""
    watched = Watched()
    row = watched.add("x", None)
    for _ in range(MOST_PENDING + 10):
        watched.take(row, jnp.float32(1))
    watched.look()
    watched.take(row, jnp.float32(1))
    watched.look()
    (state,) = watched.frozen()
    assert (state.checked, dict(state.skipped)) == (MOST_PENDING + 1, {"too_many": 10})
    for value in (np.zeros(10_000), np.float32("nan")):
        watched.take(row, value)
    (event,) = watched.look()
    assert not event.exact
    assert event.last_finite_step == MOST_PENDING + 10
    for number in range(MOST_NAMES + 5):
        watched.add(f"n{number}", None)
    assert len(watched.frozen()) == MOST_NAMES + 1


def test_the_thread_ends_when_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxobs.instruments import nonfinite

    monkeypatch.setattr(nonfinite, "_REST_SECONDS", 0.1)
    for number in range(2):
        jaxobs.watch(x=jnp.float32(jnp.nan if number else 1.0))
        until(lambda: not store.current().part(Watched).running)
        until(lambda: not any(each.name == "jaxobs-watch" for each in threading.enumerate()))
    assert len(told()) == 1


def test_debug_nans_is_a_nonfinite_event() -> None:
    @jaxobs.jit
    def loss(x: Any) -> Any:
        return jnp.log(x)

    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=r"invalid value \(nan\)"):
        loss(jnp.float32(-1))
    (event,) = told()
    assert (event.source, event.what, event.name) == ("debug_nans", "nan", "log")
    assert event.call_site is not None
    assert event.call_site.startswith(__file__)
    assert state_of("log").nonfinite == 1


RUN = """
import time
import jax, jax.numpy as jnp, numpy as np
import jaxobs

@jaxobs.jit
def step(w, x):
    return w * w + x.sum()

@jax.jit
def slow(x):
    return jax.lax.fori_loop(0, 20, lambda _, y: (y @ y) / 400, x).sum() * jnp.nan

w = jnp.float32(2)
for batch in jaxobs.data((np.full((4, 4), float(number), np.float32) for number in range(40)), "train"):
    with jaxobs.step("train"):
        w = step(w, batch).block_until_ready()
        jaxobs.watch(weight=w)
slow(jnp.ones((400, 400))).block_until_ready()
for _ in range(3):
    jaxobs.watch(loss=slow(jnp.ones((400, 400))))
"""


def test_a_run_tells_of_numbers_to_its_end(tmp_path: Path) -> None:
    """The event log holds the first bad step, and what was still computed when the program had ended."""
    script, log = tmp_path / "train.py", tmp_path / "events.jsonl"
    script.write_text(RUN)
    command = [sys.executable, "-m", "jaxobs"]
    subprocess.run([*command, "run", "--port", "0", "--event-log", str(log), str(script)], check=True)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    bad = next(each for each in events if each["event"] == "nonfinite")
    assert (bad["name"], bad["what"], bad["call_site"]) == ("weight", "inf", f"{script}:18")
    assert bad["program_step"] == bad["step"] + 1
    rows = {each["name"]: each for each in events[-1]["standing"]["watched"]}
    assert [rows["loss"][each] for each in ("calls", "checked", "nonfinite")] == [3, 3, 3]
    explained = subprocess.run([*command, "explain", str(log)], capture_output=True, text=True).stdout
    assert f"weight is inf at call {bad['step']} of watch" in explained


@pytest.mark.parametrize(
    ("unnamed", "call"),
    [((1.0, "loss"), "jaxobs.watch(loss=loss)"), (("grads", 1.0), "jaxobs.watch(grads=grads)"),
     ((1.0,), "jaxobs.watch(loss=loss)"), ((1.0, "train loss"), "jaxobs.watch(loss=loss)")],
)  # fmt: skip
def test_a_value_without_a_name_is_told_how_to_call(unnamed: tuple[Any, ...], call: str) -> None:
    watch: Any = jaxobs.watch
    with pytest.raises(TypeError, match=re.escape(f"by its name. Call it as: {call}")):
        watch(*unnamed)
