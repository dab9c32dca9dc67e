"""Fast-path misses are counted, exactly and with their cause, against what the interpreter itself sees run."""

from __future__ import annotations

import functools
import gc
import itertools
import random
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.route_states import exposed
from helpers.run_programs import run
from helpers.threads import at_once
from jax.experimental import io_callback

import jaxobs
from jaxobs import internals
from jaxobs.base import guard
from jaxobs.facts.functions import FASTPATH_CAUSES, FunctionState
from jaxobs.instruments import counted
from jaxobs.internals import fastpath as seen
from jaxobs.internals import fastpath_causes
from jaxobs.state import fastpath, store
from jaxobs.state.call_stats import CallStats

pytestmark = pytest.mark.usefixtures("fresh")

X = jnp.ones(3)
ONLY_MONITORS = pytest.mark.skipif(not seen.MONITORS, reason="Python 3.11 sees the calls that are timed")
ONLY_PROFILES = pytest.mark.skipif(seen.MONITORS, reason="from Python 3.12 on every fall is seen")


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No profile function stays behind, and no frame."""
    yield
    assert sys.getprofile() is None
    assert seen.this_thread.fall is None


def state(name: str) -> FunctionState:
    return next(each for each in jaxobs.snapshot().functions if each.name == name)


def misses(name: str) -> dict[str, int]:
    return dict(state(name).fastpath_misses)


def repeat(function: Callable[[Any], Any], times: int, argument: Any = X) -> None:
    for _ in range(times):
        function(argument)


def entries(call: Callable[[], Any]) -> int:
    """How often JAX's Python dispatch really ran during `call`, as a trace function of the interpreter sees it."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if frame.f_code is seen.miss_code():
            count += 1

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return count


def calling_back(**options: Any) -> Callable[[Any], Any]:
    """A program with a callback to the host; a new one, since JAX knows again what it has compiled."""

    def program(x: Any) -> Any:
        jax.debug.callback(lambda value: None, x, **options)
        return x + 1

    return program


def failing_at_first() -> Callable[[Any], Any]:
    """A program whose first trace raises."""
    errors = iter([ValueError("not yet")])

    def program(x: Any) -> Any:
        for error in errors:
            raise error
        return x + 1

    return program


def asking(flatten: Callable[[], Any]) -> Any:
    """A tree that makes a call for its leaf, which flattening does in the middle of a call."""

    class Tree:
        """A class of its own for each."""

    jax.tree_util.register_pytree_node(Tree, lambda tree: ((flatten(),), None), lambda *_: Tree())
    return Tree()


# ----------------------------------------------------------------------------------------------------- what counts


def test_calls_on_the_fast_path_are_none() -> None:
    step = jaxobs.jit(lambda x: x + 1, name="step")
    for size in (2, 3, 2, 3, 2):
        step(jnp.ones(size))
    assert entries(lambda: step(jnp.ones(2))) == 0
    assert misses("step") == {}
    assert state("step").fastpath_watched
    assert state("step").fastpath_reason is None


@pytest.mark.parametrize("ordered", [False, True])
def test_a_callback_costs_each_call_its_fast_path(ordered: bool) -> None:
    step = jaxobs.jit(calling_back(ordered=ordered), name="step")
    step(X)
    assert misses("step") == {}
    assert entries(lambda: repeat(step, 10)) == 10
    repeat(step, 2000)
    jax.effects_barrier()
    assert misses("step") == {"effects": 2010}
    reason = str(state("step").fastpath_reason)
    assert "DebugEffect" in reason and "every N steps" in reason


IO_SHAPE = jax.ShapeDtypeStruct((3,), jnp.float32)


@pytest.mark.parametrize(
    ("program", "arguments", "expected", "reason"),
    [
        (lambda x: io_callback(np.asarray, IO_SHAPE, x), [X] * 4, {"effects": 3}, "IOEffect"),
        (
            lambda x: x * 2, [X, X, np.ones(3, np.float32), np.ones(3, np.float32), X],
            {"new_signature": 1}, "The next such call is fast",
        ),
    ],
    ids=["io_callback", "numpy after jax"],
)  # fmt: skip
def test_falls_have_a_cause(program: Any, arguments: list[Any], expected: dict[str, int], reason: str) -> None:
    step = jaxobs.jit(program, name="step")
    for argument in arguments:
        step(argument)
    assert misses("step") == expected and reason in str(state("step").fastpath_reason)


