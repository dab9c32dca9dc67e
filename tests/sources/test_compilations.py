"""Compilations seen from JAX's own events and frames: real programs against an independent count."""

from __future__ import annotations

import dataclasses
import linecache
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxobs import internals
from jaxobs.base import guard
from jaxobs.facts.compilations import Compilation
from jaxobs.session import lifecycle
from jaxobs.sources import compilations
from jaxobs.state import store
from jaxobs.state.open_phases import OpenPhases


@pytest.fixture
def compiled() -> Iterator[list[Compilation]]:
    """Everything compiled while the test runs, from a clean start."""
    jax.clear_caches()
    lifecycle.uninstall()
    store.current().reset()
    lifecycle.install()
    found: list[Compilation] = []
    unsubscribe = store.current().subscribe(lambda e: found.append(e) if isinstance(e, Compilation) else None)
    yield found
    unsubscribe()
    lifecycle.uninstall()
    assert guard.internal_errors() == {}


@contextmanager
def counted_by_jax() -> Iterator[Counter[str]]:
    """Compilations by JAX's name for the function, from JAX's log instead of its events."""
    counts: Counter[str] = Counter()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if message.startswith("Finished XLA compilation of "):
                name = message.removeprefix("Finished XLA compilation of ").partition(" in ")[0]
                counts[name.removeprefix("jit(").removesuffix(")")] += 1

    logger, handler = logging.getLogger("jax._src.dispatch"), Handler()
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield counts
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def own(found: list[Compilation]) -> list[Compilation]:
    """Compilations of the user's functions."""
    return [event for event in found if not event.eager]


def test_every_compilation_is_counted_once(compiled: list[Compilation]) -> None:
    @jax.jit
    def inner(x):
        return x * 2

    @jax.jit
    def outer(x):
        return inner(x) + jnp.sin(x)

    with counted_by_jax() as truth:
        x = jnp.ones(3)
        outer(x)
        outer(jnp.ones(4))
        inner(x)
        jax.grad(lambda y: outer(y).sum())(x)
        jax.vmap(outer)(jnp.ones((2, 3)))
        jnp.linalg.norm(x)
        outer.lower(jnp.ones(5)).compile()
        jax.lax.scan(lambda c, a: (c + a, c), 0.0, x)
    assert sum(truth.values()) == len(compiled)
    assert truth["outer"] == sum(event.function.endswith(".outer") for event in compiled)
    assert truth["inner"] == sum(event.function.endswith(".inner") for event in compiled) == 1


def test_a_call_that_hits_reports_nothing(compiled: list[Compilation]) -> None:
    """NumPy for JAX arrays, re-ordered keys, a second thread and a repeated call compile nothing."""

    @jax.jit
    def f(d):
        return d["a"] + d["b"]

    f({"a": jnp.ones(3), "b": jnp.ones(3)})
    before = len(compiled)
    f({"b": np.ones(3, np.float32), "a": np.ones(3, np.float32)})
    thread = threading.Thread(target=f, args=({"a": np.ones(3), "b": np.ones(3)},))
    thread.start()
    thread.join()
    jax.jit(f)
    assert len(compiled) == before


@pytest.mark.parametrize(
    ("first", "second", "cause", "part"),
    [
        (*(np.ones((rows, 8), np.float32) for rows in (32, 17)), "shape", "`x` float32[32,8] -> float32[17,8]"),
        (np.ones(3, np.float32), np.ones((3, 1), np.float32), "shape", "float32[3,1]"),
        (np.ones(3, np.float32), np.ones(3, np.int32), "dtype", "`x` float32[3] -> int32[3]"),
        (np.float32(1), 1.0, "weak_type", "weak_type=True"),
        (1, 0.5, "dtype", "(a Python int) -> float32[]{weak_type=True} (a Python float)"),
        ({"a": np.ones(1)}, {"a": np.ones(1), "b": np.ones(1)}, "structure", "x['b']"),
        ((np.ones(1), None), (np.ones(1), np.ones(1)), "structure", "x[1]"),
    ],
)
def test_the_cause_of_a_second_compilation(compiled, first, second, cause, part) -> None:
    @jax.jit
    def f(x):
        return jax.tree.map(lambda a: a * 2, x)

    f(first)
    f(second)
    one, two = own(compiled)
    assert one.cause == "first_call"
    assert two.cause == cause
    assert part in two.reason
    assert two.reason.endswith(".")
    assert all(change.before != change.after for change in two.changes)


