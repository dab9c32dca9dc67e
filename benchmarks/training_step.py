"""A training step: the throughput that a program loses with everything on, against the same program without jaxobs."""

from __future__ import annotations

import contextlib
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Figure, interval

BLOCK_SECONDS, QUICK_BLOCK_SECONDS = 2.5, 2.0
"""Seconds of a block with a scrape and a sample: Prometheus asks every 15 s by default, jaxobs samples every 5 s."""
PAIRS = 8
QUICK_PAIRS = 3
SECONDS, QUICK_SECONDS = 12.0, 3.0
"""Seconds of neighbouring steps."""
WARM_UP = 10
"""Steps after installing or removing, which throw everything else out of the processor's caches."""
MOST_LOST = 0.5
"""Percent of the throughput of a step of at least `LONG_STEP`."""
MOST_LOST_OF_SHORT = 2.0
"""Percent of the throughput of the demo's step, which is shorter."""
LONG_STEP = 10.0
"""Milliseconds."""

WIDTH, HEADS, LAYERS, WORDS, LENGTH, BATCH = 128, 4, 2, 256, 64, 8

_SCRAPER = """
import sys, time, urllib.request
for line in sys.stdin:
    url, delay = line.split()
    time.sleep(float(delay))
    with urllib.request.urlopen(url + "metrics") as answer:
        print(len(answer.read()), flush=True)
"""


@dataclass(frozen=True, slots=True)
class _Training:
    """A program that trains: its step, which returns the loss, and the batches that it goes over."""

    name: str
    step: Callable[[Any], Any]
    batches: list[Any]
    items: int
    most_lost: float
    """Percent."""


def run(quick: bool) -> list[Figure]:
    """The demo's step and one of a transformer, with and without jaxobs by turns; and what is added to one step."""
    demo, transformer = _demo(), _transformer()
    figures = _added(demo, QUICK_SECONDS if quick else SECONDS)
    for training in (demo, transformer):
        figures += _lost(training, *((QUICK_PAIRS, QUICK_BLOCK_SECONDS) if quick else (PAIRS, BLOCK_SECONDS)))
    return figures


def _added(training: _Training, seconds: float) -> list[Figure]:
    """Returns what the program's thread does more in a step, which finds the caches full of the model's data."""
    with tempfile.TemporaryDirectory() as folder, _everything_on(folder):
        step_seconds, added, added_all = _neighbours(training, seconds)
    low, high = interval(added)
    low_all, high_all = interval(added_all)
    return [
        Figure(name=f"a step of {training.name}", value=step_seconds * 1e3, unit="ms", compared=False),
        Figure(
            name="`instrument` and `step` add to it",
            value=statistics.median(added) * 1e6,
            unit="µs",
            note=f"95 % confidence: {low * 1e6:+.1f} to {high * 1e6:+.1f}; {len(added)} pairs of neighbours",
            compared=False,
        ),
        Figure(
            name="together with `data` and `watch` they add to it",
            value=statistics.median(added_all) * 1e6,
            unit="µs",
            note=f"95 % confidence: {low_all * 1e6:+.1f} to {high_all * 1e6:+.1f}",
            compared=False,
        ),
        Figure(
            name=f"a step of which they surely are no more than {MOST_LOST} %",
            value=max(0.0, low_all) * 1e3 / (MOST_LOST / 100),
            unit="ms",
            limit=LONG_STEP,
            note="lower end of the confidence interval",
        ),
    ]


def _lost(training: _Training, pairs: int, block_seconds: float) -> list[Figure]:
    """Blocks with everything on, and without jaxobs."""
    import jaxobs

    # One compiled program for both.
    step = jaxobs.instrument(training.step, name=training.name)
    _bare(training, WARM_UP)
    seconds = statistics.median(_bare(training, 1) for _ in range(20))
    steps = max(1, round(block_seconds / seconds))
    lost = []
    with tempfile.TemporaryDirectory() as folder, _scraper() as scraper:

        def block(observed: bool) -> float:
            if not observed:
                _bare(training, WARM_UP)
                return _bare(training, steps)
            with _everything_on(folder) as url:
                _observed(training, step, WARM_UP)
                with _scraped(scraper, url, block_seconds / 2):
                    return _observed(training, step, steps)

        for swapped in itertools.islice(itertools.cycle((False, True)), pairs):
            # The one first, then the other, by turns: what drifts cancels.
            found = {observed: block(observed) for observed in (swapped, not swapped)}
            lost.append((1 - found[False] / found[True]) * 100)
    low, high = interval(lost)
    blocks = f"{pairs} pairs of {steps} steps of {seconds * 1e3:.1f} ms"
    return [
        Figure(
            name=f"{training.name} loses of its throughput",
            value=statistics.median(lost),
            unit="%",
            note=f"95 % confidence: {low:+.2f} to {high:+.2f}; {blocks}",
            compared=False,
        ),
        Figure(
            name=f"{training.name} surely loses of its throughput",
            value=max(0.0, low),
            unit="%",
            limit=training.most_lost,
            note="lower end of the confidence interval: 0 if no difference was measured",
        ),
    ]


def _bare(training: _Training, steps: int) -> float:
    """Seconds of so many steps as they are written without jaxobs; the loss is read, as the demo does."""
    step = training.step
    began = time.perf_counter()
    for batch in _first(training.batches, steps):
        loss = step(batch)
        float(loss)
    return time.perf_counter() - began


