"""Single calls that are seen: when they make a loop."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest

from jaxobs.loops.host_waits import HostWaits
from jaxobs.loops.loop_outputs import LoopOutputs
from jaxobs.loops.seen_calls import FEWEST_CALLS, SeenCalls
from jaxobs.state.wall import Wall


@pytest.fixture
def calls() -> Iterator[SeenCalls]:
    """A recorder that is on."""
    calls = SeenCalls(lambda _: None, LoopOutputs(), HostWaits())
    wall = Wall(age=0.0)
    wall.thread = threading.get_ident()
    calls.watch(wall)
    yield calls
    calls.stop()


@pytest.mark.parametrize("before", range(0, FEWEST_CALLS, 3))
def test_a_loop_is_found_whenever_the_sampler_comes(calls: SeenCalls, before: int) -> None:
    """With its twentieth call: what the sampler has taken in counts. Else the rest between two epochs is no step."""
    step = jax.jit(lambda x: x + 1)
    x = step(jnp.zeros(4))
    for number in range(FEWEST_CALLS):
        assert not calls.turns.begun
        if number == before:
            calls.fold()
        x = step(x)
    assert calls.turns.begun and calls.turns.category == "step"


def test_a_call_that_compiles_does_not_begin_a_loop_whose_place_is_not_known(calls: SeenCalls) -> None:
    """Looks at what was before cannot be sorted without it; the next call tells."""
    step = jax.jit(lambda x: x + 1)
    x = step(jnp.zeros(4))
    for _ in range(5):
        x = step(x)
    (name,) = (each.name for each in calls.fold())
    calls.charge({name: 0.01}, set(), 0.1, 0.01, 0.01)
    calls.compiled(name, 0.0, alike=True)
    assert not calls.turns.begun
    step(x)
    assert calls.turns.begun