@pytest.mark.skipif(not hasattr(jax, "new_ref"), reason="this JAX has no public refs")
def test_a_ref_is_an_effect() -> None:
    def add(ref: Any) -> None:
        ref[...] = ref[...] + 1

    repeat(jaxobs.jit(add, name="step"), 4, jax.new_ref(X))
    assert misses("step") == {"effects": 3}
    assert "a Ref (" in str(state("step").fastpath_reason)


def test_typed_keys_have_a_fast_path() -> None:
    step = jaxobs.jit(lambda key: jax.random.split(key)[0], name="step")
    key = jax.random.key(0)
    for _ in range(5):
        key = step(key)
    assert set(misses("step")) <= {"new_signature"}
    before = misses("step")
    assert entries(lambda: step(key)) == 0
    assert misses("step") == before


def test_the_option_that_rules_the_fast_path_out_is_named() -> None:
    """`jax_debug_key_reuse` does, for as long as it is on."""
    step = jaxobs.jit(lambda x: x - 1, name="step")
    with jax.debug_key_reuse(True):
        repeat(step, 4)
    repeat(step, 4)
    found = misses("step")
    assert found.pop("configuration") == 3
    assert found in ({}, {"stuck_entry": 3}), "the oldest versions do not tell the calls with it from those without"
    with jax.debug_key_reuse(True):
        step(X)
    assert "`jax_debug_key_reuse` is set" in str(state("step").fastpath_reason)


def test_a_first_call_that_raised_costs_all_later_ones_the_fast_path() -> None:
    """Until the function's caches are cleared: JAX keeps the entry that the failed call had begun."""
    step = jaxobs.jit(failing_at_first(), name="step")
    with pytest.raises(ValueError, match="not yet"):
        step(X)
    step(X)
    assert entries(lambda: repeat(step, 5)) == 5
    assert misses("step") == {"stuck_entry": 5}
    assert "clear_cache()" in str(state("step").fastpath_reason)
    step.clear_cache()
    step(X)
    assert entries(lambda: repeat(step, 5)) == 0
    assert misses("step") == {"stuck_entry": 5}


@pytest.mark.slow
def test_a_full_dispatch_cache_is_told() -> None:
    step = jaxobs.jit(lambda *numbers: sum(numbers), name="step")
    stats = store.current().call_stats("step")
    stats.time("all")
    kinds = itertools.product((jnp.float32(1), np.float32(1)), repeat=14)
    for number, arguments in enumerate(itertools.islice(kinds, 9000)):
        if number % 1000 == 0:
            stats.tick()
        step(*arguments)
    try:
        found = misses("step")
        assert set(found) == {"new_signature", "cache_full"}
        assert sum(found.values()) == 8999
        assert found["cache_full"] >= 9000 - 8192
        assert "All 8,192 entries" in str(state("step").fastpath_reason)
    finally:
        jax.clear_caches()


def test_traced_and_transformed_calls_are_none() -> None:
    step = jaxobs.jit(lambda x: x * 3, name="step")
    outer = jax.jit(lambda x: step(x) + 1)
    for _ in range(3):
        outer(X)
        jax.grad(lambda x: step(x).sum())(X)
        jax.vmap(step)(jnp.ones((2, 3)))
        jax.lax.map(step, jnp.ones((2, 3)))
    repeat(step, 3)
    assert misses("step") == {}


def test_a_wrapper_inside_another_one_keeps_its_own_counts() -> None:
    inner = jaxobs.jit(calling_back(), name="inner")
    outer = jaxobs.jit(lambda x: inner(x) * 2, name="outer")
    repeat(outer, 5)
    assert (misses("inner"), misses("outer")) == ({}, {"effects": 4})
    repeat(inner, 3)
    assert (misses("inner"), misses("outer")) == ({"effects": 2}, {"effects": 4})


def test_falls_in_the_middle_of_a_call_are_not_its_own_and_lose_none() -> None:
    inner = jaxobs.jit(calling_back(), name="inner")
    program, other, inner_tree = calling_back(), jax.jit(calling_back()), asking(lambda: inner(X))
    other_tree = asking(lambda: other(X))
    outer = jaxobs.jit(lambda tree: program(jax.tree.leaves(tree)[0]), name="outer")
    step = jaxobs.jit(lambda tree: jnp.ones(3), name="step")
    inner(X)
    for _ in range(5):
        outer(inner_tree)
        step(other_tree)
    jax.effects_barrier()
    assert misses("outer") == {"effects": 4}
    assert misses("inner")["effects"] >= 4
    assert set(misses("step")) <= {"new_signature"}


