"""Per compilation: the time of our own work in JAX's listeners, beside the compile that it describes.

The listeners are timed while real programs compile, with the event log on a real file.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from benchmarks.harness import Figure, quantile, without_gc

ENVIRONMENT = {"JAX_ENABLE_COMPILATION_CACHE": "0"}

LEAVES = 200
ROUNDS = 24
QUICK_ROUNDS = 8
DEMO_SHAPES = (128, 92, 64, 48, 32)


@dataclass
class Work:
    """Seconds of ours, and the compilations that they were spent on."""

    seconds: float = 0.0
    compilations: list[Any] = field(default_factory=list)

    @property
    def compile_seconds(self) -> float:
        """What the compilations took themselves, all phases."""
        return sum(sum(each.phases.values()) for each in self.compilations)


class Watch:
    """A compilations source, with an event log, whose listeners are timed."""

    def __init__(self, folder: str) -> None:
        from jaxobs.config import Settings
        from jaxobs.exporters.event_log import EventLog
        from jaxobs.internals import Listeners
        from jaxobs.sources.compilations import Compilations
        from jaxobs.store import Store

        self.work = Work()
        store = Store(Settings())
        self._log = EventLog(store, store.settings, os.path.join(folder, "events.jsonl"))
        store.subscribe(self._note)
        self._source = Compilations(store)
        listeners = self._source.listeners
        self._source.listeners = Listeners(*map(self._timed, (listeners.event, listeners.ended, listeners.started)))

    def _note(self, event: Any) -> None:
        if event.kind == "compilation":
            self.work.compilations.append(event)

    def _timed(self, callback: Callable[..., None]) -> Callable[..., None]:
        def timed(*args: Any, **kwargs: Any) -> None:
            started = perf_counter()
            callback(*args, **kwargs)
            self.work.seconds += perf_counter() - started

        return timed

    @contextmanager
    def during(self) -> Iterator[Work]:
        """What is compiled in the block, and our work for it."""
        self.work = Work()
        yield self.work

    def __enter__(self) -> Watch:
        self._source.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._source.stop()
        self._log.close()


def run(quick: bool) -> list[Figure]:
    """Milliseconds for a pytree of 200 leaves, and the share of the demo's compile time."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with tempfile.TemporaryDirectory() as folder, Watch(folder) as watch, without_gc():
        return [*_pytree(watch, rounds), *_demo(watch)]


def _pytree(watch: Watch, rounds: int) -> list[Figure]:
    """Programs of 200 arguments: an update, which is little more than its signature, and a whole gradient step."""
    import jax
    import jax.numpy as jnp

    def update(parameters: Any, gradients: Any, rates: Any) -> Any:
        rate = rates.mean()
        return jax.tree.map(lambda parameter, gradient: parameter - rate * gradient, parameters, gradients)

    def step(parameters: Any, batch: Any) -> Any:
        def loss(parameters: Any) -> Any:
            return sum((batch.mean() * each).sum() for each in parameters.values())

        return update(parameters, jax.grad(loss)(parameters), jnp.ones(1))

    half, whole = ({f"layer_{number}": jnp.ones((8, 8)) for number in range(n)} for n in (LEAVES // 2, LEAVES))
    updates = _again_and_again(watch, rounds, update, half, half)
    steps = _again_and_again(watch, rounds, step, whole)
    return [
        Figure(
            name=f"our work for an update with {LEAVES} arguments",
            value=quantile([each.seconds for each in updates], 0.3) * 1e3,
            unit="ms",
            limit=1.0,
            note=f"its compile took {statistics.median(each.compile_seconds for each in updates) * 1e3:.0f} ms",
        ),
        Figure(
            name=f"share of the compile time of a gradient step with {LEAVES} arguments",
            value=statistics.median(each.seconds / each.compile_seconds for each in steps) * 100,
            unit="%",
            limit=1.0,
            note=f"{quantile([each.seconds for each in steps], 0.3) * 1e3:.2f} ms beside "
            f"{statistics.median(each.compile_seconds for each in steps) * 1e3:.0f} ms",
        ),
    ]


def _again_and_again(watch: Watch, rounds: int, program: Callable[..., Any], *arguments: Any) -> list[Work]:
    """Our work each time that the program compiles because its last argument has another size."""
    import jax
    import jax.numpy as jnp

    jitted = jax.jit(program)
    works = []
    for size in range(1, rounds + 2):
        last = jnp.ones(size)
        with watch.during() as work:
            jax.block_until_ready(jitted(*arguments, last))
        assert [each.cause for each in work.compilations] == ["first_call" if size == 1 else "shape"]
        works.append(work)
    return works[1:]


def _demo(watch: Watch) -> list[Figure]:
    """The demo's model and train step, with batches of several sizes."""
    from jaxobs.demo import training

    digits, _ = training.load()
    with watch.during() as everything:
        model, optimizer = training.new_model()
        for size in DEMO_SHAPES:
            training.train_step(model, optimizer, digits.images[:size], digits.labels[:size], 0.5)
    with watch.during() as step:
        training.train_step(model, optimizer, digits.images[:17], digits.labels[:17], 0.5)
    return [
        Figure(
            name="share of the compile time of the demo's train step",
            value=step.seconds / step.compile_seconds * 100,
            unit="%",
            limit=1.0,
            note=f"{step.seconds * 1e3:.2f} ms beside {step.compile_seconds * 1e3:.0f} ms",
        ),
        Figure(
            name="share of the compile time of the whole demo",
            value=everything.seconds / everything.compile_seconds * 100,
            unit="%",
            limit=1.0,
            note=f"{len(everything.compilations)} programs, most of them single operations; "
            f"{everything.seconds * 1e3:.1f} ms beside {everything.compile_seconds:.2f} s",
        ),
    ]
