"""Compiled ahead: the calls that follow neither trace nor compile, and what goes wrong is told for each signature."""

from __future__ import annotations

import functools
import pathlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from flax.training.train_state import TrainState
from helpers.run_programs import events
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jaxobs
from jaxobs.base.errors import SettingError
from jaxobs.facts.compilations import Compilation
from jaxobs.session import lifecycle
from jaxobs.state import store

S = jax.ShapeDtypeStruct


@contextmanager
def phases() -> Iterator[list[tuple[str, str]]]:
    """Collects what JAX itself reports to have traced or compiled, and on which thread."""
    seen: list[tuple[str, str]] = []

    def listener(event: str, _seconds: float, **_kwargs: Any) -> None:
        if event.endswith(("jaxpr_trace_duration", "backend_compile_duration")):
            seen.append((event.rpartition("/")[2], threading.current_thread().name))

    from jax._src import monitoring

    monitoring.register_event_duration_secs_listener(listener)
    try:
        yield seen
    finally:
        monitoring._event_duration_secs_listeners.remove(listener)


def linear(model: Any, x: Any) -> Any:
    return model(x)


def on_a_mesh() -> NamedSharding:
    return NamedSharding(jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,)), P("data"))


@functools.cache
def cases() -> dict[str, tuple[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]]]:
    one, rows = np.ones(3, np.float32), jax.device_put(np.ones((8, 2), np.float32), on_a_mesh())
    module, network = eqx.nn.MLP(2, 2, 4, 1, key=jax.random.key(0)), nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    return {
        "jax.jit": (jax.jit(lambda x: x + 1), (S((3,), "float32"),), (one,), {}),
        "jaxobs.jit": (jaxobs.jit(lambda x: x + 2), (S((3,), "float32"),), (one,), {}),
        "a plain array": (jax.jit(lambda x: x + 3), (one,), (jnp.asarray(one),), {}),
        "a number": (jax.jit(lambda x: x + 4), (S((), "float32", weak_type=True),), (2.0,), {}),
        "donated": (jax.jit(lambda x: x + 5, donate_argnums=0), (S((3,), "float32"),), (jnp.asarray(one),), {}),
        "keywords": (
            jax.jit(lambda x, n: x * n, static_argnames="n"),
            jaxobs.Signature(S((3,), "float32"), n=4), (one,), {"n": 4},
        ),
        "sharded": (jax.jit(lambda x: x + 6), (S((8, 2), "float32", sharding=rows.sharding),), (rows,), {}),
        "Equinox": (eqx.filter_jit(linear), (eqx.filter_eval_shape(lambda: module), S((2,), "float32")),
                    (module, jnp.ones(2)), {}),
        "nnx": (nnx.jit(linear), (network, S((4, 2), "float32")), (network, np.ones((4, 2), np.float32)), {}),
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["jax.jit", "jaxobs.jit", "a plain array", "a number", "donated", "keywords", "sharded", "Equinox", "nnx"]
)
def test_the_first_call_finds_it_compiled(name: str) -> None:
    function, signature, args, kwargs = cases()[name]
    with phases() as ahead:
        (warmed,) = jaxobs.warmup(function, signature)
    assert warmed.error is None
    assert warmed.compiled is not None
    assert "backend_compile_duration" in {event for event, _ in ahead}
    with phases() as then:
        function(*args, **kwargs)
    assert then == []


def test_one_that_fails_does_not_stop_the_others() -> None:
    @jax.jit
    def add(a, b):
        return a + b

    told: list[tuple[int, int, str | None]] = []
    bad, good, other = jaxobs.warmup(
        add, (S((3,), "float32"), S((5,), "float32")), (S((3,), "float32"), 1), (S((4,), "float32"),) * 2,
        progress=lambda done, total, warmed: told.append((done, total, warmed.error)),
    )  # fmt: skip
    assert bad.function.endswith("add")
    assert bad.signature == "(float32[3], float32[5])"
    assert bad.error is not None
    assert bad.error.startswith("TypeError: add got incompatible shapes")
    assert isinstance(bad.exception, TypeError)
    assert (good.error, good.signature, other.error) == (None, "(float32[3], 1)", None)
    assert [each[:2] for each in told] == [(1, 3), (2, 3), (3, 3)]
    assert sum(error is not None for _, _, error in told) == 1


def test_it_lowers_here_and_compiles_elsewhere() -> None:
    """The context of the caller is in force, and the compiler runs on threads of the pool, several at once."""

    @jax.jit
    def product(x):
        return x @ x

    with jax.default_matmul_precision("float32"), phases() as seen:
        jaxobs.warmup(product, *((S((n, n), "float32"),) for n in (3, 4, 5, 6)), parallel=2)
    here = threading.current_thread().name
    assert {thread for event, thread in seen if event == "jaxpr_trace_duration"} == {here}
    compiled = [thread for event, thread in seen if event == "backend_compile_duration"]
    assert len(compiled) == 4
    assert all(thread.startswith("jaxobs-warmup") for thread in compiled)
    with jax.default_matmul_precision("float32"), phases() as then:
        product(np.ones((4, 4), np.float32))
    assert then == []
    with phases() as otherwise:
        product(np.ones((4, 4), np.float32))
    assert otherwise != []