def test_entries_from_before_the_wrapper_are_no_news() -> None:
    bare = jax.jit(failing_at_first())
    with pytest.raises(ValueError, match="not yet"):
        bare(X)
    bare(X)
    step = jaxobs.instrument(bare, name="step")
    repeat(step, 3)
    assert misses("step") == {"unknown": 3}
    assert "did not use it" in str(state("step").fastpath_reason)


def test_calls_that_raise_leave_nothing_behind() -> None:
    inner = jaxobs.jit(lambda x: {}["always"], name="inner")

    def program(x: Any) -> Any:
        with pytest.raises(KeyError):
            inner(x)
        assert sys.getprofile() is None
        return x

    outer = jaxobs.jit(program, name="outer")
    for size in (1, 2):
        outer(jnp.ones(size))
        with pytest.raises(KeyError):
            inner(jnp.ones(size))
    assert (misses("inner"), misses("outer")) == ({}, {})


def test_arguments_and_results_are_let_go() -> None:
    gc.disable()
    try:
        step = jaxobs.jit(calling_back(), name="step")
        step(jnp.ones(7))
        argument = jnp.ones(7)
        result = step(argument)
        jax.effects_barrier()
        references = [weakref.ref(argument), weakref.ref(result)]
        assert misses("step") == {"effects": 1}
        del argument, result
        assert [each() for each in references] == [None, None]
    finally:
        gc.enable()


def test_exact_under_threads() -> None:
    slow = [jaxobs.jit(functools.partial(lambda n, x: calling_back()(x) * n, n), name=f"slow{n}") for n in range(3)]
    fast = [jaxobs.jit(functools.partial(lambda n, x: x * n, n), name=f"fast{n}") for n in range(3)]
    for function in (*slow, *fast):
        store.current().call_stats(function._jaxobs_name).time("all")
        function(X)
    calls: list[str] = []

    def work(seed: int) -> None:
        order = random.Random(seed)
        for number in range(300):
            function = order.choice((*slow, *fast))
            function(X)
            calls.append(function._jaxobs_name)
            if number % 50 == 0:
                jaxobs.jit(functools.partial(jnp.add, number), name=f"compiles{seed}")(X)

    at_once(8, work)
    jax.effects_barrier()
    for n in range(3):
        assert misses(f"slow{n}") == {"effects": calls.count(f"slow{n}")}
    assert not any(misses(name) for name in [*(f"fast{n}" for n in range(3)), *(f"compiles{n}" for n in range(8))])


# ------------------------------------------------------------------------------------------ which callables, and where


def test_what_is_no_jit_function_is_not_watched() -> None:
    for name, fun in (
        ("python", lambda x: jnp.mean(x)),
        ("compiled", jax.jit(lambda x: x + 1).lower(X).compile()),
        ("two", functools.partial(lambda f, x: f(x), jax.jit(calling_back()))),
    ):
        repeat(jaxobs.instrument(fun, name=name), 3)
        assert not state(name).fastpath_watched
        assert misses(name) == {} and exposed("jax_fastpath_misses_total", function=name) is None


def test_the_metric_and_the_snapshot_tell_them() -> None:
    repeat(jaxobs.jit(lambda x: x + 1, name="good"), 3)
    repeat(jaxobs.instrument(jax.jit(calling_back()), name="bad"), 3)
    assert exposed("jax_fastpath_misses_total", function="good") == 0.0
    assert exposed("jax_fastpath_misses_total", function="bad") == 2.0


@ONLY_MONITORS
def test_libraries_that_hold_a_jit_function_are_watched() -> None:
    """A callable with one such attribute, as `nnx.jit` and `eqx.filter_jit` make."""

    class Held:
        def __init__(self, fun: Any) -> None:
            self.jitted = jax.jit(fun)

        def __call__(self, x: Any) -> Any:
            return jnp.mean(self.jitted(x))

    repeat(jaxobs.instrument(Held(lambda x: x + 1), name="good"), 4)
    repeat(jaxobs.instrument(Held(calling_back()), name="bad"), 4)
    assert (misses("good"), misses("bad")) == ({}, {"effects": 3})


