"""Sampling: the share of a core that samples take, and the time that a program loses to them."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from benchmarks.full import DEVICES, function_name
from benchmarks.harness import Effort, Figure, by_turns, interval, quantile, spinning

if TYPE_CHECKING:
    from jaxobs.session.sampler import Sampler
    from jaxobs.state.call_stats import CallStats

ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}"}

ARRAYS = 10_000
MORE_ARRAYS = 100_000
FUNCTIONS = 200
TIMED_CALLS = 64
"""Calls of a function that are timed between two samples."""
SAMPLES = 12
SECONDS = 10.0
MOST = 1.0
"""Percent of a training step."""
MOST_OF_CORE = 0.5
"""Percent."""
BLOCK_SECONDS = 0.5
"""A sample in each block: ten times as often as by default."""
WIDTH, LAYERS, BATCH = 256, 4, 64


def run(effort: Effort) -> list[Figure]:
    """The longest wait of another thread, a training step with and without, and what more arrays change."""
    samples = effort.rounds(SAMPLES)
    step = _training_step()
    arrays = live_arrays(ARRAYS)
    with _sampler() as (sampler, functions):
        waits, cost = _longest_wait(sampler, functions, samples)
        pause = _pause(cost)
        figures = [
            Figure(name="one sample", value=cost * 1e3, unit="ms"),
            Figure(
                name="samples' share of a core", value=cost / (pause + cost) * 100, unit="%", limit=MOST_OF_CORE,
                note=f"one in {pause:.1f} s; {ARRAYS} arrays, {DEVICES} devices, {FUNCTIONS} functions",
            ),
            Figure(
                name="longest wait of another thread during a sample", value=quantile(waits, 0.2), unit="ms",
                limit=5.0, note=f"at worst {max(waits):.1f} ms in {samples} samples",
            ),
        ]  # fmt: skip
        figures += _effect(sampler, step, cost, effort)
        arrays += live_arrays(MORE_ARRAYS - ARRAYS)
        figures += _more(sampler, functions, MORE_ARRAYS, max(3, samples // 3))
    del arrays
    return figures


def live_arrays(count: int) -> list[Any]:
    """Returns arrays of which most are on one device each, and some sharded over all."""
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


@contextlib.contextmanager
def _sampler() -> Iterator[tuple[Sampler, list[CallStats]]]:
    """All sources as `install` starts them, sampled when we say so, and functions whose calls are timed."""
    from jaxobs.base import discovery
    from jaxobs.session.sampler import Sampler
    from jaxobs.sources import SourceModule
    from jaxobs.state.store import current

    sources = [module.source(current()) for module in discovery.modules(SourceModule)]
    for each in sources:
        each.start()
    sampler = Sampler(current(), 86_400.0, sources, lambda: ())
    functions = [current().call_stats(function_name(number)) for number in range(FUNCTIONS)]
    try:
        time.sleep(1.0)  # its first sample
        yield sampler, functions
    finally:
        sampler.stop()
        for each in sources:
            each.stop()


def _longest_wait(sampler: Sampler, functions: list[CallStats], samples: int) -> tuple[list[float], float]:
    """Takes samples between which all functions are called.

    Returns:
      Milliseconds for which another thread that only computes had to wait at most, of each sample; and the seconds of
      a core that a sample takes in the median.
    """
    waits, costs = [], []
    with spinning() as longest_wait:
        for _ in range(samples):
            for stats in functions:
                stats.durations.extend([1e-4] * TIMED_CALLS)
            time.sleep(0.01)
            longest_wait()
            started = time.thread_time()
            sampler.sample()
            costs.append(time.thread_time() - started)
            time.sleep(0.01)  # or what is asked for was noticed by nobody yet
            waits.append(longest_wait() * 1e3)
    return waits, statistics.median(costs)


def _effect(sampler: Sampler, step: Callable[[], None], cost: float, effort: Effort) -> list[Figure]:
    """A block of training steps with a sample beside them, and one without, by turns."""
    started = time.perf_counter()
    for _ in range(20):
        step()
    seconds = (time.perf_counter() - started) / 20
    steps = max(1, round(BLOCK_SECONDS / seconds))

    def block(sampled: bool) -> float:
        started = time.perf_counter()
        thread = threading.Thread(target=sampler.sample)
        if sampled:
            thread.start()
        for _ in range(steps):
            step()
        found = time.perf_counter() - started
        if sampled:
            thread.join()
        return found

    ratios = []

    def difference(swapped: bool) -> float:
        found = {sampled: block(sampled) for sampled in (swapped, not swapped)}
        ratios.append(found[True] / found[False])
        return found[True] - found[False]

    pause = _pause(cost)
    lost = by_turns(difference, effort, seconds=SECONDS, limit=MOST / 100 * pause)
    low, high = interval(ratios)
    low_share, high_share = (each / pause * 100 for each in interval(lost))
    return [
        Figure(
            name=f"a training step, with a sample every {BLOCK_SECONDS} s against without",
            value=statistics.median(ratios),
            unit="times",
            low=low,
            high=high,
            note=f"{len(lost)} pairs of {steps} steps of {seconds * 1e3:.1f} ms",
            compared=False,
        ),
        Figure(
            name="sampling adds to a training step at the default settings",
            value=statistics.median(lost) / pause * 100,
            unit="%",
            low=low_share,
            high=high_share,
            limit=MOST,
            note=f"one sample in {pause:.1f} s",
            compared=False,
        ),
    ]


def _more(sampler: Sampler, functions: list[CallStats], count: int, samples: int) -> list[Figure]:
    """With more arrays than promised for: rarer samples, and the one call of JAX that lists the arrays."""
    waits, cost = _longest_wait(sampler, functions, samples)
    pause = _pause(cost)
    return [
        Figure(
            name=f"{count} arrays: share of a core",
            value=cost / (pause + cost) * 100,
            unit="%",
            limit=1.0,
            note=f"{cost * 1e3:.0f} ms every {pause:.0f} s",
        ),
        Figure(
            name=f"{count} arrays: longest wait of another thread",
            value=quantile(waits, 0.2),
            unit="ms",
            note=f"{_listing() * 1e3:.1f} ms of it JAX's `live_arrays`, which cannot be interrupted",
        ),
    ]


def _pause(cost: float) -> float:
    """Seconds until the sampler's next sample, at the default settings."""
    from jaxobs.base.config import Settings
    from jaxobs.session.sampler import BUDGET

    return max(Settings().sample_interval, cost / BUDGET)


