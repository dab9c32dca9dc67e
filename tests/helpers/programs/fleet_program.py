"""Process of a job on this machine: `fleet_program.py INDEX COUNT PORT MODE FOLDER`; it runs until it is killed.

Its steps need all processes, except in the mode `slow`. What the last process does wrong is told by the mode:
`other_shape`, `other_order`, `dies`, `straggler`, `slow` or `stuck`; nothing in `healthy` and in `serves`, where each
has an endpoint. In `dies` the job ends three seconds after its first program.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import jax
import numpy as np
from jax._src import distributed
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxobs
from jaxobs.state import store

index, count, port, mode, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
jaxobs.install(
    event_log=f"{folder}/{index}.jsonl", flight_recorder=folder, sample_interval=60.0 if mode == "dies" else 0.2,
    stuck_seconds=2.0, stuck_steps=5,
)  # fmt: skip
if mode == "serves":
    handle = jaxobs.serve(port=0)
    assert handle is not None
    print("URL", handle.url, flush=True)
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", count, index)

last = index == count - 1
mesh = Mesh(np.array(jax.devices()), ("data",))
sharding = NamedSharding(mesh, PartitionSpec("data"))
here = jax.local_devices()[0]


def batch(rows: int) -> jax.Array:
    return jax.make_array_from_process_local_data(sharding, np.ones((rows, 4), np.float32))


@jaxobs.jit
def step(x: jax.Array) -> jax.Array:
    return (x * 2).sum()


@jaxobs.jit
def prepare(x: jax.Array) -> jax.Array:
    return x.mean(axis=0).sum()


@jaxobs.jit
def report(x: jax.Array) -> jax.Array:
    return x + 1


def slow_input() -> None:
    time.sleep(0.15)


if mode == "dies":
    (prepare if last else step)(batch(4))
    distributed.global_state.client.wait_at_barrier("compiled", 60_000)
    time.sleep(3.0)
    os._exit(1)
if mode == "other_order" and last:
    step(batch(4))
    prepare(batch(4))
else:
    prepare(batch(4))
    step(batch(4))
if index == 0:  # what a single process runs by itself is no difference
    report(jax.device_put(np.float32(1), here))

data = batch(8 if mode == "other_shape" and last else 4)
own = jax.device_put(np.ones((4, 4), np.float32), here)
number = 0
while True:
    number += 1
    if last and mode in ("straggler", "slow"):
        slow_input()
    else:
        time.sleep(0.01)
    if last and mode == "stuck" and number == 60:
        threading.Event().wait()
    float(step(own if mode == "slow" else data))
    if number == 20:
        events = store.current().events()[0]
        print("INDEXES", sorted({each.process_index for each in events}), flush=True)
