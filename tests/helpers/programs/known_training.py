"""A training run that knows by itself what it did: it prints its truth as a line of JSON, and waits for one to go on.

The first line tells the endpoint's address. Compilations are counted where the compiler is called (see
`benchmarks/corpus/truth.py`), calls and errors by hand, live bytes by asking each array.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections import Counter
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import jax
import jax.numpy as jnp
import numpy as np

import jaxobs
from benchmarks.corpus import truth
from jaxobs.loops.loop_outputs import LoopOutputs
from jaxobs.state import store

calls: Counter[str] = Counter()
errors: Counter[str] = Counter()


def loss(parameters: Any, images: Any, labels: Any) -> Any:
    """Cross entropy of a two-layer network."""
    hidden = jnp.tanh(images @ parameters["in"])
    logits = jax.nn.log_softmax(hidden @ parameters["out"])
    return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], axis=1))


@jaxobs.jit
def train_step(parameters: Any, images: Any, labels: Any) -> Any:
    if images.ndim != 2:
        raise ValueError("images are flat")
    gradients = jax.grad(loss)(parameters, images, labels)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


@jaxobs.jit
def evaluate(parameters: Any, images: Any, labels: Any) -> Any:
    """The loss."""
    return loss(parameters, images, labels)


@jax.jit
def scale(images: Any) -> Any:
    """Preprocessing, jitted by JAX itself: its compilations are seen, its calls are not."""
    return images / 16.0


def batches(count: int, size: int, dtype: Any = np.float32) -> Any:
    """Synthetic images and labels."""
    generator = np.random.default_rng(0)
    for _ in range(count):
        yield generator.random((size, 64)).astype(dtype), generator.integers(0, 10, size)


def train(parameters: Any, data: Any) -> Any:
    """An epoch, each step counted."""
    for images, labels in data:
        parameters = train_step(parameters, scale(images), labels)
        calls["train_step"] += 1
    return parameters


def tell(**more: Any) -> None:
    """Prints what is true now, and waits."""
    gc.collect()
    outputs = store.current().part(LoopOutputs)
    while outputs.pending:  # what a loop returned is kept until it has arrived, and no longer
        time.sleep(0.01)
    live: Counter[str] = Counter()
    arrays: Counter[str] = Counter()
    for array in jax.live_arrays():
        # All are on one device each. Looking at their shards would make more arrays of them.
        (device,) = array.devices()
        live[f"{device.platform}:{device.id}"] += array.nbytes
        arrays[f"{device.platform}:{device.id}"] += 1
    facts = {"executables": dict(truth.executables), "calls": dict(calls), "errors": dict(errors)}
    print(json.dumps({**facts, "live_bytes": dict(live), "live_arrays": dict(arrays), **more}), flush=True)
    sys.stdin.readline()


def main() -> None:
    """Two stages of training."""
    truth.count_truth()
    handle = jaxobs.start(port=0, sample_interval=0.5)
    assert handle is not None
    print(json.dumps({"url": handle.url}), flush=True)
    parameters = jax.device_put({"in": np.full((64, 32), 0.01, np.float32), "out": np.full((32, 10), 0.01, np.float32)})
    replicas = [jax.device_put(np.ones((100, 10), np.float32), device) for device in jax.devices()]

    parameters = train(parameters, batches(5, 32))
    parameters = train(parameters, batches(1, 7))
    evaluate(parameters, *next(batches(1, 32)))
    calls["evaluate"] += 1
    causes = {"train_step": {"first_call": 1, "shape": 1}, "evaluate": {"first_call": 1}}
    causes["scale"] = {"first_call": 1, "shape": 1}
    tell(causes=causes)

    parameters = train(parameters, batches(3, 32))
    parameters = train(parameters, batches(2, 16))
    for _ in range(3):
        evaluate(parameters, *next(batches(1, 32, np.float16)))
        calls["evaluate"] += 1
    for _ in range(2):
        jax.jit(lambda x: x * 3)(parameters["in"])
    try:
        train_step(parameters, np.ones((2, 8, 8), np.float32), np.zeros(2, np.int64))
    except ValueError:
        errors["ValueError"] += 1
        calls["train_step"] += 1
    causes["train_step"]["shape"] += 1
    causes["scale"]["shape"] += 1
    causes["evaluate"]["dtype"] = 1
    causes["main.<locals>.<lambda>"] = {"first_call": 1, "new_function": 1}
    replicas.append(jax.device_put(np.ones(1000, np.float32), jax.devices()[1]))
    tell(causes=causes)
    del replicas


if __name__ == "__main__":
    main()
