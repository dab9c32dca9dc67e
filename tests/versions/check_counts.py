"""Runs under one version of JAX and compares what jaxobs counted with what JAX really compiled.

    python tests/versions/check_counts.py        prints a JSON report; exit code 1 when something differs

Needs JAX, prometheus-client and jaxobs on the path, nothing else. Each scenario checks the figures that a person would
expect, and afterwards all counts against the truth (see `scenarios.py`).
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from typing import Any

from tools.quick_xla import quick

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = quick("--xla_force_host_platform_device_count=2")

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from scenarios import USER_FUNCTIONS, causes, check, checks, compared, scenario, scenarios, seen, user

from benchmarks.corpus.truth import compiled, count_truth, held, hold


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    """An array on the device that cost no compilation."""
    return jax.device_put(np.ones(shape, dtype))


def jitted(fun: Callable[..., Any]) -> Any:
    """A function of the user's, under `jax.jit`."""
    return jax.jit(user(fun))


@user
def before_and_called(x):
    return x * 2 + 1


@user
def before_and_not_called(x):
    return x * 3 + 1


jitted_and_called = jax.jit(before_and_called)
jitted_and_not_called = jax.jit(before_and_not_called)
jitted_and_called(ones(3))

import jaxobs  # noqa: E402
from jaxobs.internals import post_hook  # noqa: E402
from jaxobs.reasons.cache_records import KEY_PARTS, read  # noqa: E402
from jaxobs.session import lifecycle  # noqa: E402
from jaxobs.state import store  # noqa: E402

count_truth()
jaxobs.install()
jaxobs.install()
ALL = jaxobs.snapshot().observer.capabilities


@scenario
def plain_jit() -> None:
    @user
    def plain(x):
        return x + 1

    jitted = jax.jit(plain)
    for _ in range(3):
        jitted(ones(2))
    check("compiled once", 1, seen()["plain"])
    check("cause", {"first_call": 1}, causes("plain"))


@scenario
def host_transfers() -> None:
    """Each array that is read or sent is counted, however JAX dispatches it; values that stay on the host are not."""
    numbers = np.ones(100, np.float32)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    halves = NamedSharding(mesh, PartitionSpec("data"))
    jaxobs.install(transfers=True)
    lifecycle._session.sample()

    @jitted
    def sent(x):
        return x.sum()

    for _ in range(3):
        x = jax.device_put(numbers, halves)
        np.asarray(x), np.asarray(x)
        float(sent(numbers))
        jnp.asarray(numbers)
    moved: Counter[str] = Counter()
    for site in jaxobs.snapshot().transfers:
        moved[site.direction] += site.count
        moved[f"{site.direction}, bytes"] += site.bytes
    expected = {
        "host_to_device": 9, "host_to_device, bytes": 9 * 400,
        "device_to_host": 6, "device_to_host, bytes": 3 * 404,
    }  # fmt: skip
    check("moved", expected, dict(moved))
    jaxobs.install(transfers=False)
    lifecycle._session.sample()
    float(sent(numbers))
    check("off again", 15, sum(each.count for each in jaxobs.snapshot().transfers))


@scenario
def nested_jit() -> None:
    @jitted
    def innermost(x):
        return jnp.tanh(x)

    @jitted
    def inner(x):
        return innermost(x) + innermost(x * 2)

    @jitted
    def outer(x):
        return inner(x) @ inner(x)

    outer(ones(4, 4))
    check("outer once", 1, seen()["outer"])
    check("inner never", 0, seen()["inner"] + seen()["innermost"])
    inner(ones(4, 4))
    check("inner on its own", 1, seen()["inner"])


@scenario
def compiled_while_tracing() -> None:
    """Concrete values inside a trace are computed, and what that compiles is counted as its own."""

    @jitted
    def constant_maker(x):
        return x * 5

    @jitted
    def with_constants(x):
        with jax.ensure_compile_time_eval():
            table = constant_maker(ones(7))
        return x + table

    with_constants(ones(7))
    check("outer", 1, seen()["with_constants"])