def test_a_config_value_is_named(compiled: list[Compilation]) -> None:
    @jax.jit
    def f(x):
        return x @ x

    x = np.ones((4, 4), np.float32)
    f(x)
    with jax.default_matmul_precision("float32"):
        f(x)
        f(x)
    with jax.default_device(jax.devices()[2]):
        f(x)
    f(x)
    first, precision, device = own(compiled)
    assert (first.cause, precision.cause, device.cause) == ("first_call", "context", "context")
    assert "`jax_default_matmul_precision` None -> float32" in precision.reason
    assert "`jax_default_device` None ->" in device.reason


def test_a_setting_that_is_no_part_of_a_key_is_no_cause(compiled: list[Compilation]) -> None:
    f = jax.jit(lambda x: x)
    f(np.ones(2, np.float32))
    with jax.log_compiles(False), jax.transfer_guard("allow"):
        f(np.ones(3, np.float32))
    (change,) = own(compiled)[-1].changes
    assert change.what == "shape"


def test_caches_that_were_emptied(compiled: list[Compilation]) -> None:
    f = jax.jit(lambda x: x)
    for _ in range(2):
        f(np.ones(2, np.float32))
        jnp.sin(np.ones(2, np.float32))
        jax.clear_caches()
    assert [event.cause for event in compiled] == ["first_call"] * 2 + ["cache_cleared"] * 2


def test_against_the_nearest_earlier_signature(compiled: list[Compilation]) -> None:
    @jax.jit
    def f(x):
        return x * 2

    for x in (np.ones(3, np.float32), np.ones(9, np.float32), np.ones(3, np.int32)):
        f(x)
    assert own(compiled)[-1].cause == "dtype"


def test_a_lambda_made_again_is_a_new_function(compiled: list[Compilation]) -> None:
    """A new function object with the same code counts as new; ids that come back do not hide it."""
    for n in range(5):
        jax.jit(lambda x: x * 3)(np.ones(2, np.float32))
        assert own(compiled)[-1].cause == ("new_function" if n else "first_call")
    assert "function object number 5" in own(compiled)[-1].reason


def test_two_functions_of_one_name_are_two(compiled: list[Compilation]) -> None:
    def make(n: int):
        if n:
            return lambda x: x * 3
        return lambda x: x * 4

    for n in (0, 1):
        jax.jit(make(n))(np.ones(2, np.float32))
    assert [event.cause for event in own(compiled)] == ["first_call", "first_call"]


def test_jit_made_again_around_a_living_function_is_no_miss(compiled: list[Compilation]) -> None:
    """JAX keys its caches by the function, and so do we."""

    def f(x):
        return x + 1

    for _ in range(3):
        jax.jit(f)(np.ones(2, np.float32))
    assert [event.cause for event in own(compiled)] == ["first_call"]


def test_an_event_says_where_and_how_long(compiled: list[Compilation]) -> None:
    @jax.jit
    def slow(x):
        time.sleep(0.05)
        return x

    before = time.time()
    slow(np.ones(2, np.float32))
    (event,) = own(compiled)
    assert event.function == f"{__name__}.test_an_event_says_where_and_how_long.<locals>.slow"
    assert event.call_site is not None
    file, _, line = event.call_site.rpartition(":")
    assert file == __file__
    assert "slow(np.ones" in linecache.getline(file, int(line))
    assert set(event.phases) == {"trace", "lower", "compile"}
    assert 0.05 <= event.phases["trace"] <= time.time() - before
    assert before <= event.time <= time.time()
    assert event.cache == "disabled"
    assert event.fingerprint is not None and len(event.fingerprint) == 12


