"""Errors and their tracebacks, warnings, caches and memory stay what they were; and how the wrapper times calls."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import logging
import pickle
import re
import signal
import traceback
import tracemalloc
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.run_programs import run

import jaxobs
from jaxobs.base import guard
from jaxobs.base.config import Settings
from jaxobs.instruments import counted, wrapper
from jaxobs.state import call_stats, store
from jaxobs.state.call_stats import MOST_WAITING_DURATIONS

Jit = Callable[..., Any]
ROOT = Path(jaxobs.__file__).parent.parent
MODES = ["off", "tracebackhide", "remove_frames", "quiet_remove_frames"]


def plain_text(text: str) -> str:
    """`text` without what differs from run to run: addresses in either notation, fingerprints, durations."""
    return re.sub(r"0x[0-9a-f]+|\b\d{9,}\b|\b[0-9a-f]{32,}\b|\b\d+\.\d+(?= ms)", "0x", text)


def state(name: str) -> Any:
    return {each.name: each for each in jaxobs.snapshot().functions}[name]


# ------------------------------------------------------------------------------------------------ what is raised


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    """An error that refuses to have its attributes set."""

    code: int


class StubbornError(Exception):
    """An error that answers nothing about its own traceback."""

    def with_traceback(self, tb: Any) -> Any:
        raise RuntimeError("no")

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError("no")


Scenario = Callable[[Jit], object]


def traced(body: Callable[[Any], Any]) -> Scenario:
    """Jits a function of one argument, and calls it."""
    return lambda jit: jit(body)(1.0)


def fails_with(error: Callable[[], BaseException]) -> Scenario:
    def fails(x: Any) -> Any:
        raise error()

    return traced(fails)


def within(context: Callable[[], contextlib.AbstractContextManager[Any]], scenario: Scenario) -> Scenario:
    def run(jit: Jit) -> None:
        with context():
            scenario(jit)

    return run


def with_notes() -> BaseException:
    error = ValueError("noted")
    error.add_note("first")
    error.add_note("second")
    return error


def chained(x: Any) -> Any:
    try:
        {}["k"]
    except KeyError as error:
        raise ValueError("from a key") from error


def in_context(jit: Jit) -> None:
    def fails(x: Any) -> Any:
        try:
            {}["k"]
        except KeyError:
            raise ValueError("while handling")  # noqa: B904

    try:
        raise OSError("outer")
    except OSError:
        jit(fails)(1.0)


def suppressed(x: Any) -> Any:
    raise ValueError("alone") from None


def nested(jit: Jit) -> None:
    def outer(x: Any) -> Any:
        return jit(lambda y: jit(lambda z: z + undefined_name)(y))(x) + 1  # type: ignore[name-defined]  # noqa: F821

    jit(outer)(1.0)


def raised_again(jit: Jit) -> None:
    inner = jit(lambda x: 1 / 0)

    def outer(x: Any) -> Any:
        try:
            return inner(x)
        except ZeroDivisionError:
            raise

    jit(outer)(1.0)


def raised_twice(jit: Jit) -> None:
    kept = ValueError("one object")

    @jit
    def fails(x: Any) -> Any:
        raise kept

    with contextlib.suppress(ValueError):
        fails(1.0)
    fails(1.0)


def under(transform: Callable[[Any], Any]) -> Scenario:
    def fails(x: Any) -> Any:
        raise ValueError("below")

    return lambda jit: transform(jit(fails))(jnp.ones(2))


def donated_again(jit: Jit) -> None:
    f = jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones(4)
    f(x)
    f(x)


def wrong_sharding(jit: Jit) -> None:
    split = jax.sharding.NamedSharding(jax.make_mesh((8,), ("a",)), jax.sharding.PartitionSpec("a"))
    jit(lambda x: x, in_shardings=split)(jnp.ones(3))


def escaped(jit: Jit) -> None:
    seen: list[Any] = []
    jit(lambda x: (seen.append(x), x)[1])(1.0)
    jit(lambda x: x + seen[0])(1.0)


def leak_checked(jit: Jit) -> None:
    seen: list[Any] = []
    with jax.checking_leaks():
        jit(lambda x: (seen.append(x + 1), x)[1])(1.0)


def in_custom_gradient(jit: Jit) -> None:
    @jax.custom_vjp
    def f(x: Any) -> Any:
        return x

    f.defvjp(lambda x: (x, x), lambda residual, g: 1 / 0)
    jax.grad(jit(f))(1.0)


SCENARIOS: dict[str, Scenario] = {
    "value error": fails_with(lambda: ValueError("plain", 1)),
    "without arguments": fails_with(ValueError),
    "frozen": fails_with(lambda: FrozenError(3)),
    "stubborn": fails_with(lambda: StubbornError("x")),
    "notes": fails_with(with_notes),
    "group": fails_with(lambda: ExceptionGroup("several", [ValueError("a"), TypeError("b")])),
    "keyboard interrupt": fails_with(KeyboardInterrupt),
    "system exit": fails_with(lambda: SystemExit(3)),
    "generator exit": fails_with(GeneratorExit),
    "stopped": traced(lambda x: next(iter(()))),
    "chained": traced(chained),
    "suppressed": traced(suppressed),
    "under vmap": under(jax.vmap),
    "under grad": under(lambda f: jax.grad(lambda x: f(x).sum())),
    "under scan": under(lambda f: lambda x: jax.lax.scan(lambda c, y: (f(c), y), x, x)),
    "under jit": under(jax.jit),
    "under make_jaxpr": under(jax.make_jaxpr),
    "tracer as bool": traced(lambda x: 1 if x > 0 else 2),
    "tracer as index": lambda jit: jit(lambda x: [1, 2][x])(1),
    "shapes": lambda jit: jit(lambda x, y: x @ y)(jnp.ones((2, 3)), jnp.ones((2, 3))),
    "too few": lambda jit: jit(lambda x, y: x)(1.0),
    "unknown keyword": lambda jit: jit(lambda x: x)(1.0, y=1),
    "no type of JAX's": lambda jit: jit(lambda x: x)("text"),
    "no result of JAX's": traced(lambda x: "text"),
    "unhashable static": lambda jit: jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
    "not a number": within(lambda: jax.debug_nans(True), lambda jit: jit(lambda x: x / x)(0.0)),
    "tracing forbidden": within(jax.no_tracing, traced(lambda x: x)),
    "without jit": within(jax.disable_jit, traced(lambda x: 1 / 0)),
    "in lower": lambda jit: jit(lambda x: 1 / 0).lower(1.0),
    "in trace": lambda jit: jit(lambda x: 1 / 0).trace(1.0),
    "wrong AOT": lambda jit: jit(lambda x: x).lower(jnp.ones(2)).compile()(jnp.ones(3)),
    "bad option": lambda jit: jit(lambda x: x, static_argnums="x"),
    "unknown option": lambda jit: jit(lambda x: x, no_such_option=1),
    "static beyond the last": lambda jit: jit(lambda x: x, static_argnums=17),
    "unknown name": lambda jit: jit(lambda x: x, static_argnames="nope"),
    "donated by halves": lambda jit: jit(lambda x: x, donate_argnums=1.5),
    "not callable": lambda jit: jit(3),
    "in a generator": lambda jit: next(jit(lambda x: 1 / 0)(each) for each in (1.0,)),
    **{
        each.__name__: each
        for each in (
            in_context, nested, raised_again, raised_twice, donated_again, wrong_sharding, escaped, in_custom_gradient
        )
    },
}  # fmt: skip


@pytest.fixture
def filtering(request: pytest.FixtureRequest) -> Iterator[None]:
    """JAX's way of filtering tracebacks, for one test."""
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", request.param)
    yield
    jax.config.update("jax_traceback_filtering", before)


