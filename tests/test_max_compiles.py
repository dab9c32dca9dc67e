"""The bound on compilations: what it counts, and what it says."""

from __future__ import annotations

import threading

import jax
import numpy as np
import pytest

from jaxobs import session, store
from jaxobs.testing import TooManyCompilesError, max_compiles


@pytest.fixture(autouse=True)
def clean() -> None:
    """Nothing installed, nothing recorded."""
    session.uninstall()
    store.current().reset()


def jitted():
    """A new function each time, as JAX sees it."""

    @jax.jit
    def step(x):
        return x * 2

    return step


def test_within_the_bound_nothing_happens() -> None:
    """What is allowed is allowed; the compilations can be looked at; nothing stays installed."""
    with max_compiles(2) as found:
        step = jitted()
        step(np.ones(2, np.float32))
        step(np.ones(3, np.float32))
    assert [each.cause for each in found] == ["first_call", "shape"]
    assert not store.current().installed


def test_the_failure_gives_reasons_and_places() -> None:
    """Each compilation with its call site and its sentence."""
    step = jitted()
    step(np.ones(2, np.float32))
    with pytest.raises(TooManyCompilesError) as raised, max_compiles(0):
        step(np.ones(3, np.float32))
    text = str(raised.value)
    assert "1 compilations, where at most 0 are allowed" in text
    assert f"{__file__}:" in text
    assert "step" in text


def test_a_recompilation_is_told_against_what_was_seen_before() -> None:
    """Within an installed session the reason names the argument, before and after."""
    session.install()
    try:
        step = jitted()
        step(np.ones(2, np.float32))
        with pytest.raises(TooManyCompilesError, match=r"`x` was float32\[2\], is now float32\[3\]"), max_compiles(0):
            step(np.ones(3, np.float32))
        assert store.current().installed
    finally:
        session.uninstall()


def test_only_the_named_function_counts() -> None:
    """By the end of its qualified name, on whichever thread it compiles; others do not count."""
    with max_compiles(0, function="another"):
        jitted()(np.ones(2, np.float32))
    with pytest.raises(TooManyCompilesError, match="of `step`"), max_compiles(0, function="step"):
        thread = threading.Thread(target=jitted(), args=(np.ones(2, np.float32),))
        thread.start()
        thread.join()


def test_eager_operations_count_when_asked_for() -> None:
    """They do not by default."""
    import jax.numpy as jnp

    with max_compiles(0):
        jnp.ones(1234) + 1
    with pytest.raises(TooManyCompilesError), max_compiles(0, eager=True):
        jnp.ones(1235) + 1


def test_the_blocks_own_exception_goes_through() -> None:
    """A test that fails already says why."""
    with pytest.raises(ZeroDivisionError), max_compiles(0):
        jitted()(np.ones(2, np.float32))
        1 / 0  # noqa: B018