def _listing() -> float:
    """Seconds of the one call that names the live arrays."""
    import jax

    client = jax.devices()[0].client
    found = []
    for _ in range(3):
        started = time.thread_time()
        client.live_arrays()
        found.append(time.thread_time() - started)
    return min(found)


def _training_step() -> Callable[[], None]:
    """A multilayer perceptron with Adam; the batch is cut over all devices, and the loss is read at each step."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()), ("data",))
    whole, cut = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    draw = np.random.default_rng(0)
    parameters: Any = [
        jax.device_put(draw.normal(size=(WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5, whole) for _ in range(LAYERS)
    ]
    optimiser = optax.adam(1e-3)
    state = jax.device_put(optimiser.init(parameters), whole)
    batch = jax.device_put(draw.normal(size=(BATCH, WIDTH)).astype(np.float32), cut)

    def loss(parameters: Any, x: Any) -> Any:
        for each in parameters:
            x = jnp.tanh(x @ each)
        return jnp.mean(x**2)

    def update(parameters: Any, state: Any, x: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, x)
        changes, state = optimiser.update(gradients, state)
        return optax.apply_updates(parameters, changes), state, value

    compiled = jax.jit(update)

    def step() -> None:
        nonlocal parameters, state
        parameters, state, value = compiled(parameters, state, batch)
        value.block_until_ready()

    for _ in range(3):
        step()
    return step