def raised(scenario: Scenario, jit: Jit = jax.jit) -> BaseException:
    try:
        scenario(jit)
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def formatted(error: BaseException) -> str:
    return plain_text("".join(traceback.format_exception(error)))


def hidden_frames(error: BaseException) -> list[tuple[str, bool]]:
    return [(f.f_code.co_name, "__tracebackhide__" in f.f_locals) for f, _ in traceback.walk_tb(error.__traceback__)]


@pytest.mark.parametrize("filtering", MODES, indirect=True)
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_errors_arrive_as_they_were(name: str, filtering: None) -> None:
    """Type, arguments, notes, causes and each line of the traceback are those of `jax.jit`, however JAX filters."""
    bare, ours = (
        (type(each), plain_text(repr(each.args)), formatted(each), hidden_frames(each))
        for each in [raised(SCENARIOS[name], jit) for jit in (jax.jit, jaxobs.jit)]
    )
    assert ours == bare


@pytest.mark.parametrize("kind", [FrozenError, StubbornError])
def test_errors_that_refuse_to_be_touched(kind: type[Exception]) -> None:
    def fails() -> None:
        raise kind(1)

    bare, ours = [raised(lambda _, function=each: function()) for each in (fails, jaxobs.instrument(fails))]  # type: ignore[misc]
    assert type(ours) is kind and formatted(ours) == formatted(bare)


