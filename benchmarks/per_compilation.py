"""Per compilation: the time of our own work in JAX's listeners, beside the compile that it describes.

The listeners are timed while real programs compile, with the event log on a real file. Our time is that of the thread
on the processor: all our work is on the thread that compiles, and other programs do not count.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.harness import Figure, quantile, without_gc

ENVIRONMENT = {"JAX_ENABLE_COMPILATION_CACHE": "0"}

LEAVES = 200
ROUNDS = 24
QUICK_ROUNDS = 8
DEMO_SHAPES = (128, 92, 64, 48, 32)


@dataclass
class Work:
    """Our seconds on the processor, and the compilations that they were spent on."""

    seconds: float = 0.0
    hashing: float = 0.0
    """Of these, what the hash of the program took, which grows with the program."""
    compilations: list[Any] = field(default_factory=list)

    @property
    def compile_seconds(self) -> float:
        """What the compilations took themselves, all phases."""
        return sum(sum(each.phases.values()) for each in self.compilations)


class Watch:
    """A compilations source, with an event log, whose listeners are timed."""

    def __init__(self, folder: str) -> None:
        from jaxobs import internals
        from jaxobs.config import Settings
        from jaxobs.exporters.event_log import EventLog
        from jaxobs.internals import Listeners
        from jaxobs.sources.compilations import Compilations
        from jaxobs.store import Store

        self.work = Work()
        self._internals: Any = internals
        self._fingerprint = internals.fingerprint
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
            started = time.thread_time()
            callback(*args, **kwargs)
            self.work.seconds += time.thread_time() - started

        return timed

    def _hash(self, module: Any) -> str | None:
        started = time.thread_time()
        result = self._fingerprint(module)
        self.work.hashing += time.thread_time() - started
        return result

    @contextmanager
    def during(self) -> Iterator[Work]:
        """What is compiled in the block, and our work for it."""
        self.work = work = Work()
        yield work
        self.work = Work()

    def __enter__(self) -> Watch:
        self._internals.fingerprint = self._hash
        self._source.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._source.stop()
        self._internals.fingerprint = self._fingerprint
        self._log.close()


def run(quick: bool) -> list[Figure]:
    """Milliseconds for a pytree of 200 leaves, and the share of the demo's compile time."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with tempfile.TemporaryDirectory() as folder, Watch(folder) as watch, without_gc():
        return [*_pytree(watch, rounds), *_demo(watch)]


def _pytree(watch: Watch, rounds: int) -> list[Figure]:
    """Programs with 200 arrays: one that is little more than its signature, an update, and a whole gradient step."""
    import jax
    import jax.numpy as jnp

    def small(parameters: Any, batch: Any) -> Any:
        return batch * parameters["layer_0"].sum()

    def update(parameters: Any, gradients: Any, rates: Any) -> Any:
        rate = rates.mean()
        return jax.tree.map(lambda parameter, gradient: parameter - rate * gradient, parameters, gradients)

    def step(parameters: Any, batch: Any) -> Any:
        def loss(parameters: Any) -> Any:
            return sum((batch.mean() * each).sum() for each in parameters.values())

        return update(parameters, jax.grad(loss)(parameters), jnp.ones(1))

    half, whole = ({f"layer_{number}": jnp.ones((8, 8)) for number in range(n)} for n in (LEAVES // 2, LEAVES))
    works = _again_and_again(watch, rounds, small, whole)
    total, hashing = (quantile(values, 0.2) * 1e3 for values in _split(works))
    return [
        Figure(
            name=f"our work for a pytree of {LEAVES} arrays",
            value=total,
            unit="ms",
            limit=1.0,
            note=f"of a small program; {hashing:.2f} ms of it to hash the program",
        ),
        _share(f"an update of {LEAVES} arrays", _again_and_again(watch, rounds, update, half, half)),
        _share(f"a gradient step with {LEAVES} arrays", _again_and_again(watch, rounds, step, whole)),
    ]


def _split(works: list[Work]) -> tuple[list[float], list[float]]:
    return [each.seconds for each in works], [each.hashing for each in works]


def _share(of: str, works: list[Work]) -> Figure:
    """Our part of the time that a program's compilations took."""
    total, hashing = (quantile(values, 0.2) * 1e3 for values in _split(works))
    compiling = statistics.median(each.compile_seconds for each in works) * 1e3
    return Figure(
        name=f"share of the compile time of {of}",
        value=statistics.median(each.seconds / each.compile_seconds for each in works) * 100,
        unit="%",
        limit=1.0,
        note=f"{total:.2f} ms beside {compiling:.0f} ms; {hashing:.2f} ms of it to hash the program",
    )


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
        _share("the demo's train step", [step]),
        Figure(
            name="share of the compile time of the whole demo",
            value=everything.seconds / everything.compile_seconds * 100,
            unit="%",
            limit=1.0,
            note=f"{len(everything.compilations)} programs, most of them single operations; "
            f"{everything.seconds * 1e3:.1f} ms beside {everything.compile_seconds:.2f} s",
        ),
    ]