@scenario
def eager_operations() -> None:
    """Operations outside any function are one series of their own."""
    x = jnp.arange(11)
    jnp.sin(x * 1.5).sum()
    jnp.concatenate([x, x])[3:5]
    jnp.linalg.norm(ones(5, 5))
    jax.random.normal(jax.random.key(0), (9,))


@scenario
def transformations() -> None:
    """Under `grad`, `vmap` and `linearize` a jitted function brings derived programs."""

    @jitted
    def loss(w, x):
        return jnp.mean((x @ w) ** 2)

    @user
    def gradient(w, x):
        return jax.grad(loss)(w, x)

    jax.jit(gradient)(ones(3), ones(4, 3))
    jax.grad(loss)(ones(3), ones(4, 3))
    jax.vmap(loss, in_axes=(None, 0))(ones(3), ones(5, 4, 3))
    jax.value_and_grad(loss)(ones(3), ones(4, 3))


@scenario
def control_flow() -> None:
    """Bodies of `scan` and `cond` are part of what runs them."""

    @jitted
    def scanned(x):
        def body(carry, item):
            return jax.lax.cond(item.sum() > 0, lambda c: c + 1, lambda c: c - 1, carry), item

        return jax.lax.scan(body, x[0], x)

    scanned(ones(4, 3))
    check("once", 1, seen()["scanned"])


@scenario
def ahead_of_time() -> None:
    """`lower().compile()` counts, calls of the result do not; a call afterwards counts if JAX compiles again."""

    @user
    def ahead(x):
        return x * 7

    jitted = jax.jit(ahead)
    ready = jitted.lower(ones(6)).compile()
    ready(ones(6))
    ready(ones(6))
    check("compiled once", 1, seen()["ahead"])
    jitted(ones(6))
    jitted.lower(ones(8)).compile()


@scenario
def pmap() -> None:
    """A `pmap` over the devices."""

    @user
    def parallel(x):
        return x * 2 + 1

    mapped = jax.pmap(parallel)
    for _ in range(2):
        mapped(np.ones((jax.local_device_count(), 3), np.float32))
    check("compiled once", 1, seen()["parallel"])


@scenario
def shard_map() -> None:
    """A `shard_map` inside a jitted function."""
    if (smap := getattr(jax, "shard_map", None)) is None:
        from jax.experimental.shard_map import shard_map as smap
    mesh = Mesh(np.array(jax.devices()[:2]), ("d",))

    @user
    def sharded(x):
        return x + 1

    spec = PartitionSpec("d")
    jitted = jax.jit(user(functools.wraps(sharded)(smap(sharded, mesh=mesh, in_specs=spec, out_specs=spec))))
    jitted(jax.device_put(np.ones((4, 2), np.float32), NamedSharding(mesh, spec)))
    check("compiled once", 1, seen()["sharded"])


@scenario
def methods_and_partials() -> None:
    """Bound methods, partials and static arguments."""

    class Model:
        @functools.partial(jax.jit, static_argnums=0)
        def method(self, x):
            return x + 1

    USER_FUNCTIONS.add("method")
    model = Model()
    model.method(ones(2))
    model.method(ones(2))

    @user
    def scaled(x, factor):
        return x * factor

    jax.jit(functools.partial(scaled, factor=3))(ones(2))
    check("the partial", 1, seen()["scaled"])
    static = jax.jit(scaled, static_argnums=1)
    static(ones(2), 2)
    static(ones(2), 4)