def test_error_in_a_callback() -> None:
    def back(x: Any) -> Any:
        raise ValueError("in the callback")

    def run(jit: Jit) -> None:
        jit(lambda x: jax.pure_callback(back, x, x))(jnp.float32(1)).block_until_ready()

    logging.disable(logging.ERROR)
    try:
        bare, ours = (raised(run, jit) for jit in (jax.jit, jaxobs.jit))
    finally:
        logging.disable(logging.NOTSET)
    assert type(ours) is type(bare)
    assert "in the callback" in str(bare)
    # JAX puts the whole stack into this text as it stands, so our frame is in it.
    stack = re.sub(rf'  File "{re.escape(counted.UNSEEN)}".*\n', "", str(ours))
    assert plain_text(stack) == plain_text(str(bare))


def test_leaks_are_found_alike() -> None:
    """`jax.checking_leaks` reports the same leak; in its list of who refers to whom the wrapper is one line more."""
    bare, ours = (raised(leak_checked, jit) for jit in (jax.jit, jaxobs.jit))
    assert type(ours) is type(bare)
    text = plain_text(str(ours)).replace("<PjitFunction 0x> is referred to by <PjitFunction 0x>\n", "")
    assert text == plain_text(str(bare))
    with jax.checking_leaks():
        assert jaxobs.jit(lambda x: x + 1)(1.0) == 2.0


def test_an_error_without_python_below_it() -> None:
    compiled = jax.jit(lambda x: x + 1)
    deleted = jnp.ones(3)
    deleted.delete()
    compiled(jnp.ones(3))
    bare, ours = (
        formatted(raised(lambda _, run=each: run(deleted))) for each in (compiled, jaxobs.instrument(compiled))
    )  # type: ignore[misc]
    assert ours == bare


class HeldError(Exception):
    """An object to which there can be weak references."""


def fails_held() -> None:
    raise HeldError


def test_an_error_leaves_no_cycle() -> None:
    error = raised(lambda _: jaxobs.instrument(fails_held)())
    reference = weakref.ref(error)
    gc.disable()
    try:
        del error
        assert reference() is None
    finally:
        gc.enable()


def test_errors_are_counted_by_type(fresh: None) -> None:
    """A call that raises is a call and an error of its type; an interrupt is no error; a traced one is the outer's."""

    def fails(x: Any, how: str) -> Any:
        raise {"value": ValueError, "key": KeyError, "stop": KeyboardInterrupt}[how]("x")

    ours = jaxobs.jit(fails, static_argnames="how", name="fails")
    outer = jaxobs.jit(lambda x: ours(x, how="value"), name="outer")
    for how in ("value", "value", "key", "stop"):
        with pytest.raises((ValueError, KeyError, KeyboardInterrupt)):
            ours(1.0, how=how)
    with pytest.raises(ValueError, match="x"):
        outer(1.0)
    assert state("fails").calls == 4
    assert state("fails").errors == {"ValueError": 2, "KeyError": 1}
    assert state("outer").calls == 1
    assert state("outer").errors == {"ValueError": 1}


