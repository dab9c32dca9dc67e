"""Process of a job that knows nothing of jaxobs: `plain_fleet.py INDEX COUNT PORT MODE`.

It runs under `jaxobs run` until it is killed. The mode is a list with hyphens. `alone`: steps need no other process,
else all. What the last process does wrong: `slow` (50 ms more a step), `stops` (in its 100th step), `diverges` (a
program of its own). What is fine: `late` (the last begins later), `noise`, and, on process 0 only, `eval` and `save`.
`marked`: with `jaxobs.step`. `ends`: after 150 steps, and prints what the loop took.
"""

from __future__ import annotations

import contextlib
import pathlib
import random
import sys
import tempfile
import threading
import time

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

index, count, port, modes = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], set(sys.argv[4].split("-"))
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", count, index)

last = index == count - 1
sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
here = jax.local_devices()[0]


@jax.jit
def train_step(x: jax.Array) -> jax.Array:
    return (x * 2).sum()


@jax.jit
def eval_step(x: jax.Array) -> jax.Array:
    return x.mean()


@jax.jit
def extra(x: jax.Array) -> jax.Array:
    return x.max()


def batch() -> None:
    pause = 0.05
    if "noise" in modes:
        pause *= random.uniform(0.6, 1.4)
    if last and "slow" in modes:
        pause += 0.05
    time.sleep(pause)


def evaluate() -> None:
    for _ in range(40):
        eval_step(own).block_until_ready()
        time.sleep(0.005)


own = jax.device_put(np.ones((4, 4), np.float32), here)
data = jax.make_array_from_process_local_data(sharding, np.ones((4, 4), np.float32))
if "late" in modes and last:
    time.sleep(2.0)
if "marked" in modes:
    import jaxobs
number = 0
print("GOES", flush=True)
began, apart = time.perf_counter(), 0.0
while "ends" not in modes or number < 150:
    number += 1
    with jaxobs.step("train") if "marked" in modes else contextlib.nullcontext():
        batch()
        if last and "stops" in modes and number == 100:
            threading.Event().wait()
        if last and "diverges" in modes and number == 30:
            extra(data)
        loss = train_step(own if "alone" in modes else data)
        loss.block_until_ready()
    paused = time.perf_counter()
    if index == 0 and "eval" in modes and number % 20 == 0:
        evaluate()
    if index == 0 and "save" in modes and number % 20 == 0:
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "state").write_bytes(bytes(2**20))
            time.sleep(0.3)
    apart += time.perf_counter() - paused
print("STEPS", time.perf_counter() - began - apart, apart, flush=True)
