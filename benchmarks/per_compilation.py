"""Per compilation: the time that jaxobs spends in JAX's listeners, compared with the compile time.

The listeners are timed while real programs compile, with the event log on a real file. Our time is that of the thread
on the processor: all our work is on the thread that compiles, and other programs do not count.
"""

from __future__ import annotations

import functools
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from benchmarks.harness import Effort, Figure, quantile, without_gc

ENVIRONMENT = {"JAX_ENABLE_COMPILATION_CACHE": "0"}

LEAVES = 200
MANY_LEAVES = 10_000
ROUNDS = 10
EXPENSIVE_ROUNDS = 4
"""Rounds of the programs that take long to compile and have no bound."""
DEMO_SHAPES = (128, 92, 64, 48, 32)


@dataclass
class Work:
    """Our seconds on the processor, and the compilations that they were spent on."""

    seconds: float = 0.0
    parts: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds of each part of our work."""
    compilations: list[Any] = field(default_factory=list)

    @property
    def compile_seconds(self) -> float:
        """Seconds of the compilations themselves, all phases."""
        return sum(sum(each.phases.values()) for each in self.compilations)

    @property
    def explaining(self) -> float:
        """Seconds for the signature, its comparison with earlier ones, and the event with its line in the log."""
        return self.parts["signature"] + self.parts["comparison"] + self.parts["log"]


class Watch:
    """A compilations source, with an event log, whose listeners are timed, and within them the parts of their work."""

    def __init__(self, folder: str) -> None:
        from jaxobs import internals
        from jaxobs.base.config import Settings
        from jaxobs.exporters.event_log import EventLog
        from jaxobs.internals import Listeners
        from jaxobs.reasons import signature
        from jaxobs.reasons.explanation import Explainer
        from jaxobs.sources.compilations import Compilations
        from jaxobs.state.store import Store

        self.work = Work()
        store = Store(Settings())
        self._log = EventLog(store, store.settings, os.path.join(folder, "events.jsonl"))
        store.subscribe(self._note)
        self._source = Compilations(store)
        listeners = self._source.listeners
        self._source.listeners = Listeners(
            *(self._timed(each, "all") for each in (listeners.event, listeners.ended, listeners.started) if each)
        )
        self._parts: list[tuple[Any, str, str]] = [
            (signature, "take", "signature"),
            (Explainer, "explain", "comparison"),
            (store, "record", "log"),
            (internals, "identify", "hash"),
        ]
        self._undo = ExitStack()

    def _note(self, event: Any) -> None:
        if event.kind == "compilation":
            self.work.compilations.append(event)

    def _timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.thread_time()
            result = function(*args, **kwargs)
            took = time.thread_time() - started
            if part == "all":
                self.work.seconds += took
            else:
                self.work.parts[part] += took
            return result

        return timed

    @contextmanager
    def during(self) -> Iterator[Work]:
        """Measures what is compiled in the block, and our work for it."""
        self.work = work = Work()
        yield work
        self.work = Work()

    def __enter__(self) -> Watch:
        for owner, name, part in self._parts:
            self._undo.enter_context(mock.patch.object(owner, name, self._timed(getattr(owner, name), part)))
        self._source.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._source.stop()
        self._undo.close()
        self._log.close()


def run(effort: Effort) -> list[Figure]:
    """Milliseconds for a pytree of 200 leaves, and the share of the demo's compile time."""
    rounds = effort.rounds(ROUNDS)
    with tempfile.TemporaryDirectory() as folder, Watch(folder) as watch, without_gc():
        return [*_pytree(watch, rounds, effort.rounds(EXPENSIVE_ROUNDS)), _many_arrays(rounds), *_demo(watch)]


def _pytree(watch: Watch, rounds: int, few: int) -> list[Figure]:
    """Programs with 200 arrays, each compiled anew for another shape of the last argument."""
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
    works = _again_and_again(watch, rounds, update, half, half)
    return [
        Figure(
            name=f"signature, comparison and log line for {LEAVES} arrays",
            value=_milliseconds(each.explaining for each in works),
            unit="ms",
            limit=1.0,
        ),
        _share(f"a small program with {LEAVES} arrays", _again_and_again(watch, few, small, whole), None),
        _share(f"an update of {LEAVES} arrays", works, None),
        _share(f"a gradient step with {LEAVES} arrays", _again_and_again(watch, few, step, whole), None),
    ]


def _many_arrays(rounds: int) -> Figure:
    """Signatures of a pytree of 10,000 arrays, each compared with the earlier ones; nothing is compiled."""
    import jax.numpy as jnp

    from jaxobs.internals import Call
    from jaxobs.reasons import signature
    from jaxobs.reasons.explanation import Explainer

    def step(parameters: Any, batch: Any) -> None:
        """Two arguments."""

    parameters = {f"layer_{number}": jnp.ones((8, number % 20)) for number in range(MANY_LEAVES)}
    explainer = Explainer()
    seconds = []
    for size in range(1, rounds + 2):
        call = Call(step, step, (parameters, jnp.ones(size)), {})
        started = time.thread_time()
        explained = explainer.explain("step", call, signature.take(call))
        seconds.append(time.thread_time() - started)
        assert explained.cause == ("first_call" if size == 1 else "shape")
    return Figure(
        name=f"signature and comparison for {MANY_LEAVES:,} arrays",
        value=_milliseconds(seconds[1:]),
        unit="ms",
        limit=20.0,
    )


def _milliseconds(seconds: Iterable[float]) -> float:
    return quantile(list(seconds), 0.2) * 1e3


def _share(of: str, works: list[Work], limit: float | None) -> Figure:
    """Our part of the time that a program's compilations took."""
    ours = _milliseconds(each.seconds for each in works)
    hashing = _milliseconds(each.parts["hash"] for each in works)
    compiling = statistics.median(each.compile_seconds for each in works) * 1e3
    return Figure(
        name=f"jaxobs' share of the compile time of {of}",
        value=statistics.median(each.seconds / each.compile_seconds for each in works) * 100,
        unit="%",
        limit=limit,
        note=f"{ours:.2f} ms vs. {compiling:.0f} ms; {hashing:.2f} ms of it to hash the program",
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
    from jaxobs.ops.demo import training

    digits, _ = training.load()
    with watch.during() as start:
        model, optimizer = training.new_model()
    steps = []
    for size in DEMO_SHAPES:
        with watch.during() as step:
            training.train_step(model, optimizer, digits.images[:size], digits.labels[:size], 0.5)
        steps.append(step)
    seconds = sum(each.seconds for each in (start, *steps))
    compile_seconds = sum(each.compile_seconds for each in (start, *steps))
    programs = sum(len(each.compilations) for each in (start, *steps))
    return [
        _share("the demo's train step", steps, 1.0),
        Figure(
            name="jaxobs' share of the compile time of the whole demo",
            value=seconds / compile_seconds * 100,
            unit="%",
            limit=1.0,
            note=f"{programs} programs, most of them single operations; "
            f"{seconds * 1e3:.1f} ms vs. {compile_seconds:.2f} s",
        ),
    ]