def test_our_own_failure_stays_ours(fresh: None, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    guard.raise_internal_errors(False)
    ours = jaxobs.instrument(lambda x: 10 / x, name="survivor")
    monkeypatch.setattr(call_stats.CallStats, "failed", lambda *_: 1 / 0)
    monkeypatch.setattr(call_stats.CallStats, "spent", lambda *_: 1 / 0)
    store.current().call_stats("survivor").timed = 1
    assert ours(5) == 2
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        ours(0)
    assert guard.internal_errors() == {"wrapper.failed": 1, "wrapper.spent": 1}
    monkeypatch.setattr(store.Store, "call_stats", lambda *_: 1 / 0)
    plain = jaxobs.instrument(len)
    assert plain is len
    assert guard.internal_errors()["wrapper"] == 1


# -------------------------------------------------------------------------------------- who asks for the caller


def places(jit: Jit, report: Callable[[int], Any]) -> Any:
    found = []

    def reporting(x: Any) -> Any:
        found.append([report(level) for level in range(1, 60)])
        return x

    jit(reporting)(1.0)
    with jax.disable_jit():
        jit(reporting)(1.0)
    jax.vmap(jit(jit(reporting)))(jnp.ones(2))
    return found


def warned(level: int) -> tuple[str, int]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn("look", stacklevel=level)
    return seen[0].filename, seen[0].lineno


def logged(level: int) -> tuple[str, int]:
    file, line, *_ = logging.getLogger("x").findCaller(stacklevel=level)
    return file, line


@pytest.mark.parametrize("report", [warned, logged])
def test_stacklevels_point_where_they_did(report: Callable[[int], Any]) -> None:
    bare, ours = (places(jit, report) for jit in (jax.jit, jaxobs.jit))
    assert len(bare) == 3
    assert (__file__, places.__code__.co_firstlineno + 9) in bare[1]
    assert ours == bare


def warnings_of(call: Callable[[], Any]) -> list[tuple[Any, ...]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(each.category, plain_text(str(each.message)), each.filename, each.lineno) for each in caught]


@pytest.mark.parametrize(
    "call",
    [
        lambda jit: jit(lambda x: x + 1, backend="cpu")(1),
        lambda jit: jit(lambda x: x + 1, device=jax.devices()[0])(1),
        lambda jit: jit(lambda x: x[:1].astype(jnp.int8), donate_argnums=0)(jnp.ones(300)),
    ],
    ids=["backend", "device", "donated"],
)
def test_warnings_reach_the_caller(call: Callable[[Jit], Any]) -> None:
    """Deprecations of `jit` and what JAX says of a call name the line of the program: else Python hides them."""
    bare, ours = (warnings_of(lambda jit=each: call(jit)) for each in (jax.jit, jaxobs.jit))  # type: ignore[misc]
    assert len(bare) == 1
    assert ours == bare


def test_cache_misses_are_explained_alike(caplog: pytest.LogCaptureFixture) -> None:
    said = []
    jax.config.update("jax_explain_cache_misses", True)
    try:
        for jit in (jax.jit, jax.jit, jaxobs.jit):  # the first time it lacks: "another function on the same line"
            caplog.clear()
            with caplog.at_level(logging.DEBUG, logger="jax"):
                f = jit(lambda x, y: x + y)
                f(1.0, jnp.ones(2))
                f(1.0, jnp.ones(3))
                f(1, jnp.ones(3))
                f(1, y=jnp.ones(3))
            said.append([plain_text(each.getMessage()) for each in caplog.records if "MISS" in each.getMessage()])
    finally:
        jax.config.update("jax_explain_cache_misses", False)
    assert len(said[1]) >= 4
    assert said[2] == said[1]


def test_persistent_cache_has_the_same_keys(tmp_path: Path) -> None:
    """A program compiled through jaxobs is found in the persistent cache without it: keys and entries are equal."""
    done = run(f"""
        import os, warnings
        warnings.simplefilter("ignore")  # JAX's of forks: no backend is awake yet
        import jax, jax.numpy as jnp
        import jaxobs

        def keys(jit):
            jax.config.update("jax_compilation_cache_dir", "cache")
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

            @jit
            def inner(x):
                return jnp.sin(x)

            @jit
            def outer(x):
                return jax.lax.fori_loop(0, 3, lambda i, c: inner(c), x)

            outer(jnp.ones(3)), jax.grad(lambda x: outer(x).sum())(jnp.ones(3)), jax.vmap(inner)(jnp.ones(4))
            return sorted(name for name in os.listdir("cache") if name.endswith("-cache"))

        for number, jit in enumerate((jax.jit, jaxobs.jit, lambda f: jaxobs.instrument(jax.jit(f)))):
            folder = f"{tmp_path}/{{number}}"
            os.mkdir(folder)
            if (child := os.fork()) == 0:
                os.chdir(folder)  # the name of the cache's directory is part of its keys
                print(keys(jit), flush=True)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    """)
    assert done.returncode == 0, done.stderr
    bare, *ours = done.stdout.splitlines()
    assert "outer" in bare and ours == [bare, bare]


# ----------------------------------------------------------------------------------------------- what is kept


def test_nothing_is_kept_alive() -> None:
    def use() -> list[weakref.ref[Any]]:
        held = HeldError()
        ours = jaxobs.jit(lambda x: (held, x + 1)[1])
        x = jnp.ones(8)
        y = ours(x)
        references = [weakref.ref(x), weakref.ref(y)]
        del x, y
        assert [reference() for reference in references] == [None, None]
        return [weakref.ref(held), weakref.ref(ours)]

    references = use()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def call(fun: Any, x: Any, _: Any) -> None:
    fun(x)


def test_an_error_keeps_no_more_than_without_us() -> None:
    def kept(jit: Jit) -> list[bool]:
        def fails(x: Any) -> Any:
            raise ValueError

        x = jnp.ones(8)
        reference = weakref.ref(x)
        error = raised(functools.partial(call, jit(fails), x), jit)
        del x, fails
        gc.collect()
        alive = [reference() is not None]
        del error
        gc.collect()
        return [*alive, reference() is not None]

    assert kept(jaxobs.jit) == kept(jax.jit)


def test_thousands_of_wrappers_take_no_memory(fresh: None) -> None:
    """Wrappers made in a loop and dropped leave nothing behind, and their labels stay bounded."""

    def make(several: int) -> None:
        for n in range(several):
            jaxobs.jit(lambda x: x, name=f"made{n}")
            jaxobs.instrument(lambda x: x, name=f"made{n}")

    make(Settings().max_functions + 1)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        make(3000)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 60_000
    assert len(jaxobs.snapshot().functions) <= Settings().max_functions + 1


@pytest.mark.parametrize("wrap", [jaxobs.jit, lambda fun: jaxobs.instrument(functools.partial(fun))])
def test_dropped_wrappers_are_freed(wrap: Any) -> None:
    gc.disable()
    try:
        reference = weakref.ref(wrap(lambda x: x))
        assert reference() is None
    finally:
        gc.enable()


# --------------------------------------------------------------------------------------------------- timing


def timed(name: str) -> int:
    """How many calls of `name` have a time."""
    dispatch = state(name).dispatch
    return 0 if dispatch is None else sum(dispatch.counts)


@pytest.mark.parametrize(
    ("timing", "several", "first", "later"),
    [
        ("sampled", 3000, 1024, 64),  # then a few after each tick
        ("all", MOST_WAITING_DURATIONS + 5, MOST_WAITING_DURATIONS + 5, MOST_WAITING_DURATIONS + 5),
        ("off", 100, 0, 0),
    ],
)
def test_calls_are_timed_as_asked_for(timing: str, several: int, first: int, later: int, fresh: None) -> None:
    """However many wait; every call is counted, and switching over takes effect on functions that exist."""
    ours = jaxobs.instrument(lambda: None, name="ours")
    store.current().configure(Settings(dispatch_timing=timing))
    for expected in (first, first + later):
        for _ in range(several):
            ours()
        assert len(store.current().call_stats("ours").durations) <= MOST_WAITING_DURATIONS
        assert timed("ours") == expected
        store.current().tick()
    for timing, more in (("all", 1), ("off", 1)):
        store.current().configure(Settings(dispatch_timing=timing))
        ours()
        assert timed("ours") == first + later + more
    assert state("ours").calls == 2 * several + 2
    assert 0 < state("ours").dispatch.sum < 1


def test_timing_ends_where_calls_overlap(fresh: None) -> None:
    def within(depth: int) -> None:
        if depth:
            ours(depth - 1)

    ours = jaxobs.instrument(within, name="overlap")
    stats = store.current().call_stats("overlap")
    stats.timed = 1
    for _ in range(2):
        ours(3)
        assert stats.timed == 0
    assert timed("overlap") == 4


def test_a_forked_child_starts_from_nothing(fresh: None) -> None:
    """After a fork the wrappers that exist count from zero, with locks of their own; names and settings stay."""
    ours = jaxobs.instrument(raises_zero, name="forked")
    for _ in range(5):
        with contextlib.suppress(ZeroDivisionError):
            ours()
    stats = store.current().call_stats("forked")
    with stats._lock:
        store.current().after_fork()
        with contextlib.suppress(ZeroDivisionError):
            ours()
        assert state("forked").calls == 1
        assert state("forked").errors == {"ZeroDivisionError": 1}
        assert timed("forked") == 0


def raises_zero() -> float:
    return 1 / 0


def test_a_signal_handler_may_call_it(fresh: None) -> None:
    """A handler that interrupts our own bookkeeping and calls the function itself does not wait for itself."""
    ours = jaxobs.instrument(raises_zero, name="interrupted")
    stats = store.current().call_stats("interrupted")

    def handler(*_: Any) -> None:
        with contextlib.suppress(ZeroDivisionError):
            ours()
        stats.drain()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with stats._lock:
            signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert state("interrupted").errors == {"ZeroDivisionError": 1}


# ------------------------------------------------------------------------------------------------------ oddities


def test_frames_of_the_wrapper_are_excluded_by_name() -> None:
    assert "importlib" in counted.UNSEEN and "_bootstrap" in counted.UNSEEN
    for hidden in (wrapper.jit, wrapper.jit(lambda x: x).__call__):
        assert hidden.__code__.co_filename == counted.UNSEEN
    assert wrapper.instrument.__code__.co_filename == wrapper.__file__


def test_threads_may_prepare_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that make the first wrapper of a process both prepare for it, and neither fails."""
    for _ in range(2):
        monkeypatch.setattr(counted, "_prepared", False)
        assert jaxobs.instrument(len)("ab") == 2


def test_half_made_wrappers_do_not_recurse() -> None:
    bare = counted.InstrumentedFunction.__new__(counted.InstrumentedFunction)
    with pytest.raises(AttributeError):
        _ = bare.anything


def test_odd_callables(fresh: None) -> None:
    class Hostile:
        def __call__(self, x: Any) -> Any:
            return x

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

        __repr__ = __getattr__  # type: ignore[assignment]

    assert jaxobs.instrument(dict)(a=1) == {"a": 1}
    assert jaxobs.instrument("a,b".split)(",") == ["a", "b"]
    assert jaxobs.instrument(jaxobs.instrument)(len)([1, 2]) == 2
    guard.raise_internal_errors(False)
    assert jaxobs.instrument(Hostile())(3) == 3
    assert jaxobs.instrument(Hostile(), name="hostile")(4) == 4
    assert state("hostile").calls == 1


def test_labels_are_taken_as_given(fresh: None) -> None:
    class Owner:
        def step(self) -> None:
            return None

    jaxobs.instrument(functools.partial(Owner.step, Owner()))()
    jaxobs.instrument(Owner().step)()
    jaxobs.instrument(np.sum)([1])
    jaxobs.instrument(lambda: None, name="x" * 1000)()
    names = {each.name: each.calls for each in jaxobs.snapshot().functions}
    assert names[f"{__name__}.test_labels_are_taken_as_given.<locals>.Owner.step"] == 2
    assert max(map(len, names)) <= call_stats.MOST_LABEL
    assert pickle.loads(pickle.dumps(jaxobs.instrument(len, name="len"))).__name__ == "len"
