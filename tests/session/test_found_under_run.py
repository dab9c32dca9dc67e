"""Loops of an unchanged program, found by the calls that JAX tells of: what is shown is true, nothing is changed."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from helpers.run_programs import environment, programs

import jaxobs
from jaxobs.facts.loops import LoopState
from jaxobs.internals import post_hook
from jaxobs.loops import call_places, seen_calls
from jaxobs.loops.found_loops import FoundLoops
from jaxobs.loops.seen import Seen
from jaxobs.loops.seen_calls import FEWEST_CALLS
from jaxobs.session import lifecycle
from jaxobs.state.loops import MOST_LOOKS
from jaxobs.state.store import current

pytestmark = pytest.mark.usefixtures("fresh")

TRAINING = programs(__file__)["training"]


def _run(script: Path, *command: str) -> list[list[str]]:
    done = subprocess.run(
        [sys.executable, *command, str(script)], env=environment(PYTHONPATH=str(Path(jaxobs.__file__).parents[1])),
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return [line.split(" ", 6) for line in done.stdout.splitlines()]


def test_an_unchanged_script_under_run_has_its_loop_found(tmp_path: Path) -> None:
    """Name, count, interval and the time charged to it are those of its own stopwatch; no compilation is added."""
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    ((compiled, *_),) = _run(script)
    told, loop, wall = _run(script, "-m", "jaxobs", "run", "--port", "0", "--peak-flops", "1e9")
    assert told[0] == compiled
    assert loop[:2] == ["__main__.train_step", "True"] and loop[6] == "['__main__.metrics', '__main__.train_step']"
    assert 298 <= int(loop[2]) <= 300 and loop[3] == "True"  # what fell to Python without compiling is not seen
    assert float(loop[4]) == pytest.approx(float(told[1]), rel=0.1)
    product = 2 * 32**3  # FLOP; what is added and summed is a tenth of it
    assert product < float(loop[5]) * float(loop[4]) * 1e9 < 2 * product
    assert float(wall[0]) == pytest.approx(float(told[2]), abs=0.1 * float(told[2]) + float(told[3]))
    assert wall[1] == "{}"


def test_only_what_is_called_again_and_again_by_the_program_is_a_loop() -> None:
    """Neither a few calls, nor operations, nor JAX's own functions, nor calls that are traced."""

    @jax.jit
    def few(x: Any) -> Any:
        return x + 1

    @jax.jit
    def inner(x: Any) -> Any:
        return x * 2

    _install()
    x = jnp.ones(3)
    for _ in range(FEWEST_CALLS - 3):
        few(x)
    for number in range(2 * FEWEST_CALLS):
        x + number, jnp.dot(x, x), jax.lax.add(x, x)
    jax.jit(lambda x: sum(inner(x) for _ in range(2 * FEWEST_CALLS)))(x)
    assert _found() == {}