def _observed(training: _Training, step: Callable[[Any], Any], steps: int) -> float:
    """Measures with all that there is for a training loop."""
    import jaxobs

    began = time.perf_counter()
    for batch in jaxobs.data(_first(training.batches, steps)):
        with jaxobs.step("train", items=training.items):
            loss = step(batch)
            jaxobs.watch(loss=loss)
            float(loss)
    return time.perf_counter() - began


def _neighbours(training: _Training, seconds: float) -> tuple[float, list[float], list[float]]:
    """Seconds of a step in the median, and how much longer the step beside it takes: with calls and steps counted, and
    with inputs and losses watched as well."""
    import jaxobs

    bare, clock = training.step, time.perf_counter
    step = jaxobs.instrument(bare, name=training.name)
    batches = itertools.cycle(training.batches)
    watched = iter(jaxobs.data(itertools.cycle(training.batches)))

    def plain() -> None:
        float(bare(next(batches)))

    def counted() -> None:
        batch = next(batches)
        with jaxobs.step("train", items=training.items):
            float(step(batch))

    def everything() -> None:
        batch = next(watched)
        with jaxobs.step("train", items=training.items):
            loss = step(batch)
            jaxobs.watch(loss=loss)
            float(loss)

    def took(one: Callable[[], None]) -> float:
        began = clock()
        one()
        return clock() - began

    without: list[float] = []
    added: dict[Callable[[], None], list[float]] = {counted: [], everything: []}
    for one in (plain, *added):
        for _ in range(WARM_UP):
            one()
    until = clock() + seconds
    while clock() < until:
        for one, found in added.items():
            first, second, third, fourth = took(plain), took(one), took(one), took(plain)
            found += [second - first, third - fourth]
            without += [first, fourth]
    return statistics.median(without), added[counted], added[everything]


def _first(batches: list[Any], steps: int) -> Iterable[Any]:
    return itertools.islice(itertools.cycle(batches), steps)


@contextlib.contextmanager
def _everything_on(folder: str) -> Iterator[str]:
    """jaxobs as `start` sets it up, with an event log; gives the address of its endpoint."""
    import jaxobs

    endpoint = jaxobs.start(port=0, event_log=str(Path(folder) / "events.jsonl"))
    assert endpoint is not None
    try:
        yield endpoint.url
    finally:
        jaxobs.uninstall()


@contextlib.contextmanager
def _scraped(scraper: subprocess.Popen[str], url: str, delay: float) -> Iterator[None]:
    """In the middle of the block another process asks for the metrics."""
    assert scraper.stdin is not None and scraper.stdout is not None
    print(url, delay, file=scraper.stdin, flush=True)
    yield
    if int(scraper.stdout.readline() or 0) < 1000:
        raise RuntimeError("The scraper got no metrics.")


@contextlib.contextmanager
def _scraper() -> Iterator[subprocess.Popen[str]]:
    """A process that asks when it is told to."""
    command = [sys.executable, "-c", _SCRAPER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def _demo() -> _Training:
    """Returns the demo's healthy step: Flax NNX and Optax, a call of which is hundreds of microseconds of Python."""
    import inspect

    from flax import nnx

    from jaxobs.demo import training

    digits, _ = training.load()
    model, optimizer = training.new_model()
    jitted = nnx.jit(inspect.unwrap(training.train_step))

    def step(batch: Any) -> Any:
        return jitted(model, optimizer, *batch, 1)

    return _Training("the demo", step, list(digits.batches(0, keep_rest=False)), training.BATCH, MOST_LOST_OF_SHORT)


def _transformer() -> _Training:
    """A small language model with Adam, its state donated: tens of milliseconds of two cores."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    draw = np.random.default_rng(0)

    def matrix(*shape: int) -> Any:
        return jnp.asarray(draw.normal(size=shape).astype(np.float32) / shape[0] ** 0.5)

    block = {"attend": (WIDTH, 3 * WIDTH), "join": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    parameters: Any = {
        "words": matrix(WORDS, WIDTH),
        "blocks": [{name: matrix(*shape) for name, shape in block.items()} for _ in range(LAYERS)],
    }
    optimizer = optax.adam(1e-3)

    def normal(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-6)

    def attended(x: Any, each: Any) -> Any:
        heads = jnp.split((normal(x) @ each["attend"]).reshape(BATCH, LENGTH, HEADS, -1), 3, axis=-1)
        return jax.nn.dot_product_attention(*heads, is_causal=True).reshape(x.shape) @ each["join"]

    def loss_of(parameters: Any, words: Any) -> Any:
        x = parameters["words"][words]
        for block in parameters["blocks"]:
            x = x + attended(x, block)
            x = x + jax.nn.gelu(normal(x) @ block["up"]) @ block["down"]
        scores = normal(x) @ parameters["words"].T
        return optax.softmax_cross_entropy_with_integer_labels(scores[:, :-1], words[:, 1:]).mean()

    def update(state: Any, words: Any) -> Any:
        parameters, moments = state
        loss, gradients = jax.value_and_grad(loss_of)(parameters, words)
        changes, moments = optimizer.update(gradients, moments)
        return (optax.apply_updates(parameters, changes), moments), loss

    jitted = jax.jit(update, donate_argnums=0)
    state = (parameters, optimizer.init(parameters))

    def step(words: Any) -> Any:
        nonlocal state
        state, loss = jitted(state, words)
        return loss

    batches = [draw.integers(WORDS, size=(BATCH, LENGTH)) for _ in range(8)]
    return _Training("a transformer", step, batches, BATCH * LENGTH, MOST_LOST)