def test_few_programs_wait_for_the_compiler() -> None:
    """Lowered programs are large: what is lowered ahead is no more than twice what compiles at once."""

    class Slow:
        waiting = most = 0

        def __call__(self) -> None:
            """Needs to be there."""

        def lower(self, _x: Any) -> Any:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            return self

        def compile(self) -> Any:
            time.sleep(0.02)
            self.waiting -= 1
            return self

    slow = Slow()
    results = jaxobs.warmup(slow, *((n,) for n in range(12)), parallel=2)
    assert [each.signature for each in results] == [f"({n})" for n in range(12)]
    assert slow.most <= 5


@pytest.mark.usefixtures("fresh")
def test_its_compilations_are_events_as_any() -> None:
    """With their function and all their phases, though they were lowered on another thread than they compiled on."""
    lifecycle.install()
    function = jax.jit(lambda x: x * 3)
    jaxobs.warmup(function, (S((3,), "float32"),), (S((4,), "float32"),))
    found = [event for event in store.current().events(kind="compilation")[0] if isinstance(event, Compilation)]
    assert [(event.function.rpartition(".")[2], event.cause) for event in found] == [
        ("<lambda>", "first_call"),
        ("<lambda>", "shape"),
    ]
    assert [set(event.phases) for event in found] == [{"trace", "lower", "compile"}] * 2


@pytest.mark.usefixtures("fresh")
def test_recorded_signatures_warm_the_function_of_that_name(tmp_path: pathlib.Path) -> None:
    """All that the log has for it and nothing else; what a log cannot hold comes from an example."""
    log = tmp_path / "events.jsonl"
    params = {"w": np.ones(3, np.float32)}

    def state() -> TrainState:
        return TrainState.create(apply_fn=lambda: 0, params=params, tx=optax.sgd(0.1))

    def make() -> tuple[Any, Any]:
        def train(state, batch):
            return state.apply_gradients(grads={"w": batch["x"].sum() * state.params["w"]})

        def other(x):
            return x

        return jax.jit(train), jax.jit(other)

    train, other = make()
    lifecycle.install(event_log=str(log))
    for size in (4, 8):
        train(state(), {"x": np.ones(size, np.float32)})
    other(1.0)
    lifecycle.uninstall()

    train, _ = make()
    refused = jaxobs.warmup(train, log)
    assert ["is not recorded" in str(each.error) for each in refused] == [True, True], refused
    assert all("argument `state`" in str(each.error) for each in refused)
    example = state()
    warmed = jaxobs.warmup(train, log, like=(example, {"x": np.ones(1, np.float32)}))
    assert [each.error for each in warmed] == [None, None]
    assert [each.signature.rpartition(", ")[2] for each in warmed] == ["{float32[4]})", "{float32[8]})"]
    with phases() as seen:
        train(example, {"x": np.ones(8, np.float32)})
    assert seen == []
    (record,) = (each["signature"] for each in events(log, "compilation") if each["function"].endswith("other"))
    train, other = make()
    assert [each.error for each in jaxobs.warmup(other, record)] == [None]


def test_the_cache_is_told(tmp_path: pathlib.Path) -> None:
    from jax.experimental.compilation_cache import compilation_cache

    options = {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in options}

    def update(values: dict[str, Any]) -> None:
        for name, value in values.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()

    def told() -> tuple[str | None, str | None]:
        jax.clear_caches()
        (warmed,) = jaxobs.warmup(jax.jit(lambda x: x * 5), (S((3,), "float32"),))
        return warmed.cache, warmed.unsaved

    try:
        update(options | {"jax_persistent_cache_min_compile_time_secs": 3600.0})
        cache, unsaved = told()
        assert cache == "miss"
        assert "3600" in str(unsaved) or "3,600" in str(unsaved)
        update(options)
        assert told() == ("miss", None)
        assert told() == ("hit", None)
    finally:
        update(before)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jaxobs.warmup(3), TypeError, "needs a function, but got int"),
        (lambda: jaxobs.warmup(len, S((3,), "float32")), TypeError, r"ShapeDtypeStruct as a signature.* as \(x,\)"),
        (lambda: jaxobs.warmup(len, (), like=3), TypeError, "int as like"),
        (lambda: jaxobs.warmup(len, (), parallel=0), ValueError, "at least 1, not 0"),
        (lambda: jaxobs.warmup(len, "missing.jsonl"), SettingError, "'missing.jsonl' cannot be read: No such file"),
    ],
)  # fmt: skip
def test_what_it_cannot_take_is_refused(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_log_without_the_function_is_a_warning(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    """A deployment must not fail for it."""
    log = tmp_path / "events.jsonl"
    log.write_text('{"event": "exit"}\n{"event": "compilation", "fun\n')
    assert jaxobs.warmup(jax.jit(linear), log) == []
    assert "has no signature of `test_warmup.linear`" in caplog.text
