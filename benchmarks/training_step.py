"""A training step: the throughput that a program loses with all of jaxobs on, compared with one without jaxobs."""

from __future__ import annotations

import contextlib
import itertools
import operator
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Effort, Figure, by_turns, interval

SECONDS = 10.0
"""Seconds of neighbouring steps, and of what jaxobs' threads do meanwhile: two samples, one every 5 s."""
BLOCK = 8
"""Steps in a row of the same kind: some are looked at closely, as in a program that is observed all the time."""
SCRAPES = 5
SCRAPE_INTERVAL = 15.0
"""Seconds between two scrapes of a Prometheus, by default."""
BLOCK_SECONDS, BLOCKS_SECONDS = 2.5, 15.0
"""Seconds of a block with a scrape and a sample, and of all pairs of blocks, where they are measured as well."""
WARM_UP = 10
"""Steps after installing or removing, which throw everything else out of the processor's caches."""
MOST_LOST, MOST_LOST_OF_SHORT = 1.0, 2.0
"""Percent of the throughput of a step of tens of milliseconds, and of the demo's. The programs here compute on all
cores of the host and leave nothing in its caches, so that Python costs 30 to 60 times as much as in a loop: an empty
scope 8 µs, all that jaxobs does in a step about 80."""

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


def run(effort: Effort) -> list[Figure]:
    """Measures what the demo's step and one of a transformer lose; thoroughly, in whole blocks as well."""
    figures: list[Figure] = []
    for training in (_demo(), _transformer()):
        with tempfile.TemporaryDirectory() as folder, _scraper() as scraper, _everything_on(folder) as url:
            neighbours = _neighbours(training, SECONDS * max(1.0, effort.share))
            scrape = _scrape_seconds(scraper, url)
        figures += _lost(training, neighbours, scrape)
        if not effort.stops:
            figures += _lost_in_blocks(training, effort)
    return figures


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """Blocks of steps side by side with everything on, of which some go through jaxobs."""

    step: float
    """Seconds of a step."""
    counted: list[float]
    """Seconds of processor time that the program's thread takes more for a step with calls and steps counted."""
    everything: list[float]
    """Seconds of processor time that it takes more with inputs and losses watched, too."""
    threads: float
    """Share of a core that jaxobs' threads took meanwhile."""


def _lost(training: _Training, found: _Neighbours, scrape: float) -> list[Figure]:
    """Adds up what the program's thread does more in a step, and what jaxobs' threads take of a core at most."""
    added, (low, high) = statistics.median(found.everything), interval(found.everything)
    beside = found.threads + scrape / SCRAPE_INTERVAL
    lost, least, most = (100 * (each / (found.step + each) + beside) for each in (added, low, high))
    name = training.name
    return [
        Figure(name=f"a step of {name}", value=found.step * 1e3, unit="ms", compared=False),
        _microseconds(f"`instrument` and `step` add to a step of {name}", found.counted),
        _microseconds(f"together with `data` and `watch` they add to a step of {name}", found.everything),
        Figure(
            name=f"jaxobs' threads, of a core, next to {name}", value=100 * beside, unit="%", compared=False,
            note=f"{100 * found.threads:.2f} % without scrapes, of {scrape * 1e3:.1f} ms every {SCRAPE_INTERVAL:.0f} s",
        ),
        Figure(
            name=f"{name} loses of its throughput", value=lost, low=least, high=most, unit="%",
            limit=training.most_lost, compared=False, note="what is added to a step, and all that the threads take",
        ),
    ]  # fmt: skip


def _microseconds(name: str, added: list[float]) -> Figure:
    low, high = (each * 1e6 for each in interval(added))
    return Figure(
        name=name, value=statistics.median(added) * 1e6, low=low, high=high, unit="µs", compared=False,
        note=f"{len(added)} pairs of steps",
    )  # fmt: skip


def _scrape_seconds(scraper: subprocess.Popen[str], url: str) -> float:
    """Seconds of processor time that a scrape takes of a process whose program waits."""
    taken = []
    for _ in range(SCRAPES):
        began = time.process_time()
        with _scraped(scraper, url, 0.0):
            pass
        taken.append(time.process_time() - began)
    return statistics.median(taken)


def _lost_in_blocks(training: _Training, effort: Effort) -> list[Figure]:
    """Blocks with everything on, and without jaxobs: nothing is added up, and no bound could be settled in minutes."""
    import jaxobs

    # One compiled program for both.
    step = jaxobs.instrument(training.step, name=training.name)
    _bare(training, WARM_UP)
    seconds = statistics.median(_bare(training, 1) for _ in range(20))
    steps = max(1, round(BLOCK_SECONDS / seconds))
    with tempfile.TemporaryDirectory() as folder, _scraper() as scraper:

        def block(observed: bool) -> float:
            if not observed:
                _bare(training, WARM_UP)
                return _bare(training, steps)
            with _everything_on(folder) as url:
                _observed(training, step, WARM_UP)
                with _scraped(scraper, url, BLOCK_SECONDS / 2):
                    return _observed(training, step, steps)

        def difference(swapped: bool) -> float:
            found = {observed: block(observed) for observed in (swapped, not swapped)}
            return (1 - found[False] / found[True]) * 100

        lost = by_turns(difference, effort, seconds=BLOCKS_SECONDS)
    low, high = interval(lost)
    return [
        Figure(
            name=f"{training.name} loses of its throughput in blocks, each with a scrape and a sample",
            value=statistics.median(lost), low=low, high=high, unit="%", compared=False,
            note=f"{len(lost)} pairs of {steps} steps of {seconds * 1e3:.1f} ms",
        )
    ]  # fmt: skip


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


def _neighbours(training: _Training, seconds: float) -> _Neighbours:
    """Measures steps that follow one another, with everything on and without calling jaxobs."""
    import jaxobs
    from jaxobs.session import lifecycle
    from jaxobs.state.loops import Loops
    from jaxobs.state.store import current

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

    def took(one: Callable[[], None]) -> list[float]:
        times = [time.thread_time()]
        for _ in range(BLOCK):
            one()
            times.append(time.thread_time())
        return [after - before for before, after in itertools.pairwise(times)]

    added: dict[Callable[[], None], list[float]] = {counted: [], everything: []}
    for one in (plain, *added):
        for _ in range(WARM_UP):
            one()
    # What comes first costs more: samples that import modules and read programs, and calls and steps looked at closely.
    session = lifecycle._session
    assert session is not None
    for _ in range(2):
        session.sample()
    current().call_stats(training.name).timed = 0
    for loop in current().part(Loops).all():
        loop.looks = 0
    threads, since, steps = _thread_seconds(), clock(), 0
    while clock() < since + seconds:
        for one, found in added.items():
            first, second, third, fourth = took(plain), took(one), took(one), took(plain)
            found += map(operator.sub, second + third, first + fourth)
            steps += 4 * BLOCK
    passed = clock() - since
    return _Neighbours(passed / steps, added[counted], added[everything], (_thread_seconds() - threads) / passed)


def _thread_seconds() -> float:
    """Seconds of processor time of jaxobs' threads that are there, all together."""
    ours = [each.ident for each in threading.enumerate() if each.name.startswith("jaxobs-")]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(each)) for each in ours if each is not None)


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

    from jaxobs.ops.demo import training

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