@ONLY_MONITORS
def test_the_tool_number_is_given_back_and_taken_again() -> None:
    """By `uninstall` and `install`; where all are taken, functions are not watched."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    step = jaxobs.jit(calling_back(), name="step")
    step(X)
    assert "jaxobs" in [monitoring.get_tool(tool) for tool in (3, 4)]
    jaxobs.install(port=0)
    jaxobs.uninstall()
    assert [monitoring.get_tool(tool) for tool in (3, 4)] == [None, None]
    step(X)
    assert misses("step") == {}
    jaxobs.install(port=0)
    step(X)
    assert misses("step") == {"effects": 1}
    jaxobs.uninstall()
    for tool in (3, 4):
        monitoring.use_tool_id(tool, "another")
    try:
        jaxobs.jit(lambda x: x, name="blind")(X)
        assert not state("blind").fastpath_watched
        assert [monitoring.get_tool(tool) for tool in (3, 4)] == ["another", "another"]
    finally:
        for tool in (3, 4):
            monitoring.free_tool_id(tool)


@ONLY_PROFILES
def test_a_profiler_of_the_program_stays_in_place() -> None:
    step = jaxobs.jit(calling_back(), name="step")
    step(X)
    events: list[str] = []

    def profiler(frame: Any, event: str, argument: Any) -> None:
        events.append(frame.f_code.co_name)

    sys.setprofile(profiler)
    try:
        step(X)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    assert "cache_miss" in events
    assert misses("step") == {}
    step(X)
    assert misses("step") == {"effects": 1}


@ONLY_PROFILES
def test_a_profiler_that_the_program_starts_while_it_traces_stays_in_place() -> None:
    def profiler(frame: Any, event: str, argument: Any) -> None:
        """Sees all."""

    def program(x: Any) -> Any:
        sys.setprofile(profiler)
        return x

    try:
        jaxobs.jit(program, name="step")(X)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)


@ONLY_PROFILES
@pytest.mark.parametrize("twice", [False, True])
def test_an_exception_out_of_nowhere_does_not_leave_the_watch_on(twice: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a signal's in the middle of the call, and another one where the first is handled."""
    if twice:
        monkeypatch.setattr(fastpath, "raised", lambda *_: None)

    class Interrupt(BaseException):
        pass

    def interrupt() -> Any:
        raise Interrupt

    step = jaxobs.jit(lambda tree: tree, name="step")
    with pytest.raises(Interrupt):
        step(asking(interrupt))
    assert sys.getprofile() is None


@ONLY_PROFILES
def test_a_loss_that_begins_late_is_seen_at_the_next_tick_and_counted_from_then_on() -> None:
    """Without a loss a function is watched for some calls of each tick only."""
    call_back = calling_back()
    step = jaxobs.jit(lambda x, flag: call_back(x) if flag else x + 1, name="step", static_argnums=1)
    kept, lost = (functools.partial(lambda flag, x: step(x, flag), flag) for flag in (False, True))
    kept(X), lost(X)
    repeat(kept, 2000)
    repeat(lost, 100)
    assert misses("step") == {}
    store.current().tick()
    repeat(lost, 3000)
    assert misses("step") == {"effects": 3000}
    repeat(kept, 1200)
    assert store.current().call_stats("step").timed == 0


def test_more_calls_are_timed_while_a_function_is_slow() -> None:
    """Only where they asked for it, and never where nothing is to be timed."""
    for timing, keep_on, expected in (("sampled", False, 0), ("sampled", True, 1024), ("off", True, 0)):
        stats = CallStats()
        stats.time(timing)
        stats.fell("effects", "It calls back.", keep_on=keep_on)
        stats.spent()
        assert stats.timed == expected
        stats.spent()
        assert stats.timed == 0
    assert stats.falls() == ({"effects": 1}, "It calls back.")
    stats.reset()
    assert stats.falls() == ({}, None)


# ----------------------------------------------------------------------------------------------------- reading JAX


def test_a_jax_whose_insides_moved_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "miss_code", lambda: None)
    assert not seen.sees_falls() and internals.probe()["fastpath"] is False


def test_a_failure_of_ours_costs_the_count_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    guard.raise_internal_errors(False)
    monkeypatch.setattr(fastpath_causes, "why", lambda *_: 1 / 0)
    step = jaxobs.jit(calling_back(), name="step")
    for _ in range(3):
        assert step(X).shape == (3,)
    assert misses("step") == {}
    assert sum(guard.internal_errors().values()) == 3
    assert sys.getprofile() is None


