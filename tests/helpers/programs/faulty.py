"""A small program with one fault: `faulty.py MODE PORT [INDEX COUNT COORDINATOR_PORT]`; it runs until it is killed.

It prints its address when its endpoint listens, and `fault` with the time as its fault begins, a few seconds later. It
writes into a folder of its own where it was started.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

import jaxobs

mode, port = sys.argv[1], int(sys.argv[2])
WARM = {"memory": 40, "caught": 40, "nonfinite": 40, "requests": 100, "stalled": 200}.get(mode, 20)
"""Steps or requests before the fault."""
broken = Path(os.environ.get("FAULTY_BROKEN", ""))
"""In a drill, the fault lasts for as long as this file is there."""
OTHER = os.environ.get("FAULTY_OTHER", "")
"""In a drill: the address of the service that requests ask, or that this process is the one of another release or with
the NaN."""


def tell_fault() -> None:
    """Prints when it begins."""
    if mode not in ("healthy", "serving", "caught"):
        print(f"fault {time.time():.3f}", flush=True)


@jaxobs.jit
def train_step(weights: jax.Array, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
    def loss(w: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(batch @ w) - 0.5) ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.1 * gradient, value


@jaxobs.jit
def predict(weights: jax.Array, rows: jax.Array) -> jax.Array:
    return jnp.tanh(rows @ weights).sum(axis=1)


@jaxobs.jit
def huge(x: jax.Array) -> jax.Array:
    """More than there is."""
    return jnp.zeros((2**48,)) + x


@jaxobs.jit
def endless(x: jax.Array) -> jax.Array:
    """Loop that JAX traces for hours."""
    time.sleep(3600)
    return x


def batches(size: int = 64) -> Iterator[np.ndarray[Any, Any]]:
    """Batches without an end; a loader that is too slow in the mode `input`, ever new sizes in the mode `shapes`."""
    random = np.random.default_rng(0)
    slower, made = 0.0, 0
    for number in itertools.count():
        if mode == "input" and number > WARM:
            time.sleep(0.2)
        if mode == "gradual":
            slower = min(0.3, slower + 0.006) if broken.exists() else 0.0
            time.sleep(slower)
        odd = (mode == "shapes" and number % 4 == 0) or (mode == "cache" and number % 20 == 0 and number < 180)
        odd = odd or (mode == "sizes" and number % 4 == 0 and broken.exists())
        if mode == "readonly" and number % 20 == 0 and broken.exists():
            made += 1
            odd = made < 7  # few enough not to be what is wrong
        rows = number % 997 + 1 if number > WARM and odd else size
        yield random.normal(size=(rows, 64)).cumsum(axis=1).astype(np.float32)


def train() -> None:
    """Steps of 60 ms: the host waits for each result, as a program does that prints its loss."""
    weights = jnp.zeros((64, 64))
    kept: list[Any] = []
    for number, batch in enumerate(jaxobs.steps(jaxobs.data(batches(), "train"), "train", items=len)):
        weights, loss = train_step(weights, batch)
        is_nan = (mode == "nonfinite" and number == WARM) or (mode == "nan" and OTHER and broken.exists())
        jaxobs.watch(loss=loss * jnp.nan if is_nan else loss)
        float(loss)
        time.sleep(0.06)
        if number == WARM:
            tell_fault()
        if number < WARM:
            continue
        if mode == "cache" and number == WARM:
            shutil.rmtree(cache)
        if mode == "readonly" and cache.is_symlink() != broken.exists():
            set_read_only(broken.exists())
        if mode == "kept" and not broken.exists():
            kept.clear()
        if mode in ("leak", "kept"):
            kept.append(weights + 1)
        if mode == "hog" and broken.exists():
            kept.append(np.ones(250_000))
        if mode == "errors" and number % 10 == 0:
            with contextlib.suppress(TypeError):
                train_step(weights, np.ones((2, 65), np.float32))
        if mode in ("memory", "caught") and number == WARM:
            with contextlib.suppress(RuntimeError):
                huge(jnp.float32(1))
            if mode == "memory":
                threading.Event().wait()
        if mode == "stalled" and number == WARM:
            threading.Event().wait()
        if mode == "compiling":
            endless(jnp.float32(1))


def set_read_only(wanted: bool) -> None:
    """Puts a folder in which nobody can write, root neither, in the place of the cache, or the cache back."""
    kept = folder / "kept"
    (cache if wanted else kept).rename(kept if wanted else cache.with_suffix(".new"))
    if wanted:
        cache.symlink_to("/sys")
    else:
        cache.unlink()
        cache.with_suffix(".new").rename(cache)


def serve() -> None:
    """Requests, with too many sizes and some failures in the mode `requests`."""
    weights = jnp.zeros((64, 64))
    for number in itertools.count():
        time.sleep(0.04)
        bad = mode == "requests" and number > WARM
        if number == WARM:
            tell_fault()
        with (
            contextlib.suppress(RuntimeError, OSError, AttributeError),
            jaxobs.request("/predict", queue_seconds=0.3 if bad else 0.0),
        ):
            np.asarray(predict(weights, np.ones((number % 997 + 1 if bad and number % 3 == 0 else 8, 64), np.float32)))
            if bad and number % 5 == 0:
                raise RuntimeError("made on purpose")
            if mode == "dependency":
                urllib.request.urlopen(OTHER).close()
            if mode == "replicas" and OTHER and number % 8 == 1:  # no more, or the objective pages
                raise AttributeError("module 'jax' has no attribute 'P'")


def together(index: int, count: int, coordinator: str) -> None:
    """Steps that need all processes; the last compiles something else, and the others wait for it."""
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{coordinator}", count, index)
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))

    def made(rows: int) -> jax.Array:
        return jax.make_array_from_process_local_data(sharding, np.ones((rows, 4), np.float32))

    step = jaxobs.jit(lambda x: (x * 2).sum(), name="step")
    last = index == count - 1
    data = made(8 if last and mode == "together" else 4)
    tell_fault()
    while True:
        with jaxobs.step("train"):
            time.sleep(0.15 if last and (mode == "together" or broken.exists()) else 0.01)
            float(step(data))


folder = Path(f"{mode}-{port}").absolute()
folder.mkdir(exist_ok=True)
cache = folder / "cache"
jax.config.update("jax_compilation_cache_dir", str(cache))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
if "FAULTY_GATE" in os.environ:  # it takes another one's place, and is ready before that ends
    print("ready", flush=True)
    while not os.path.exists(os.environ["FAULTY_GATE"]):
        time.sleep(0.02)
events = folder / "events.jsonl"
if mode == "full" and broken.exists():  # what lies beside a log is on the same disk: not in /dev
    events = folder / "full.jsonl"
    events.symlink_to("/dev/full")
jaxobs.start(port=port, sample_interval=0.5, stuck_seconds=1.0, event_log=str(events))
print(f"http://127.0.0.1:{port}/metrics", flush=True)
if mode in ("together", "frozen", "slow"):
    together(int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
elif mode in ("requests", "serving", "dependency", "replicas"):
    serve()
else:
    train()
