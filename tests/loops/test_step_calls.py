"""Calls in the steps of a declared loop, of functions that no wrapper counts."""

import threading
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxobs
from jaxobs.facts.loops import LoopState
from jaxobs.internals import post_hook
from jaxobs.loops import step_calls
from jaxobs.session import lifecycle
from jaxobs.state.loops import Loops
from jaxobs.state.store import current

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture(autouse=True)
def watched(fresh: None) -> None:
    jaxobs.install(peak_flops=1e9, sample_interval=3600)
    assert lifecycle._session is not None and lifecycle._session._sampler is not None
    lifecycle._session._sampler.stop()


@jax.jit
def train_step(x: Any) -> Any:
    return x @ x


@jax.jit
def metrics(x: Any) -> Any:
    return x.sum()


def increased(x: Any) -> Any:
    return x + 1


def sampled() -> LoopState:
    assert lifecycle._session is not None
    lifecycle._session.sample()
    (loop,) = jaxobs.snapshot().loops
    return loop


def short(loop: LoopState) -> dict[str, float]:
    return {name.rpartition(".")[2]: calls for name, calls in loop.calls.items()}


def test_jitted_functions_count_as_those_with_a_wrapper_do() -> None:
    """The first step, which compiles, is not looked at; later programs count as calls, single operations do not."""
    x, wrapped = jnp.eye(8), jaxobs.jit(increased)
    for number in range(41):
        with jaxobs.step("train"):
            train_step(train_step(x))
            wrapped(x + 1.0)
            if number % 2:
                metrics(x)
    assert short(sampled()) == {"train_step": 2.0, "increased": 1.0, "metrics": 0.5}


def test_calls_outside_of_steps_and_on_other_threads_are_no_steps() -> None:
    x = jnp.eye(8)
    metrics(x)
    for _ in range(20):
        with jaxobs.step("train"):
            train_step(x)
            thread = threading.Thread(target=metrics, args=(x,))
            thread.start()
            thread.join()
        metrics(x)
    assert short(sampled()) == {"train_step": 1.0}


def test_a_program_compiled_ahead_of_time_has_no_name_so_there_is_no_mfu() -> None:
    x = jnp.eye(8)
    ahead = train_step.lower(x).compile()
    for _ in range(20):
        with jaxobs.step("train"):
            ahead(x)
            metrics(x)
    loop = sampled()
    assert loop.mfu is None and loop.mfu_unknown is not None and "ahead of time" in loop.mfu_unknown


def test_a_program_compiled_ahead_of_time_has_the_name_of_its_wrapper() -> None:
    x = jnp.eye(8)
    ahead = jaxobs.instrument(train_step.lower(x).compile(), name=f"{__name__}.train_step")
    for _ in range(20):
        with jaxobs.step("train"):
            ahead(x)
    loop = sampled()
    assert short(loop) == {"train_step": 1.0} and "ahead" not in (loop.mfu_unknown or "")


def test_steps_whose_calls_were_not_all_seen_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_calls, "MOST_CALLS", 30)
    assert lifecycle._session is not None
    lifecycle._session.sample()
    x = jnp.eye(8)
    for _ in range(60):
        with jaxobs.step("train"):
            for _ in range(7):
                train_step(x)
    assert short(sampled()) == {"train_step": 7.0}
    for _ in range(3):
        with jaxobs.step("again"):
            for _ in range(40):
                train_step(x)
    assert not next(each for each in jaxobs.snapshot().loops if each.name == "again").calls


def test_the_hook_is_there_for_steps_that_are_looked_at_only() -> None:
    x = jnp.eye(8)

    def hooked() -> int:
        return sum(isinstance(getattr(each, "__self__", None), step_calls.StepCalls) for each in post_hook._Hooks.ours)

    for number in range(70):
        with jaxobs.step("train"):
            train_step(x)
            assert hooked() == 1 or number >= 64
    (loop,) = jaxobs.snapshot().loops
    assert loop.steps == 70
    sampled()
    assert hooked() == 0
    current().part(Loops).all()[0].stretch(0.0)  # grants 16 looks
    with jaxobs.step("train"):
        assert hooked() == 1
    jaxobs.uninstall()
    assert hooked() == 0


@pytest.mark.parametrize("setting", [True, False])
def test_without_finding_loops_only_wrappers_count(setting: bool) -> None:
    jaxobs.install(find_loops=setting)
    x, wrapped = jnp.eye(8), jaxobs.jit(increased)
    for _ in range(10):
        with jaxobs.step("train"):
            train_step(x)
            wrapped(x)
    assert short(sampled()) == {"increased": 1.0, **({"train_step": 1.0} if setting else {})}