@scenario
def threads() -> None:
    """Eight threads compile at once."""

    def work(number: int) -> None:
        for size in range(2, 6):

            @user
            def in_thread(x, number=number):
                return x * number

            jax.jit(in_thread)(ones(size))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    check("compiled", 32, seen()["in_thread"])

    @jitted
    def raced(x):
        return jnp.sin(x) @ x

    barrier = threading.Barrier(6)

    def race() -> None:
        barrier.wait()
        raced(ones(8, 8))

    workers = [threading.Thread(target=race) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


@scenario
def jitted_before_install() -> None:
    """Functions that were jitted, and one that was compiled, before jaxobs came."""
    jitted_and_called(ones(3))
    check("not compiled again", 0, seen()["before_and_called"])
    jitted_and_called(ones(4))
    jitted_and_not_called(ones(3))


@scenario
def failures() -> None:
    """A trace or a compile that fails is no compilation."""

    @jitted
    def failing(x):
        if x.sum() > 0:
            return x
        return -x

    @jitted
    def raising(x):
        raise ValueError("in the user's function")

    @jitted
    def not_compilable(x):
        return jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct((2,), np.float32))(x)

    for fun in (failing, raising, not_compilable):
        for _ in range(2):
            with contextlib.suppress(Exception):
                fun(ones(2))
    check("none counted", 0, sum(seen()[name] for name in ("failing", "raising", "not_compilable")))
    check("none in progress", 0, len(jaxobs.snapshot().in_progress))


@scenario
def stuck() -> None:
    """A trace and a compile that are stuck in other threads are visible while they are."""
    go, tracing = threading.Event(), threading.Event()

    @jitted
    def stuck_trace(x):
        tracing.set()
        go.wait(60)
        return x + 1

    @jitted
    def stuck_compile(x):
        return x + 2

    hold["stuck_compile"] = threading.Event()
    workers = [threading.Thread(target=fun, args=(ones(2),)) for fun in (stuck_trace, stuck_compile)]
    for worker in workers:
        worker.start()
    tracing.wait(60)
    held.wait(60)
    time.sleep(0.05)
    now = jaxobs.snapshot().in_progress
    found = sorted((each.function.rsplit(".", 1)[-1], each.phase) for each in now)
    expected = [("stuck_compile", "compile"), ("stuck_trace", "trace")] if ALL["phase_starts"] else []
    check("in progress", [list(each) for each in expected], [list(each) for each in found])
    check("since when", True, all(0 <= time.time() - each.started < 60 for each in now))
    go.set()
    hold.pop("stuck_compile").set()
    for worker in workers:
        worker.join()
    check("none left", 0, len(jaxobs.snapshot().in_progress))


@scenario
def calls() -> None:
    """`jaxobs.jit` counts the calls that run, and none that is traced into another function."""

    @user
    def called(x):
        return x * 2

    jitted = jaxobs.jit(called)
    for size in (2, 2, 3, 2):
        jitted(ones(size))
    jax.jit(user(lambda_named("outer_of_called", lambda x: jitted(x))))(ones(2))
    jax.lax.map(jitted, ones(3, 2))
    name = next(f for f in jaxobs.snapshot().functions if f.name.endswith(".called"))
    check("calls", 4, name.calls)
    check("compiled", 2, name.compiled)
    jax.grad(lambda x: jitted(x).sum())(ones(2))
    jax.vmap(jitted)(ones(4, 2))


@scenario
def captures() -> None:
    """A profile of memory, and a trace of two steps; another one afterwards, by which JAX is known to have ended it."""

    @jaxobs.jit
    @user
    def captured(x):
        return x * 13

    kept = captured(ones(2))
    with tempfile.TemporaryDirectory() as folder:
        jaxobs.install(capture_directory=folder, capture_interval=0)
        check("memory", "done", jaxobs.capture("memory").result)
        for _ in range(2):
            trace = jaxobs.capture("profile", steps=2, function=f"{__name__}.captures.<locals>.captured")
            for _ in range(2):
                captured(kept)
                time.sleep(0.03)
            trace.wait(20)
            check("trace", ("done", "2 steps"), (trace.result, str(trace.detail)[:7]))
            files = [os.path.join(root, name) for root, _, names in os.walk(trace.path or "") for name in names]
            planes = [file for file in files if file.endswith(".xplane.pb")]
            check("planes", 1, len(planes))
            with open(planes[0], "rb") as file:
                check("named", True, b"PjitFunction(captured)" in file.read())
        jax.profiler.start_trace(folder)
        check("own trace", "refused", jaxobs.capture("profile").result)
        jax.profiler.stop_trace()
        jaxobs.install(capture_directory="", capture_interval=10)