def test_calls_that_compile_are_calls_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches as long as their longest sequence: more than half of the calls are for a new size.

    The rate is that of the wall clock, and no turn is longer than the longest one was.
    """
    monkeypatch.setattr(call_places, "FEWEST_LONG", 1000)  # or they are few long calls where compiling takes long

    @jax.jit
    def train_step(x: Any) -> Any:
        return x * 2

    _install()
    times = []
    for number in range(FEWEST_CALLS + 4):
        train_step(jnp.ones(number if number % 5 else 7))
        times.append(time.perf_counter())
        if number % 3:
            train_step(jnp.ones(7))
            times.append(time.perf_counter())
    ((name, loop),) = _found().items()
    assert name.endswith("train_step") and (loop.steps, loop.steps_counted) == (len(times), True)
    assert loop.steps_per_second == pytest.approx((len(times) - 1) / (times[-1] - times[0]), rel=0.1)
    assert loop.p99_seconds is not None
    assert loop.p99_seconds < 1.1 * max(later - earlier for earlier, later in itertools.pairwise(times))


def test_where_nans_are_looked_for_the_hook_is_jaxs() -> None:
    """The program's `jax_debug_nans` raises as ever, set before us or after, and is never taken off."""

    @jax.jit
    def bad(x: Any) -> Any:
        return x / x

    x = jnp.zeros(3)
    _install()
    assert _ours() and jnp.isnan(bad(x)).all()
    for again in (False, True):
        if again:
            lifecycle.uninstall()
        jax.config.update("jax_debug_nans", True)
        try:
            hook = post_hook._get()
            if again:
                _install()
            _sample()
            assert post_hook._get() is hook is not None
            with pytest.raises(FloatingPointError):
                bad(x)
            lifecycle.uninstall()
            assert post_hook._get() is hook
        finally:
            jax.config.update("jax_debug_nans", False)
    _install()

    def for_itself() -> None:
        with jax.debug_nans(True), pytest.raises(FloatingPointError):
            bad(x)
        raised.append(True)

    # On a thread of its own: since JAX 0.8 a thread has no hook of the process any more after this.
    raised: list[bool] = []
    thread = threading.Thread(target=for_itself)
    thread.start()
    thread.join()
    assert raised and _ours()
    lifecycle.uninstall()
    assert post_hook._get() is None


def test_the_hook_goes_with_the_setting_the_session_and_the_process() -> None:
    """Somebody else's stays; a told loop, another setting, a fork and `uninstall` take ours off."""
    jaxobs.install(find_loops=False)
    _sample()
    assert post_hook._get() is None
    _install()
    _sample()
    assert _ours()
    for source in lifecycle._session.sources:  # type: ignore[union-attr]
        source.after_fork()
    assert post_hook._get() is None
    _sample()
    assert _ours()
    for _ in range(MOST_LOOKS):
        with jaxobs.step("told"):
            pass
    _sample()
    assert post_hook._get() is None
    lifecycle.uninstall()

    def theirs(*_: Any) -> None:
        pass

    post_hook._set(theirs)
    try:
        current().reset()
        _install()
        assert post_hook._get() is theirs
        lifecycle.uninstall()
        assert post_hook._get() is theirs
    finally:
        post_hook._set(None)