def test_a_compile_inside_a_trace_is_not_counted_twice_in_time(compiled: list[Compilation]) -> None:
    """A compilation while an outer function is traced has its own event, and is no part of the outer trace."""

    @jax.jit
    def outer(x):
        with jax.ensure_compile_time_eval():
            y = sum(jnp.cos(jnp.arange(n + 1.0)).sum() for n in range(8))
        return x + y

    started = time.perf_counter()
    outer(np.ones(2, np.float32))
    elapsed = time.perf_counter() - started
    inside = sum(sum(event.phases.values()) for event in compiled if event.eager)
    (event,) = own(compiled)
    assert inside > 0.02
    assert sum(event.phases.values()) + inside <= elapsed


def test_a_trace_that_raises_is_no_compilation(compiled: list[Compilation]) -> None:
    @jax.jit
    def f(x):
        if x.shape == (3,):
            raise ValueError("three")
        return x

    for n in (3, 4):
        try:
            f(np.ones(n, np.float32))
        except ValueError as error:
            assert str(error) == "three"
    (event,) = own(compiled)
    assert event.cause == "first_call"
    assert store.current().snapshot().in_progress == ()


def test_shapes_only_are_no_compilation(compiled: list[Compilation]) -> None:
    """`eval_shape` and `make_jaxpr` trace; what they trace is not given to a later compile of that name."""

    @jax.jit
    def f(x):
        time.sleep(0.05)
        return x

    jax.eval_shape(f, np.ones(9, np.float32))
    jax.make_jaxpr(f)(np.ones(8, np.float32))
    assert compiled == []
    f.lower(np.ones(7, np.float32)).compile()
    f.lower(np.ones(6, np.float32)).compile()
    assert [event.cause for event in compiled] == ["first_call", "shape"]
    assert "float32[7] -> float32[6]" in compiled[1].reason


def test_ahead_of_time_in_two_steps(compiled: list[Compilation]) -> None:
    @jax.jit
    def f(x):
        return x

    lowered = f.lower(np.ones(7, np.float32))
    assert compiled == []
    lowered.compile()
    (event,) = compiled
    assert set(event.phases) == {"trace", "lower", "compile"}
    assert event.function.endswith(".f")


def test_a_stuck_compile_is_visible_while_it_is_stuck(compiled: list[Compilation]) -> None:
    """Two threads that trace for long are two compilations in progress, since when they began."""
    release, entered = threading.Event(), threading.Barrier(3)

    def stuck(x):
        entered.wait()
        release.wait()
        return x

    before = time.time()
    threads = [threading.Thread(target=jax.jit(lambda x, n=n: stuck(x) + n), args=(1.0,)) for n in range(2)]
    for thread in threads:
        thread.start()
    entered.wait()
    open_now = store.current().snapshot().in_progress
    release.set()
    for thread in threads:
        thread.join()
    assert [each.phase for each in open_now] == ["trace", "trace"]
    assert all(before <= each.started <= time.time() for each in open_now)
    assert store.current().snapshot().in_progress == ()


