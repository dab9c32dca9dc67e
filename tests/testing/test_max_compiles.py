"""The bound on compilations: what it counts, and what it says."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

from jaxobs.base import guard
from jaxobs.session import lifecycle
from jaxobs.state import store
from jaxobs.testing import BlindError, TooManyCompilesError, max_compiles


@pytest.fixture(autouse=True)
def clean() -> None:
    lifecycle.uninstall()
    store.current().reset()


def jitted():
    """A new function each time, as JAX sees it."""

    @jax.jit
    def step(x):
        return x * 2

    return step


ONE, OTHER = np.ones(2, np.float32), np.ones(3, np.float32)


def test_within_the_bound_nothing_happens() -> None:
    with max_compiles(2) as found:
        step = jitted()
        step(ONE)
        step(OTHER)
    assert [each.cause for each in found] == ["first_call", "shape"]
    assert not store.current().installed


def test_the_failure_gives_reasons_and_places() -> None:
    step = jitted()
    step(ONE)
    with pytest.raises(TooManyCompilesError) as raised, max_compiles(0):
        step(OTHER)
    text = str(raised.value)
    assert text.startswith("1 compilation, where at most 0 are allowed:\n  1. ")
    assert f"  1. {__file__.removeprefix(os.path.join(os.getcwd(), ''))}:" in text
    assert "step" in text


@pytest.mark.usefixtures("fresh")
def test_a_recompilation_is_told_against_what_was_seen_before() -> None:
    lifecycle.install()
    step = jitted()
    step(ONE)
    with pytest.raises(TooManyCompilesError, match=r"`x`.* float32\[2\].* float32\[3\]"), max_compiles(0):
        step(OTHER)
    assert store.current().installed


def test_only_the_named_function_counts() -> None:
    with max_compiles(0, function="another"):
        jitted()(ONE)
    with pytest.raises(TooManyCompilesError, match="of `step`"), max_compiles(0, function="step"):
        thread = threading.Thread(target=jitted(), args=(ONE,))
        thread.start()
        thread.join()


def test_eager_operations_count_when_asked_for() -> None:
    import jax.numpy as jnp

    with max_compiles(0):
        jnp.ones(1234) + 1
    with pytest.raises(TooManyCompilesError), max_compiles(0, eager=True):
        jnp.ones(1235) + 1


def test_the_blocks_own_exception_goes_through() -> None:
    """A test that fails already says why."""
    with pytest.raises(ZeroDivisionError), max_compiles(0):
        jitted()(ONE)
        1 / 0  # noqa: B018


def test_as_a_decorator_each_call_has_its_own_bound() -> None:
    """A coroutine function is bounded until it has been awaited; a generator function is refused."""

    @max_compiles(1)
    def train(size: int, repeat: int = 1) -> int:
        """Trains."""
        for _ in range(repeat):
            jitted()(np.ones(size, np.float32))
        return size

    assert [train(2), train(3)] == [2, 3]
    assert train.__doc__ == "Trains."
    with pytest.raises(TooManyCompilesError, match="2 compilations, where at most 1 is allowed"):
        train(2, repeat=2)

    @max_compiles(1)
    async def serve(repeat: int) -> None:
        for _ in range(repeat):
            await asyncio.sleep(0)
            jitted()(ONE)

    asyncio.run(serve(1))
    with pytest.raises(TooManyCompilesError):
        asyncio.run(serve(2))

    one = max_compiles(1)

    @one
    async def after(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        jitted()(ONE)
        await asyncio.sleep(0)

    async def overlapping() -> None:
        await asyncio.gather(after(0), after(2))

    asyncio.run(overlapping())
    with pytest.raises(TypeError, match=r"`.*batches` is a generator function.*inside it"):

        @max_compiles(1)
        def batches():
            yield 1


def test_fresh_depends_on_nothing_before() -> None:
    step = jitted()
    step(ONE)
    with max_compiles(0):
        step(ONE)
    with max_compiles(1, fresh=True) as found:
        step(ONE)
    assert [each.function.rpartition(".")[2] for each in found] == ["step"]


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"n": "two"}, TypeError, "`n` is 'two', but must be an integer"),
        ({"n": True}, TypeError, "`n` is True"),
        ({"n": -1}, ValueError, "`n` is -1, but must be 0 or more"),
        ({"n": 1, "function": print}, TypeError, "`function` is <built-in function print>, but must be a name"),
    ],
)
def test_wrong_arguments_fail_at_once(given: dict, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        max_compiles(**given)


def test_a_bound_that_cannot_see_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count proves nothing if jaxobs failed or was uninstalled inside the block."""
    with pytest.raises(BlindError, match="jaxobs was uninstalled inside the block"), max_compiles(0):
        lifecycle.uninstall()
        jitted()(ONE)

    def fail(*args: object) -> None:
        raise RuntimeError("moved")

    guard.raise_internal_errors(False)
    try:
        with pytest.raises(BlindError, match=r"jaxobs failed in `compilations\.ended`"), max_compiles(0):
            monkeypatch.setattr("jaxobs.internals.read_miss", fail)
            jitted()(ONE)
    finally:
        guard.raise_internal_errors(True)
        guard.reset()


def test_blocks_may_overlap() -> None:
    """A block that ends leaves the others their eyes; nested ones each count what is inside them."""
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        with pytest.raises(TooManyCompilesError), max_compiles(0):
            inside.set()
            done.wait(120)
            jitted()(ONE)

    bound = max_compiles(1)
    with ThreadPoolExecutor(1) as pool:
        with bound as outer, bound:
            ended = pool.submit(other)
            inside.wait(120)
            jitted()(ONE)
        done.set()
        ended.result(120)
    assert len(outer) == 1
    assert not store.current().installed


def test_disabled_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXOBS_DISABLED", "1")
    with pytest.warns(UserWarning, match="`JAXOBS_DISABLED` is set"), max_compiles(0) as found:
        jitted()(ONE)
    assert found == []
