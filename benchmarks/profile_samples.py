"""Profile samples (`profile_interval`): the time that a training loop loses to a sample, and the share of a minute."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Effort, Figure, by_turns, interval, quantile, spinning

if TYPE_CHECKING:
    from jaxobs.sources.support.profile_sampling import ProfileSampling

LAYERS, WIDTH, LENGTH, BATCH = 6, 128, 64, 4
SECONDS = 16.0
MOST = 0.1
"""Percent of the time, with a sample once a minute."""
MINUTE = 60.0
SAMPLES = 3


def run(effort: Effort) -> list[Figure]:
    """Neighbouring blocks of steps with a sample and without; and what a sample itself says that it cost."""
    from jaxobs.state.store import Store

    store, step = Store(), _training_step()
    seconds = statistics.median(_timed(step, 20) for _ in range(5)) / 20
    sampling = _sampling(store, seconds)
    steps = [_sampled(sampling, step)[0] for _ in range(3)][-1]  # the first has the programs in it
    plain = []

    def difference(swapped: bool) -> float:
        """Seconds that the steps take longer from the beginning of a sample until it is read."""
        before = _timed(step, steps) / steps if swapped else 0.0
        count, found = _sampled(sampling, step)
        plain.append(before or _timed(step, steps) / steps)
        return found - count * plain[-1]

    lost = by_turns(difference, effort, seconds=SECONDS, limit=MOST / 100 * MINUTE)
    sampling.stop()
    known: list[Any] = store.events(kind="profile")[0]
    held = [1e3 * (each.start_seconds + each.stop_seconds) for each in known]
    read = [1e3 * each.reading_seconds for each in known]
    median, (low, high) = 1e3 * statistics.median(lost), interval(lost)
    return [
        Figure(name="a training step", value=1e3 * statistics.median(plain), unit="ms", compared=False),
        Figure(
            name="a sample adds to the steps around it", value=median, unit="ms", compared=False,
            low=1e3 * low, high=1e3 * high, note=f"{len(lost)} pairs of {steps} steps",
        ),
        Figure(
            name="the loss at one sample a minute", value=statistics.median(lost) / MINUTE * 100, unit="%", limit=MOST,
            low=low / MINUTE * 100, high=high / MINUTE * 100, compared=False,
        ),
        Figure(
            name="beginning and ending a sample hold the interpreter", value=statistics.median(held), unit="ms",
            compared=False, note=f"at worst {max(held):.1f} ms in {len(held)} samples",
        ),
        Figure(
            name="reading a sample takes on a thread of its own", value=statistics.median(read), unit="ms",
            compared=False,
            note=f"of processor time; traces of {statistics.median(each.bytes for each in known) / 1e3:,.0f} kB",
        ),
        Figure(
            name="the whole cost at one sample a minute", unit="%", compared=False,
            value=statistics.median(one + other for one, other in zip(held, read, strict=True)) / (10 * MINUTE),
        ),
        _longest_wait(),
    ]  # fmt: skip


def _training_step() -> Callable[[], None]:
    """A step of a small transformer with its gradient, whose operations are not in a loop: about a thousand of them."""
    import jax
    import jax.numpy as jnp

    def layer(x: Any, weights: Any) -> Any:
        query, key, value = (x @ weights[name] for name in "qkv")
        scores = jax.nn.softmax(query @ key.swapaxes(-1, -2) / WIDTH**0.5)
        x = x + scores @ value
        return x + jax.nn.gelu(x @ weights["up"]) @ weights["down"]

    def loss(weights: Any, x: Any) -> Any:
        for each in weights:
            x = layer(x, each)
        return jnp.mean(x**2)

    def update(weights: Any, x: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - 1e-3 * g, weights, gradients), value

    train_step = jax.jit(update)
    sizes = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "up": (WIDTH, 512), "down": (512, WIDTH)}
    keys = iter(jax.random.split(jax.random.key(0), LAYERS * len(sizes) + 1))
    state: dict[str, Any] = {
        "weights": [{name: 0.02 * jax.random.normal(next(keys), each) for name, each in sizes.items()}
                    for _ in range(LAYERS)],
    }  # fmt: skip
    x = jax.random.normal(next(keys), (BATCH, LENGTH, WIDTH))

    def step() -> None:
        state["weights"], value = train_step(state["weights"], x)
        value.block_until_ready()

    step()
    return step


def _sampling(store: Any, seconds: float) -> ProfileSampling:
    """Returns a sampler that samples when we say so, as it would of a loop with such steps."""
    from jaxobs.sources.support import profile_sampling

    profile_sampling.FIRST_SECONDS = 1e6
    made = profile_sampling.ProfileSampling(store, 1e6)
    made._loop = lambda: ("train", seconds)  # type: ignore[method-assign]
    return made


def _timed(step: Callable[[], None], steps: int) -> float:
    started = time.perf_counter()
    for _ in range(steps):
        step()
    return time.perf_counter() - started


def _sampled(sampling: ProfileSampling, step: Callable[[], None]) -> tuple[int, float]:
    """Runs steps until a sample is taken and read; returns how many, and their seconds."""
    thread = threading.Thread(target=sampling._sample)
    started, steps = time.perf_counter(), 0
    thread.start()
    while thread.is_alive():
        step()
        steps += 1
    return steps, time.perf_counter() - started


def _longest_wait() -> Figure:
    """Measures a thread that computes in Python all the time, while samples of a program's devices are read."""
    from jaxobs.base import pacing
    from jaxobs.internals.xplane import space
    from jaxobs.profiles import analysis
    from jaxobs.profiles.tracks import trace_of, wanted

    data = _trace()
    waits = []
    with spinning() as longest:
        for _ in range(SAMPLES):
            longest()
            with pacing.politely():
                analysis.analyse(trace_of(space.read(data, wanted)))
            waits.append(1e3 * longest())
    return Figure(
        name="longest wait of another thread while a sample is read", value=quantile(waits, 0.2), unit="ms",
        compared=False, note=f"at worst {max(waits):.1f} ms in {SAMPLES} samples of {len(data) / 1e3:,.0f} kB",
    )  # fmt: skip


def _trace() -> bytes:
    """Ten steps of the program, without it."""
    from jaxobs.internals import short_traces

    step = _training_step()
    trace = short_traces.begin(programs=True)
    assert trace is not None
    for _ in range(10):
        step()
    data = trace.end()
    assert data is not None
    return data