def test_a_long_compilation_says_what_it_repeats_or_contains(
    compiled: list[Compilation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that compiles quickly is not read at all."""

    def unrolled(x):
        for _ in range(12):
            x = jnp.tanh(x @ x) + 1
        return x

    jax.jit(unrolled)(np.ones((3, 3), np.float32))
    monkeypatch.setattr(compilations, "LONG_SECONDS", 0.0)
    jax.jit(unrolled)(np.ones((4, 4), np.float32))
    found = [each.repeated for each in compiled if not each.eager]
    assert found == [{}, {"operations": 4, "times": 12}]
    table = np.arange(10_000, dtype=np.float32)
    jax.jit(lambda x: x + jnp.asarray(table))(1.0)
    assert [each.constant_bytes > table.nbytes for each in compiled if not each.eager] == [False, False, True]


def test_a_compilation_that_an_exception_ends(compiled: list[Compilation]) -> None:
    """The function and the line are known from the first phase on, until something else compiles on the thread."""
    seen = []

    def interrupted(x):
        seen.extend(store.current().snapshot().in_progress)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jax.jit(lambda x: jax.jit(interrupted)(x) + 1)(np.ones(3))
    (while_open,), (after,) = seen, store.current().snapshot().unfinished
    assert while_open.function == f"{__name__}.test_a_compilation_that_an_exception_ends.<locals>.<lambda>"
    assert (after.call_site or "").rpartition(":")[0].endswith("test_compilations.py")
    assert dataclasses.replace(while_open, ended=after.ended) == after and after.ended is not None
    assert after.seconds(after.ended + 9) == after.ended - after.started
    jax.jit(lambda x: x + 2)(np.ones(3))
    assert store.current().snapshot().unfinished == ()


def test_the_phases_of_a_compilation_have_one_beginning(
    compiled: list[Compilation], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, begin = [], store.current().part(OpenPhases).begin

    def began(thread: int, *args: Any) -> None:
        begin(thread, *args)
        begun.extend(store.current().in_progress())

    monkeypatch.setattr(store.current().part(OpenPhases), "begin", began)
    jax.jit(lambda x: x + 3).lower(np.ones(3)).compile()
    jax.jit(lambda x: x * 3)(np.ones(3))
    assert [each.phase for each in begun] == ["trace", "lower", "compile"] * 2
    assert [each.began == begun[number // 3 * 3].started for number, each in enumerate(begun)] == [True] * 6
    assert len({(each.function, each.call_site) for each in begun}) == 2 and begun[0].call_site


def test_an_argument_that_is_returned_one_longer(compiled: list[Compilation]) -> None:
    """A cache to which each call appends; not what grows by itself."""
    step = jax.jit(lambda cache, x: (jnp.concatenate([cache, x[None]]), x.sum()))
    total = jax.jit(lambda text: text.sum())
    cache = np.zeros((3, 4), np.float32)
    for length in range(3):
        total(np.ones((length + 3, 4), np.float32))
        cache, _ = step(cache, np.ones(4, np.float32))
    resized = [each for each in compiled if each.cause == "shape"]
    assert [each.grown for each in resized] == [(), ("cache",)] * 2
    assert ["dynamic_update_slice" in each.reason for each in resized] == [False, True] * 2


def test_threads_compile_side_by_side(compiled: list[Compilation]) -> None:
    def work(n: int) -> None:
        f = jax.jit(lambda x: x * n)
        for size in range(1, 5):
            f(np.ones(size + 10 * n, np.float32))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mine = own(compiled)
    assert len(mine) == 32
    assert Counter(event.cause for event in mine)["shape"] == 24
    assert all(set(event.phases) == {"trace", "lower", "compile"} for event in mine)


def test_libraries_are_named_by_the_users_function(compiled: list[Compilation]) -> None:
    equinox = pytest.importorskip("equinox")
    nnx = pytest.importorskip("flax.nnx")

    def with_nnx(x):
        return x + 1

    def with_equinox(x, flag):
        return x + flag

    def with_pmap(x):
        return x + 1

    nnx.jit(with_nnx)(np.ones(3, np.float32))
    equinox.filter_jit(with_equinox)(np.ones(3, np.float32), 2)
    jax.pmap(with_pmap)(np.ones((2, 3), np.float32))
    names = [event.function for event in own(compiled)]
    assert [name.rpartition(".")[2] for name in names] == ["with_nnx", "with_equinox", "with_pmap"]
    assert all(name.startswith(__name__) for name in names)


def test_an_exported_program_has_the_name_of_its_function(compiled: list[Compilation]) -> None:
    """JAX calls each of them `call`; a program for each size is no function made again."""
    from jax import export

    def classify(rows: jax.Array) -> jax.Array:
        return rows * 2

    sizes = [jnp.ones(2), jnp.ones(3)]
    programs = [export.export(jax.jit(classify))(rows) for rows in sizes]
    for program, rows in zip(programs, sizes, strict=True):
        jax.jit(program.call)(rows)
    again = export.export(jax.jit(classify))(sizes[0])
    jax.jit(again.call)(sizes[0])
    found = [(each.function, each.eager, each.cause) for each in compiled if each.function == "classify"]
    assert found == [("classify", False, cause) for cause in ("first_call", "first_call", "new_function")]


def test_a_method_of_a_class_that_exits_is_not_asked_for_its_module(compiled: list[Compilation]) -> None:
    class Exits(type):
        @property
        def __module__(cls) -> str:
            raise SystemExit

    class Model(metaclass=Exits):
        def predict(self, rows: jax.Array) -> jax.Array:
            return rows + 1

    assert internals.exported(Model().predict) is None
    jax.jit(Model().predict)(jnp.ones(2))
    assert any(each.function.endswith("predict") for each in compiled)


def test_listeners_removed_by_somebody_are_put_back(compiled: list[Compilation]) -> None:
    from jax import monitoring

    monitoring.clear_event_listeners()
    jax.jit(lambda x: x * 7)(np.ones(2, np.float32))
    assert [event.cause for event in own(compiled)] == ["first_call"]
    assert any("clear_event_listeners" in note for note in store.current().snapshot().observer.notes)


def test_a_signature_keeps_no_array_alive(compiled: list[Compilation]) -> None:
    import gc
    import weakref

    class Static:
        pass

    static = Static()
    f = jax.jit(lambda x, s: x * 2, static_argnums=1)
    x = jnp.ones(1000)
    f(x, static)
    arrays, statics = weakref.ref(x), weakref.ref(static)
    del x, static, f
    jax.clear_caches()
    gc.collect()
    assert arrays() is None
    assert statics() is None
    assert own(compiled)


@pytest.mark.parametrize("raising", ["__eq__", "__hash__", "__repr__"])
def test_hostile_static_arguments(compiled: list[Compilation], raising: str) -> None:
    calls = Counter()

    class Hostile:
        def __init__(self, n: int) -> None:
            self.n = n

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Hostile) and self.n == other.n

        def __hash__(self) -> int:
            return self.n

    if raising == "__repr__":
        Hostile.__repr__ = lambda self: 1 / 0  # type: ignore[method-assign,assignment]
    f = jax.jit(lambda x, s: x * s.n, static_argnums=1)
    for n in (1, 2):
        assert f(np.ones(1, np.float32), Hostile(n))[0] == n
        calls[n] += 1
    assert [event.cause for event in own(compiled)] == ["first_call", "static_argument"]


def test_persistent_cache_results(compiled: list[Compilation], tmp_path, monkeypatch) -> None:
    from jax.experimental.compilation_cache import compilation_cache

    def f(x):
        return jnp.sin(x) * 3

    try:
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.jit(f)(np.ones(5, np.float32))
        stored = len(list(tmp_path.glob("*-cache")))
        jax.clear_caches()
        jax.jit(f)(np.ones(5, np.float32))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 100.0)
        jax.jit(f)(np.ones(6, np.float32))
    finally:
        jax.config.update("jax_compilation_cache_dir", None)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
        compilation_cache.reset_cache()
    cold, warm, fast = own(compiled)
    assert stored == 1
    assert (cold.cache, cold.uncached_because) == ("miss", None)
    assert warm.cache == "hit"
    assert "compile" not in warm.phases and warm.phases["cache_load"] > 0
    assert (fast.cache, fast.uncached_because) == ("miss", "too_fast")
    state = store.current().snapshot()
    (row,) = (row for row in state.functions if row.name == cold.function)
    assert dict(row.cache) == {"miss": 2, "hit": 1}
    assert dict(state.cache.unsaved) == {"too_fast": 1}
    lookups = store.current().events(kind="cache_lookup")[0]
    assert [each.result for each in lookups] == ["miss", "hit", "miss"]  # type: ignore[attr-defined]
    assert all(each.key.startswith("jit_f-") for each in lookups)  # type: ignore[attr-defined]


def test_the_fingerprint_is_the_programs(compiled: list[Compilation]) -> None:
    programs = [lambda x: x * 2, lambda x: x * 2, lambda x: x * 3]
    for program in programs:
        jax.jit(program)(np.ones(2, np.float32))
    one, same, other = own(compiled)
    assert one.fingerprint == same.fingerprint != other.fingerprint
