"""The slow tick: what the sampler's thread takes of a core with many live arrays, devices and functions."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from benchmarks.full import DEVICES, function_name
from benchmarks.harness import Effort, Figure

ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}"}

ARRAYS = 10_000
FUNCTIONS = 200
MOST_TICKS = 2
MOST = 0.5
"""Percent of a core."""
CLEAR = 0.85
"""Share of the bound below which the first interval settles it."""


def run(effort: Effort) -> list[Figure]:
    """Percent of a core over whole intervals between ticks, at the default settings."""
    import jaxobs
    from jaxobs.state.store import current

    arrays = live_arrays(ARRAYS)
    functions = [current().call_stats(function_name(number)) for number in range(FUNCTIONS)]
    jaxobs.install()
    (sampler,) = [thread for thread in threading.enumerate() if thread.name == "jaxobs-sampler"]
    assert sampler.ident is not None
    clock = time.pthread_getcpuclockid(sampler.ident)

    def next_tick() -> float:
        """Waits for the end of the next tick, with functions that are called meanwhile; gives its seconds of CPU."""
        for stats in functions:
            stats.durations.extend([1e-4] * 64)
        before = used = time.clock_gettime(clock)
        while True:
            time.sleep(0.05)
            last, used = used, time.clock_gettime(clock)
            if used == last and used - before > 1e-3:
                return used - before

    try:
        while not current().snapshot_devices():
            next_tick()
        started, used = time.monotonic(), time.clock_gettime(clock)
        costs: list[float] = []
        share = seconds = math.inf
        most = effort.rounds(MOST_TICKS) if effort.share > 1 else MOST_TICKS
        while len(costs) < most and (not effort.stops or share > CLEAR * MOST / 100):
            costs.append(next_tick())
            seconds = time.monotonic() - started
            share = (time.clock_gettime(clock) - used) / seconds
    finally:
        jaxobs.uninstall()
    del arrays
    return [
        Figure(name="one tick", value=sum(costs) / len(costs) * 1e3, unit="ms"),
        Figure(
            name="the slow tick's share of a core",
            value=share * 100,
            unit="%",
            limit=MOST,
            note=f"{len(costs)} ticks in {seconds:.1f} s; {ARRAYS} arrays, {DEVICES} devices, {FUNCTIONS} functions",
        ),
    ]


def live_arrays(count: int) -> list[Any]:
    """Most on one device each, some sharded over all."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    devices = jax.devices()
    sharded = NamedSharding(Mesh(np.array(devices), ("data",)), PartitionSpec("data"))
    return [
        jax.device_put(
            np.zeros((DEVICES, 1 + number % 30), np.float32),
            sharded if number % 10 == 0 else devices[number % DEVICES],
        )
        for number in range(count)
    ]