def test_causes_are_of_the_closed_set() -> None:
    source = Path(fastpath_causes.__file__).read_text()
    given = {cause for cause in FASTPATH_CAUSES if f'"{cause}"' in source}
    assert given == set(FASTPATH_CAUSES)


def test_types_are_named_with_their_module_and_bounded() -> None:
    kinds = [type(f"Kind{n}", (), {"__module__": "mine.inner"}) for n in range(5)]
    assert fastpath_causes._names([int, *kinds]) == "int, mine.inner.Kind0, mine.inner.Kind1 and 3 more"
    assert fastpath_causes._names([type(X)]) == "ArrayImpl"


def test_what_the_fast_path_takes_is_what_jax_takes() -> None:
    """By JAX's own judgement of a value: arrays, numbers and keys, no text and no foreign array."""

    class Foreign:
        def __jax_array__(self) -> Any:
            return X

    taken = [X, np.ones(2), 1, 1.0, True, 1j, np.float32(1), jax.random.key(0)]
    assert fastpath_causes._strange_arguments(taken) == ""
    assert "Foreign" in fastpath_causes._strange_arguments([*taken, Foreign()])
    donated = jnp.ones(3)
    donated.delete()
    assert fastpath_causes._strange_arguments([donated]) == ""


def test_nothing_is_woken() -> None:
    """Wrapping and watching do not initialise JAX's backends."""
    done = run(
        """
        import jax, jaxobs
        jaxobs.jit(lambda x: x)
        jaxobs.instrument(jax.jit(lambda x: x))
        from jax._src import xla_bridge
        assert not xla_bridge.backends_are_initialized()
        """,
        JAXOBS_RAISE_INTERNAL_ERRORS="1",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_hot_path_asks_nothing_of_a_call_that_is_not_timed() -> None:
    """No profile function is set, not even looked at: the names do not occur before the branch."""
    step = jaxobs.jit(lambda x: x + 1, name="step")
    step(X)
    store.current().call_stats("step").timed = 0
    seen_profiles: list[Any] = []

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code is counted._CALL:
            seen_profiles.append(sys.getprofile())
            return trace
        return None

    sys.settrace(trace)
    try:
        step(X)
    finally:
        sys.settrace(None)
    assert seen_profiles
    assert not any(seen_profiles)
    assert fastpath.see is None or not seen.MONITORS


def test_where_every_call_is_timed_not_every_call_is_watched() -> None:
    """The first turn is, later ones after a tick or while calls are lost: watching costs as much as timing."""
    stats = CallStats()
    stats.time("all")
    assert stats.looking and stats.timed == 1024
    stats.spent()
    assert not stats.looking and stats.timed > 1024
    stats.tick()
    assert stats.looking
    stats.fell("effects", "It calls back.", keep_on=True)
    stats.spent()
    assert stats.looking
    stats.spent()
    assert not stats.looking


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 has no such function")
def test_threads_under_an_audit_hook() -> None:
    """A hook gives the interpreter away while a profile function is set: Python 3.11 refuses the next thread's."""
    done = run(
        """
        import sys, threading, time
        import jax, jax.numpy as jnp
        import jaxobs

        sys.setswitchinterval(1e-6)
        sys.addaudithook(lambda event, _: time.sleep(0) if event == "sys.setprofile" else None)
        def calling_back(x):
            jax.debug.callback(lambda value: None, x)
            return x

        functions = [jaxobs.jit(lambda x: x + 1, name=f"f{number}") for number in range(3)]
        functions.append(jaxobs.jit(calling_back, name="f3"))
        functions[3](1.0)
        failed = []

        def work():
            try:
                for number in range(600):
                    functions[number % 4](1.0)
            except BaseException as error:
                failed.append(repr(error))

        threads = [threading.Thread(target=work) for _ in range(6)]
        [each.start() for each in threads]
        [each.join() for each in threads]
        assert not failed, failed
        assert sys.getprofile() is None
        seen = {each.name: each for each in jaxobs.snapshot().functions}
        calls = [seen[f"f{number}"].calls for number in range(4)]
        assert calls == [900, 900, 900, 901], calls
        assert seen["f3"].fastpath_misses == {"effects": 900}, seen["f3"].fastpath_misses
        """
    )
    assert done.returncode == 0, done.stderr
