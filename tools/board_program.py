"""A small program that trains and serves on whatever device is there, with typical mistakes: for the dashboards.

python -m tools.board_program 9464 --seconds 300 --pace 0.02
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxobs


@jaxobs.jit
def train_step(weights: jax.Array, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Takes a step of a made-up regression."""

    def loss(w: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(batch @ w) - 0.5) ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.1 * gradient, value


@jaxobs.jit
def predict(weights: jax.Array, rows: jax.Array) -> jax.Array:
    return jnp.tanh(rows @ weights).sum(axis=1)


def batches(pace: float, size: int, width: int, stop: threading.Event) -> Iterator[np.ndarray[Any, Any]]:
    """Batches until it is time to stop, one in 200 of which is short."""
    random = np.random.default_rng(0)
    count = 0
    while not stop.is_set():
        count += 1
        time.sleep(pace * (0.2 + 0.2 * random.random()))
        yield random.normal(size=(size - count % 7 if count % 200 == 0 else size, width)).astype(np.float32)


def serve(weights: jax.Array, width: int, stop: threading.Event) -> None:
    """Requests of a few sizes; one in 150 fails."""
    random = np.random.default_rng(1)
    count = 0
    while not stop.wait(0.03 + 0.05 * random.random()):
        count += 1
        rows = 2 ** int(random.integers(0, 4)) if count % 60 else int(random.integers(9, 40))
        with contextlib.suppress(RuntimeError), jaxobs.request("/predict"):
            np.asarray(predict(weights, np.ones((rows, width), np.float32)))
            if count % 150 == 0:
                raise RuntimeError("made on purpose")


def generate(weights: jax.Array, width: int, stop: threading.Event) -> None:
    """Text of made-up lengths; one in ten is cut off at its limit, one in forty given up."""
    random, blocks = np.random.default_rng(2), 64
    row, used, waiting = np.ones((8, width), np.float32), 4, 1
    while not stop.wait(0.02):
        prompt, length = int(random.integers(5, 200)), int(random.integers(2, 20))
        used = min(8, max(1, used + int(random.integers(-1, 2)) * (random.random() < 0.1)))
        waiting = min(6, max(0, waiting + int(random.integers(-1, 2)) * (random.random() < 0.1)))
        jaxobs.engine(running=used, waiting=waiting, kv_cache=used * 7 / blocks)
        with contextlib.suppress(GeneratorExit), jaxobs.request("/generate", batch=(used, 8)) as served:
            served.queued(0.01 * waiting * random.random())
            served.tokens(input=prompt)
            time.sleep(1e-4 * prompt)
            for token in range(length):
                np.asarray(predict(weights, row))
                if not token:
                    served.first_token()
                served.tokens(output=1)
                time.sleep(0.003)
            if random.random() < 1 / 40:
                served.finish_reason("abort")
                raise GeneratorExit
            served.finish_reason("length" if random.random() < 0.1 else "stop")


def prepare(weights: jax.Array, width: int, stop: threading.Event) -> None:
    """A function whose tracing reads a file, as it seems: a compilation that scrapes can see in progress."""
    while not stop.wait(4.0):

        @jaxobs.jit
        def table(rows: jax.Array) -> jax.Array:
            stop.wait(2.5)
            return rows @ weights

        table(np.ones((8, width), np.float32))


def main() -> None:
    """Trains in this thread and serves in others until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pace", type=float, default=0.02, help="seconds that a batch takes")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--cache", help="folder of the persistent cache; by default one of its own")
    parser.add_argument("--size", type=int, default=128)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        jax.config.update("jax_compilation_cache_dir", args.cache or folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        handle = jaxobs.start(port=args.port, peak_flops=1e12, transfers=True, profile_interval=2.0)
        stop = threading.Event()
        threading.Timer(args.seconds, stop.set).start()
        weights = jnp.zeros((args.width, args.width))
        servers = [
            threading.Thread(target=each, args=(weights, args.width, stop)) for each in (serve, generate, prepare)
        ]
        for server in servers:
            server.start()
        print(f"http://127.0.0.1:{args.port}/metrics", flush=True)
        train(weights, args, stop)
        for server in servers:
            server.join()
        assert handle is not None
        handle.close()


def train(weights: jax.Array, args: argparse.Namespace, stop: threading.Event) -> None:
    """Steps, with a checkpoint every 100 and an exception every 250."""
    source = jaxobs.data(batches(args.pace, args.size, args.width, stop), "train")
    for number, batch in enumerate(jaxobs.steps(source, "train", items=len)):
        weights, loss = train_step(weights, batch)
        jaxobs.watch(loss=loss)
        float(loss)
        time.sleep(args.pace / 2)
        if number % 100 == 50:
            with jaxobs.phase("checkpoint"):
                jax.monitoring.record_scalar("/jax/orbax/write/gbytes", value=0.25)  # as Orbax reports its sizes
                np.asarray(weights)
                time.sleep(0.1)
        if number % 250 == 100:
            with contextlib.suppress(TypeError):
                train_step(weights, np.ones((2, args.width + 1), np.float32))


if __name__ == "__main__":
    main()
