"""The hook after calls of `jax.jit` functions: which calls it is told of."""

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax._src import util

from jaxobs.internals import code_events, post_hook

SEEN = code_events.MONITORS or post_hook.call_code() is not None


@pytest.mark.skipif(not SEEN, reason="JAX 0.6 on Python 3.11 reports no call without a fast path")
def test_calls_without_a_fast_path_are_told_once_each() -> None:
    """Not those that compile, nor those of functions without effects that leave the fast path for another program."""
    told: Counter[str] = Counter()

    def hook(fun: Any, args: Any, kwargs: Any, output: Any) -> None:
        told[post_hook.function_of(fun).__name__] += 1

    def effectful(x: Any) -> Any:
        jax.debug.callback(lambda value: None, x)
        return x + 1

    def pure(x: Any) -> Any:
        return x + 2

    x = jnp.ones(3)
    committed = jax.device_put(x, jax.devices()[0])
    with_effects, without = jax.jit(effectful), jax.jit(pure)
    listener = util.test_event_listener
    assert post_hook.put(hook, falls=True)
    try:
        without(x)
        without(committed)
        for _ in range(5):
            with_effects(x)
        assert told == {"effectful": 4}
        jax.vmap(with_effects)(x)
        jax.jit(lambda x: with_effects(x))(x)
        assert told == {"effectful": 4}, "neither under a transformation nor while something is traced"
        jax.effects_barrier()
    finally:
        post_hook.take(hook)
    assert util.test_event_listener is listener
    with_effects(x)
    assert told == {"effectful": 4}
