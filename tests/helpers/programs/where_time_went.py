"""A training program whose time is known: an independent stopwatch beside what jaxobs tells, as one line of JSON.

Arguments: directory of the run's file (or `-`), number of steps, number of steps between checkpoints.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

STARTED = time.time()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import jaxobs  # noqa: E402
from jaxobs.facts.events import plain  # noqa: E402
from jaxobs.facts.wall import TimeState  # noqa: E402

STEP, WAIT, SAVE, EVALUATION, IDLE = 0.03, 0.04, 0.15, 0.25, 0.3


class Stopwatch:
    """Seconds by category, measured by the program itself: of the work alone, and of the scope around it as well."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.around: dict[str, float] = {}

    def time(self, category: str, fun: Callable[..., Any], *arguments: Any) -> Any:
        began = time.perf_counter()
        found = fun(*arguments)
        self.seconds[category] = self.seconds.get(category, 0.0) + time.perf_counter() - began
        return found

    @contextlib.contextmanager
    def time_around(self, category: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.around[category] = self.around.get(category, 0.0) + time.perf_counter() - began


def dear(x: jax.Array) -> jax.Array:
    """Takes long to trace and long to compile."""
    time.sleep(0.5)
    for number in range(50):
        x = jnp.sin(x @ x) + number
    return x


def slow_loader(watch: Stopwatch, batches: int) -> Iterator[np.ndarray]:
    """Batches of 1 MiB."""
    noise = np.random.default_rng(0)
    for _ in range(batches):
        watch.time("input_wait", time.sleep, WAIT)
        yield noise.random((128, 1024))


def spent() -> TimeState:
    found = jaxobs.snapshot().wall
    assert found is not None
    return found


def scrape(scrapes: list[TimeState], stop: threading.Event) -> None:
    while not stop.wait(0.02):
        scrapes.append(spent())


def main() -> None:
    folder, steps, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    given: dict[str, Any] = {} if folder == "-" else {"flight_recorder": folder, "run_id": "a run"}
    jaxobs.install(sample_interval=0.1, **given)
    x = jnp.ones((64, 64)).block_until_ready()
    scrapes: list[TimeState] = []
    stop = threading.Event()
    scraper = threading.Thread(target=scrape, args=(scrapes, stop))
    scraper.start()
    watch = Stopwatch()
    before = spent().seconds
    began = time.perf_counter()
    with jaxobs.step("train"):
        traced = watch.time("trace", jax.jit(dear).trace, x)
        lowered = watch.time("trace", traced.lower)
        watch.time("compile", lowered.compile)
    watch.seconds["step"] = time.perf_counter() - began - watch.seconds["trace"] - watch.seconds["compile"]
    watch.around |= watch.seconds
    began, so_far, so_far_around = time.perf_counter(), sum(watch.seconds.values()), sum(watch.around.values())
    batches, each_step = iter(jaxobs.data(slow_loader(watch, steps))), []
    for number in range(1, steps + 1):
        with watch.time_around("input_wait"):
            next(batches)
        earlier = watch.seconds["step"], watch.around["step"]
        with watch.time_around("step"), jaxobs.step("train"):
            watch.time("step", time.sleep, STEP)
        each_step.append((watch.seconds["step"] - earlier[0], watch.around["step"] - earlier[1]))
        if number % every == 0:
            with watch.time_around("checkpoint"), jaxobs.phase("checkpoint"):
                watch.time("checkpoint", time.sleep, SAVE)
    with watch.time_around("eval"), jaxobs.phase("eval"):
        watch.time("eval", time.sleep, EVALUATION)
    time.sleep(IDLE)
    stop.set()
    scraper.join()
    since_main = time.time() - STARTED
    idle = time.perf_counter() - began - (sum(watch.around.values()) - so_far_around)
    found = spent()
    # What passes between a scope and the work in it is the scope's: idle is what is left of either.
    watch.around["idle"] = time.perf_counter() - began - (sum(watch.seconds.values()) - so_far)
    watch.seconds["idle"] = idle
    fell = [
        name for earlier, later in itertools.pairwise(scrapes) for name in later.counted
        if later.counted[name] < earlier.counted[name]
    ]  # fmt: skip
    report = {
        "watch": watch.seconds, "each_step": each_step, "around": watch.around, "before": before,
        "seconds": found.seconds, "wall": found.wall_seconds, "since_main": since_main,
        "since_asked": time.time() - float(os.environ["ASKED"]), "scrapes": len(scrapes), "fell": fell,
        "off": max(abs(sum(each.counted.values()) - each.wall_seconds) for each in scrapes),
        "seen_compiling": sum(each.category == "compile" for each in scrapes), "goodput": found.goodput,
        "lost": found.lost, "run": None if found.run is None else plain(found.run),
        "inputs": [plain(each) for each in jaxobs.snapshot().inputs],
        "errors": jaxobs.snapshot().observer.internal_errors,
    }  # fmt: skip
    print(json.dumps(report), flush=True)
    if os.environ.get("KILLED"):
        time.sleep(0.4)  # a slow tick
        os.kill(os.getpid(), 9)


if __name__ == "__main__":
    main()