@scenario
def leaks() -> None:
    """A list that keeps the outputs is told with its pace and its line; one of a few is not."""
    samples = lifecycle._session.sample

    @jaxobs.jit
    @user
    def grown(x):
        return x * 7

    for most in (40, 400):
        kept: list[Any] = []
        for number in range(200):
            out = grown(ones(64, 64))
            if number < most:
                kept.append(out)
            if number % 5 == 0:
                samples()
        told = [each for each in jaxobs.snapshot().findings if each.finding == "array_leak"]
        check(f"told of {most}", [] if most < 200 else [("(64, 64)", 1)], [
            (str(tuple(each.data["shape"])), round(each.data["arrays_per_call"])) for each in told
        ])  # fmt: skip
    check("line", True, all(site.startswith(f"{__file__}:") for site in told[0].data["call_sites"]))


@scenario
def fast_path() -> None:
    """Calls that JAX dispatches from Python although nothing compiles, as often as the interpreter sees it happen."""

    @user
    def plain_fast(x):
        return x - 7

    @user
    def effectful(x):
        jax.debug.callback(lambda value: None, x)
        return x - 8

    @user
    def fails_first(x):
        if not ready:
            raise ValueError("not yet")
        return x - 9

    @user
    def keyed(key):
        return jax.random.split(key)[0]

    def entries(call: Callable[[], Any]) -> int:
        count = 0

        def trace(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += frame.f_code.co_name == "cache_miss" and frame.f_code.co_filename.endswith("pjit.py")

        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(None)
        return count

    def misses(name: str) -> dict[str, int]:
        return dict(next(f for f in jaxobs.snapshot().functions if f.name.endswith(f".{name}")).fastpath_misses)

    ready = False
    fast, slow, first, key = map(jaxobs.jit, (plain_fast, effectful, fails_first, keyed))
    with contextlib.suppress(ValueError):
        first(ones(2))
    ready = True
    made = jax.random.key(0)
    for function, argument in ((fast, ones(2)), (slow, ones(2)), (first, ones(2)), (key, made), (key, key(made))):
        function(argument)
    before = {name: misses(name) for name in ("plain_fast", "effectful", "fails_first")}
    check("none while they compiled", {"plain_fast": {}, "effectful": {}, "fails_first": {}}, before)
    again = {fast: ones(2), slow: ones(2), first: ones(2), key: made}
    seen_to_fall = [entries(lambda f=f, x=x: [f(x) for _ in range(3)]) for f, x in again.items()]
    jax.effects_barrier()
    check("the truth", [0, 3, 3, 0], seen_to_fall)
    check("fast", {}, misses("plain_fast"))
    check("effects", {"effects": 3}, misses("effectful"))
    check("after a failure", {"stuck_entry": 3}, misses("fails_first"))
    fast(np.ones(2, np.float32))
    fast(np.ones(2, np.float32))
    check("NumPy arrays, once", {"new_signature": 1}, misses("plain_fast"))
    check("keys", True, set(misses("keyed")) <= {"new_signature"})
    jax.grad(lambda x: slow(x).sum())(ones(2))
    jax.jit(user(lambda_named("outer_of_effectful", lambda x: slow(x))))(ones(2))
    check("not under transformations", {"effects": 3}, misses("effectful"))
    if tools():

        class Held:
            def __init__(self) -> None:
                self.jitted = jax.jit(effectful)

            def __call__(self, x):
                return self.jitted(x)

        library = jaxobs.instrument(Held(), name="library.held")
        for _ in range(3):
            library(ones(2))
        check("held by a library's callable", {"effects": 3}, misses("held"))


def tools() -> list[str | None]:
    return [sys.monitoring.get_tool(number) for number in range(6)] if hasattr(sys, "monitoring") else []


def lambda_named(name: str, fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` under another name."""
    fun.__name__ = fun.__qualname__ = name
    return fun


@scenario
def loops_found() -> None:
    """Calls of a bare function in a loop are seen, without a compilation, and by nobody when that is turned off."""

    @user
    def in_a_loop(x):
        return x * 7

    jitted, key = jax.jit(in_a_loop), ones(2)
    lifecycle._session.sample()
    jaxobs.install(find_loops=True)
    lifecycle._session.sample()
    for _ in range(50):
        jitted(key)
    lifecycle._session.sample()
    found = {each.name.rpartition(".")[2]: each for each in jaxobs.snapshot().loops}
    check("found", ["in_a_loop"], [name for name in found if name == "in_a_loop"])
    check("compiled", 1, seen()["in_a_loop"])
    loop = found.get("in_a_loop")
    check("counted", True, loop is not None and loop.steps_counted and 48 <= loop.steps <= 50)

    @user
    def prints(x):
        jax.debug.callback(lambda value: None, x)  # effects have no fast path: each call runs JAX's Python dispatch
        return x * 7

    jitted = jax.jit(prints)
    for _ in range(50):
        jitted(key)
    jax.effects_barrier()
    lifecycle._session.sample()
    steps = {each.name.rpartition(".")[2]: (each.steps, each.steps_counted) for each in jaxobs.snapshot().loops}
    told = hasattr(sys, "monitoring") or post_hook.call_code() is not None
    check("effects counted", (50, True) if told else None, steps.get("prints"))
    jaxobs.install(find_loops=False)
    lifecycle._session.sample()
    check("the hook is off", False, post_hook._get() is not None)


def listeners_cleared() -> None:
    """Somebody removes all listeners; jaxobs puts its own back, once, and says so."""
    from jax._src import monitoring

    for name in ("_event_listeners", "_event_duration_secs_listeners"):
        getattr(monitoring, name).clear()
    lifecycle._session.sample()
    with compared("listeners_cleared"):

        @user
        def after_clearing(x):
            return x + 4

        jax.jit(after_clearing)(ones(2))
        check("seen again, once", 1, seen()["after_clearing"])
    notes = jaxobs.snapshot().observer.notes
    check("said so", 1, sum("clear_event_listeners" in note for note in notes))


def uninstalled() -> None:
    """After `uninstall` nothing is counted and no listener is left; `install` brings all back."""
    from jax._src import monitoring

    jaxobs.uninstall()
    before = seen()

    @user
    def unseen(x):
        return x + 5

    jax.jit(unseen)(ones(2))
    check("nothing seen", {}, dict(seen() - before))
    lists = [
        getattr(monitoring, name, [])
        for name in ("_event_listeners", "_event_duration_secs_listeners", "_scalar_listeners")
    ]
    left = [c for each in lists for c in each if getattr(c, "__module__", "").startswith("jaxobs")]
    check("no listener left", 0, len(left))
    check("no tool left", False, "jaxobs" in tools())
    jaxobs.install()
    with compared("uninstalled"):
        jax.jit(user(lambda_named("seen_again", lambda x: x + 6)))(ones(2))
    check("the tool again", bool(tools()), "jaxobs" in tools())
    check("seen again", 1, seen()["seen_again"])


def scraped() -> None:
    """The endpoint's text holds the same total, and live arrays of every device."""
    keep = ones(1000)
    gc.collect()
    lifecycle._session.sample()
    handle = jaxobs.serve(port=0)
    text = urllib.request.urlopen(handle.url + "metrics", timeout=30).read().decode()
    handle.close()
    lines = [line for line in text.splitlines() if line.startswith("jax_compilations_total{")]
    check("total", seen().total(), int(sum(float(line.rsplit(" ", 1)[1]) for line in lines)))
    sampled = {device.device: device.memory for device in jaxobs.snapshot().devices}
    held_bytes = sum(memory.live_array_bytes or 0 for memory in sampled.values() if memory)
    truth = sum(shard.data.nbytes for array in jax.live_arrays() for shard in array.addressable_shards)
    check("devices", jax.local_device_count(), len(sampled))
    check("live bytes", truth, held_bytes)
    del keep


# ----------------------------------------------------------------------------------------- persistent cache


def cache_worker(directory: str) -> None:
    jax.config.update("jax_compilation_cache_dir", directory)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jaxobs.install(event_log=os.path.join(directory, "log", "events.jsonl"))
    hashed = hashes_that_jax_logs()

    @jitted
    def stored(x):
        return jnp.sin(x) @ x

    @jitted
    def too_fast(x):
        return jnp.cos(x) @ x

    @jitted
    def not_cached(x):
        return jnp.tan(x) @ x

    with compared("persistent_cache"):
        stored(ones(4, 4))
        stored(ones(5, 5))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1000)
        too_fast(ones(4, 4))
        jax.config.update("jax_enable_compilation_cache", False)
        from jax._src import compilation_cache

        compilation_cache.reset_cache()
        not_cached(ones(4, 4))
    snapshot = jaxobs.snapshot()
    by_cache: dict[str, dict[str, int]] = {}
    phases: dict[str, list[str]] = {}
    for function in snapshot.functions:
        name = function.name.rsplit(".", 1)[-1]
        counts: Counter[str] = Counter()
        for each in function.compilations.values():
            counts.update(each)
        by_cache[name], phases[name] = dict(counts), sorted(function.phase_counts)
        check(f"requests of {name}", by_cache[name], dict(function.cache))
    for name in ("stored", "too_fast", "not_cached"):
        check(f"compiled or not: {name}", compiled[name], sum(n for c, n in by_cache[name].items() if c != "hit"))
    facts = {"by_cache": by_cache, "phases": phases, "unsaved": dict(snapshot.cache.unsaved)}
    facts["differs"] = [list(each.differs) for each in store.current().events(kind="cache_lookup")[0]]
    facts["because"] = [each.uncached_because for each in store.current().events(kind="compilation")[0]]
    for record in read(os.path.join(directory, "log")):
        if record.pid == os.getpid():
            mine = [record.parts.get(part, "none") for part in KEY_PARTS]
            logged = [[each[:12] for each in hashed[at : at + 8]] for at in range(0, len(hashed), 8)]
            check("parts of the key as JAX logs them", True, mine in logged)
    print(json.dumps({"checks": checks, **facts, "internal_errors": snapshot.observer.internal_errors}))


def hashes_that_jax_logs() -> list[str]:
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text, _, digest = record.getMessage().rpartition(": ")
            if text.startswith("get_cache_key hash of serialized"):
                found.append(digest)

    logger = logging.getLogger("jax._src.cache_key")
    logger.addHandler(Keep())
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    return found


@scenario
def host_callbacks() -> None:
    """Calls in a step, if Python says when code runs: two of one function, one that prints; and a call that raises."""

    def look_up(x):
        return np.asarray(x)

    def fails(x):
        raise KeyError("not there")

    @user
    def calls_back(x):
        shape = jax.ShapeDtypeStruct((), np.float32)
        jax.debug.print("", ordered=True)
        return jax.pure_callback(look_up, shape, jax.pure_callback(look_up, shape, x) + 1)

    @user
    def raises(x):
        return jax.pure_callback(fails, jax.ShapeDtypeStruct((), np.float32), x)

    def counted():
        return {each.function.rpartition(".")[2]: (each.calls, each.line.rpartition(":")[2])
                for each in jaxobs.snapshot().wall.host.callbacks if each not in before}  # fmt: skip

    before = jaxobs.snapshot().wall.host.callbacks
    jitted, first = jax.jit(calls_back), look_up.__code__.co_firstlineno
    with contextlib.redirect_stdout(sys.stderr):  # standard output is the report's
        for _ in range(10):
            jitted(ones()).block_until_ready()
        jax.effects_barrier()
        with contextlib.suppress(Exception):
            jax.jit(raises)(ones()).block_until_ready()
    expected = {"look_up": (20, str(first)), "print": (10, str(first + 9)), "fails": (1, str(first + 3))}
    check("calls and lines", expected if hasattr(sys, "monitoring") else {}, counted())


@scenario
def device_seconds() -> None:
    def wait(x):
        time.sleep(0.2)
        return np.asarray(x)

    @user
    def waits(x):
        return jax.pure_callback(wait, jax.ShapeDtypeStruct((), np.float32), x)

    def device():
        [found] = [each for each in jaxobs.snapshot().functions if each.name == "device_seconds"]
        return found.device

    ours = jaxobs.jit(waits, name="device_seconds")
    ours(ones()).block_until_ready()
    check("none of the call that compiled", None, device())
    for _ in range(2):
        ours(ones()).block_until_ready()
    deadline = time.monotonic() + 10
    while device() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    found = device()
    check("device time of a call", True, found is not None and 0.05 <= found.sum / sum(found.counts) < 10)


def persistent_cache() -> None:
    """A cold and a warm process over one directory: stored, below the threshold, and switched off; and another flag."""
    with tempfile.TemporaryDirectory() as directory:
        runs = [run_cache_worker(directory) for _ in range(2)]
        flagged = run_cache_worker(directory, "--xla_cpu_enable_fast_math=true")
    check("what differs, cold", [[], [], []], runs[0]["differs"])
    check("what differs, with another flag", [["flags"]] * 3, flagged["differs"])
    check("why not stored, each", [None, None, "too_fast", "disabled"], runs[0]["because"])
    checks.extend({**each, "scenario": f"{each['scenario']}, with a flag"} for each in flagged["checks"])
    for run, temperature in zip(runs, ("cold", "warm"), strict=True):
        checks.extend({**each, "scenario": f"{each['scenario']}, {temperature}"} for each in run["checks"])
        check(f"internal errors, {temperature}", {}, run["internal_errors"])
    cold, warm = (run["by_cache"] for run in runs)
    check("stored, cold", {"miss": 2}, cold["stored"])
    check("stored, warm", {"hit": 2}, warm["stored"])
    check(
        "phases of a hit",
        True,
        "cache_load" in runs[1]["phases"]["stored"] and "compile" not in runs[1]["phases"]["stored"],
    )
    for temperature, counts in (("cold", cold), ("warm", warm)):
        check(f"below the threshold, {temperature}", {"miss": 1}, counts["too_fast"])
        check(f"switched off, {temperature}", {"disabled": 1}, counts["not_cached"])
    check("why not stored", {"too_fast": 1}, runs[0]["unsaved"])


def run_cache_worker(directory: str, *flags: str) -> Any:
    """The report of a process of its own."""
    command = [sys.executable, __file__, "--cache", directory, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"The process with the cache ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    """Runs everything and prints the report."""
    if sys.argv[1:2] == ["--cache"]:
        cache_worker(sys.argv[2])
        return 0
    for run in (*scenarios, listeners_cleared, uninstalled, scraped, persistent_cache):
        try:
            run()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            checks.append({"scenario": run.__name__, "what": "ran", "expected": None, "seen": text, "ok": False})
    check("internal errors", {}, jaxobs.snapshot().observer.internal_errors)
    report = {"jax": jax.__version__, "python": sys.version.split()[0], "capabilities": ALL, "checks": checks}
    print(json.dumps(report))
    return 0 if all(each["ok"] for each in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