def test_of_a_loop_with_very_many_calls_no_total_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook is on in bursts; times are right, all of it is charged, and a count that were made up is left out."""
    monkeypatch.setattr(seen_calls, "MOST_CALLS", 60)
    monkeypatch.setattr(seen_calls, "CALLS_A_SECOND", 100.0)

    @jax.jit
    def train(x: Any) -> Any:
        return x + 1

    _install()
    x, times = jnp.ones(()), []
    for _ in range(600):
        train(x)
        times.append(time.perf_counter())
        time.sleep(0.002)
    _sample()
    (loop,) = _found().values()
    assert not loop.steps_counted and loop.steps < 400 and loop.p50_seconds is not None
    turns = sorted(b - a for a, b in itertools.pairwise(times))
    assert turns[len(turns) // 20] <= loop.p50_seconds <= turns[-len(turns) // 20]  # of some of them
    assert "jax_steps_total{" not in _metrics()
    spent = current().snapshot(fresh=False).wall.seconds  # type: ignore[union-attr]
    assert spent["step"] + spent["input_wait"] == pytest.approx(times[-1] - times[0], rel=0.2)


def test_names_are_those_of_the_compilations() -> None:
    """`nnx.jit`, `eqx.filter_jit`, methods, and a wrapper of ours with a name of its own, whose count is exact."""
    import equinox as eqx
    from flax import nnx

    class Model:
        def __init__(self) -> None:
            self.run = jax.jit(self.step)

        def step(self, x: Any) -> Any:
            return x * 3

    @eqx.filter_jit
    def filtered(model: Any, x: Any) -> Any:
        return model(x)

    @nnx.jit
    def of_flax(model: Any, x: Any) -> Any:
        return model(x)

    @jaxobs.jit(name="mine")
    def wrapped(x: Any) -> Any:
        return x + 2

    _install()
    x, model = jnp.ones(3), Model()
    layer, linear = eqx.nn.Linear(3, 3, key=jax.random.key(0)), nnx.Linear(3, 3, rngs=nnx.Rngs(0))
    for call in (lambda: model.run(x), lambda: filtered(layer, x), lambda: of_flax(linear, x), lambda: wrapped(x)):
        for _ in range(FEWEST_CALLS + 5):
            call()
    found, here = _found(), f"{__name__}.{test_names_are_those_of_the_compilations.__name__}.<locals>."
    assert set(found) == {f"{here}Model.step", f"{here}filtered", f"{here}of_flax", "mine"}
    assert found["mine"].steps == FEWEST_CALLS + 5
    assert set(found) - {"mine"} <= {each.name for each in current().snapshot(fresh=False).functions}


def test_what_is_called_in_turn_is_one_loop_and_what_is_called_in_a_row_another() -> None:
    """The name is that of the function that computes most; evaluations between two turns are no part of these."""
    train, metrics, prepare, evaluate = (Seen(name) for name in ("train", "metrics", "prepare", "evaluate"))
    now = 0.0
    for turn in range(100):
        for seen, times, seconds in ((prepare, 4, 0.001), (train, 1, 0.005), (metrics, 1, 0.001)):
            for _ in range(times):
                seen.marks.append((now, 0, 0.0, 1))
                now += seconds
        if turn % 50 == 49:
            for _ in range(30):
                evaluate.marks.append((now, 0, 0.0, 1))
                now += 0.1
    functions = [prepare, train, metrics, evaluate]
    for each in functions:
        each.fold()
    flops = {"train": 100.0, "metrics": 1.0, "prepare": 1.0, "evaluate": 1.0}
    loops = {each.name: each for each in _seen_loops(functions, flops)}
    assert set(loops) == {"train", "evaluate"}
    assert loops["train"].calls == pytest.approx({"train": 1.0, "metrics": 1.0, "prepare": 4.0}, rel=0.03)
    assert loops["train"].mean_seconds == pytest.approx(0.01) and loops["evaluate"].p50_seconds == pytest.approx(0.1)
    unknown = {each.name: each for each in _seen_loops(functions, dict.fromkeys(flops, 0.0))}
    assert set(unknown) == {"prepare", "evaluate"} and unknown["prepare"].calls["train"] == pytest.approx(
        0.25, rel=0.03
    )
    alike = [Seen("first"), Seen("second")]
    for number in range(50):
        for each in alike[:: 1 if number else -1]:
            each.marks.append((float(number), 0, 0.0, 1))
    for each in alike:
        each.fold()
    assert [each.name for each in _seen_loops(alike, {"first": 0.0, "second": 5.0})] == ["first"]


# ------------------------------------------------------------------------------------------------ helpers


def _install() -> None:
    jaxobs.install(find_loops=True, sample_interval=3600.0)


def _sample() -> None:
    assert lifecycle._session is not None
    lifecycle._session.sample()


def _ours() -> bool:
    return getattr(post_hook._get(), "__name__", "") == "_after_call"


def _found() -> dict[str, LoopState]:
    _sample()
    return {each.name: each for each in current().snapshot(fresh=False).loops}


def _metrics() -> str:
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(jaxobs.collector())
    return generate_latest(registry).decode()


def _seen_loops(functions: list[Seen], flops: dict[str, float]) -> list[LoopState]:
    found = FoundLoops()
    found.see(functions, lambda calls: {name: flops[name] * made for name, made in calls.items()}, {})
    return found.frozen()


@pytest.fixture(autouse=True)
def _no_hook() -> Iterator[None]:
    """Each test ends as it began."""
    yield
    lifecycle.uninstall()
    assert post_hook._get() is None
