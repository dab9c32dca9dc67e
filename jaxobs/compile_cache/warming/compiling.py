"""Lowers on the caller's thread, where the context is in force, and compiles in parallel, where it costs.

What one signature raises is in its result, and the others go on.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from jaxobs import internals
from jaxobs.base.config import Settings
from jaxobs.base.errors import JaxobsError
from jaxobs.compile_cache.warming import records
from jaxobs.compile_cache.warming.outline import MOST_TEXT, MOST_TOLD
from jaxobs.compile_cache.warming.rebuilding import Arguments, rebuild
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.reasons.known_values import Program
from jaxobs.reasons.naming import function_name
from jaxobs.session import lifecycle
from jaxobs.sources.compilations import Compilations
from jaxobs.state.store import Store

logger = logging.getLogger("jaxobs")

MOST_PARALLEL = 8
MOST_MESSAGE = 300


class Signature:
    """Positional and keyword arguments to compile for: arrays, or `jax.ShapeDtypeStruct` in their places.

    jaxobs.warmup(step, jaxobs.Signature(state, batch, train=False))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        return f"Signature{_describe(self.args, self.kwargs)}"


@dataclass(frozen=True, slots=True)
class Warmed:
    """Result of one signature."""

    function: str
    signature: str
    """The arguments, in short."""
    seconds: float = 0.0
    """Time to lower and compile it, or to load it."""
    cache: str | None = None
    """Result of the persistent cache: `hit`, `miss` or `disabled`; None if it was in this process's memory already, or
    failed."""
    unsaved: str | None = None
    """Why the persistent cache does not have it now, as a sentence; None where it has."""
    error: str | None = None
    """Why it could not be compiled, as a sentence; None where it was."""
    exception: Exception | None = field(default=None, repr=False, compare=False)
    """The error as it was raised."""
    compiled: Any = field(default=None, repr=False, compare=False)
    """JAX's compiled function, which can be called."""


@dataclass(frozen=True)
class Task:
    """A signature of a function that is still to be compiled."""

    fun: Any
    function: str
    arguments: Callable[[], Arguments]
    text: str = "(...)"
    """Text for the signature as long as there are no arguments."""


Progress = Callable[[int, int, Warmed], object]


def warmup(
    fun: Callable[..., Any],
    *signatures: tuple[Any, ...] | Signature | Mapping[str, Any] | str | os.PathLike[str],
    like: tuple[Any, ...] | Signature | None = None,
    parallel: int | None = None,
    progress: Progress | None = None,
) -> list[Warmed]:
    """Compiles `fun` ahead for these signatures, in parallel, so that calls with them find it compiled.

        batch = jax.ShapeDtypeStruct((256, 784), "float32")
        jaxobs.warmup(predict, (params, batch))
        jaxobs.warmup(train_step, "events.jsonl", like=(state, batch))

    Nothing is executed. The persistent cache is filled where there is one, under its usual thresholds; the first call
    in this process neither traces nor compiles.

    Args:
      fun: a function of `jax.jit`, `jaxobs.jit`, `nnx.jit`, `eqx.filter_jit`; a plain one is jitted.
      *signatures: for each, a tuple of arguments, arrays or `jax.ShapeDtypeStruct`; a `jaxobs.Signature` where there
        are keywords; the path of an event log, for all signatures of `fun` in it; or one of these as a mapping.
      like: arguments of an example call, which have what a log cannot hold: metadata that is not a plain value.
      parallel: how many to compile at once; as many as there are cores when absent, 8 at most.
      progress: called with how many are done, how many there are, and what became of the latest.

    Returns:
      What became of each, in their order. One that fails does not stop the others: see `Warmed.error`.

    Raises:
      TypeError, ValueError: `fun` cannot be called, a signature is of another kind, or `parallel` is below 1.
      SettingError: an event log cannot be read.
    """
    if not callable(fun):
        raise TypeError(f"`warmup` needs a function, but got {type(fun).__qualname__}: {fun!r:.80}.")
    if parallel is not None and parallel < 1:
        raise ValueError(f"`parallel` must be at least 1, not {parallel}.")
    name = function_name(fun) or type(fun).__qualname__
    example = None if like is None else _arguments("like", like)
    tasks = [task for each in signatures for task in _tasks(fun, name, each, example)]
    count = itertools.count(1)

    def done(_number: int, warmed: Warmed) -> None:
        if progress is not None:
            progress(next(count), len(tasks), warmed)

    return compile_ahead(tasks, parallel, done)


def _tasks(fun: Any, name: str, given: Any, example: Arguments | None) -> Iterator[Task]:
    if isinstance(given, str | os.PathLike):
        found = [each.signature for each in records.read(given).recorded if records.is_of(each, fun)]
        if not found:
            logger.warning(
                ("The event log %s has no signature of `%s`: there is nothing to compile ahead of time."), given, name
            )
    elif isinstance(given, Mapping):
        found = [given]
    else:
        arguments = _arguments("a signature", given)
        yield Task(fun, name, lambda: arguments)
        return
    like = None if example is None else (example.args, example.kwargs)
    for number, signature in enumerate(found):
        yield recorded_task(fun, name, signature, like, text=f"recorded signature {number + 1} of {len(found)}")


def recorded_task(
    fun: Any,
    name: str,
    signature: Mapping[str, Any],
    like: tuple[Sequence[Any], Mapping[str, Any]] | None = None,
    program: Program | None = None,
    text: str = "(...)",
) -> Task:
    """Returns the task of a recorded signature."""
    return Task(fun, name, lambda: rebuild(signature, fun, like, program), text)


def _arguments(what: str, given: Any) -> Arguments:
    if isinstance(given, Signature):
        return Arguments(given.args, given.kwargs)
    if not isinstance(given, tuple) or hasattr(given, "_fields"):
        raise TypeError(
            f"`warmup` was given {type(given).__qualname__} as {what}. It accepts a tuple of arguments, such as (x,) "
            "for one; a jaxobs.Signature; the path of an event log; or a signature recorded in one."
        )
    return Arguments(given, {})


# ------------------------------------------------------------------------------------------------ compiling


def compile_ahead(
    tasks: Sequence[Task], parallel: int | None = None, done: Callable[[int, Warmed], object] | None = None
) -> list[Warmed]:
    """Compiles each task ahead, and returns the results in order; calls `done` on this thread with each."""
    workers = min(parallel or min(_cores(), MOST_PARALLEL), max(len(tasks), 1))
    results: dict[int, Warmed] = {}
    pending: dict[Future[Warmed], int] = {}

    def finish(number: int, warmed: Warmed) -> None:
        results[number] = warmed
        if done is not None:
            done(number, warmed)

    def collect(fewer_than: int) -> None:
        """Takes the results that are there, and waits until fewer than so many are under way."""
        while pending:
            must_wait = len(pending) >= fewer_than
            ready, _ = wait(pending, timeout=None if must_wait else 0, return_when=FIRST_COMPLETED)
            for each in ready:
                finish(pending.pop(each), each.result())
            if not ready:
                return

    pool = ThreadPoolExecutor(workers, thread_name_prefix="jaxobs-warmup")
    with _Watch() as watch:
        try:
            for number, task in enumerate(tasks):
                # Lowered programs are large: no more of them than the pool will soon take.
                collect(2 * workers)
                since, lowered = time.time(), _lower(task)
                if isinstance(lowered, Warmed):
                    finish(number, lowered)
                else:
                    pending[pool.submit(_compile, task, lowered, watch.hand_over(since), watch)] = number
            collect(1)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return [results[number] for number in range(len(tasks))]


@dataclass(frozen=True)
class _Lowered:
    program: Any
    text: str
    seconds: float


def _lower(task: Task) -> Warmed | _Lowered:
    started, text = time.perf_counter(), task.text
    try:
        made = task.arguments()
        text = _describe(made.args, made.kwargs)
        fun = task.fun if callable(getattr(task.fun, "lower", None)) else internals.own_jit()(task.fun)
        with made.scope():
            args, kwargs = _arrays(fun, made.args, made.kwargs)
            program = fun.lower(*args, **kwargs)
    except Exception as error:
        return _failed(task, text, started, error)
    return _Lowered(program, text, time.perf_counter() - started)


def _compile(task: Task, lowered: _Lowered, handed_over: Sequence[Callable[[], None]], watch: _Watch) -> Warmed:
    started = time.perf_counter() - lowered.seconds
    for take_over in handed_over:
        take_over()
    watch.forget()
    try:
        compiled = lowered.program.compile()
    except Exception as error:
        return _failed(task, lowered.text, started, error)
    seconds, event = time.perf_counter() - started, watch.seen()
    cache, unsaved = (None, None) if event is None else (event.cache, event.uncached_detail or event.uncached_because)
    return Warmed(task.function, lowered.text, seconds, cache, unsaved, compiled=compiled)


def _failed(task: Task, text: str, started: float, error: Exception) -> Warmed:
    message = " ".join(str(error).split())
    if len(message) > MOST_MESSAGE:
        message = f"{message[: MOST_MESSAGE - 1]}…"
    if not isinstance(error, JaxobsError):
        message = f"{type(error).__name__}: {message}"
    return Warmed(task.function, text, time.perf_counter() - started, error=message, exception=error)


def _cores() -> int:
    affinity: Callable[[int], Iterable[int]] | None = getattr(os, "sched_getaffinity", None)
    return os.cpu_count() or 1 if affinity is None else len(list(affinity(0)))


# ---------------------------------------------------------------------------------------- the persistent cache


class _Watch:
    """The source of compilations with a store of its own, while it is entered."""

    def __init__(self) -> None:
        self._thread = threading.local()
        store = Store(Settings())
        store.subscribe(self._on_event)
        self._source = Compilations(store)

    def __enter__(self) -> _Watch:
        self._source.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._source.stop()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Compilation):
            self._thread.latest = event

    def hand_over(self, since: float) -> list[Callable[[], None]]:
        """To be called on the thread that compiles what this one has lowered since then."""
        return [self._source.hand_over(since), *lifecycle.hand_over(since)]

    def forget(self) -> None:
        """Before a compile of this thread."""
        self._thread.latest = None

    def seen(self) -> Compilation | None:
        """Returns the latest compilation of this thread; None where it was in the memory of the process already."""
        latest: Compilation | None = self._thread.latest
        return latest


# ---------------------------------------------------------------------------------------------- arguments


def _describe(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Returns the arguments in short: `(TrainState of 14 arrays, {float32[64,64], int32[64]}, train=True)`."""
    parts = [_told(each) for each in args] + [f"{name}={_told(each)}" for name, each in kwargs.items()]
    text = f"({', '.join(parts)})"
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 2]}…)"


def _told(argument: Any) -> str:
    from jax import tree_util

    leaves, tree = tree_util.tree_flatten(argument)
    if tree_util.treedef_is_leaf(tree):
        return _leaf(argument)
    if len(leaves) <= MOST_TOLD:
        return f"{{{', '.join(map(_leaf, leaves))}}}"
    return f"{type(argument).__name__} of {len(leaves)} arrays"


def _leaf(value: Any) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        return f"{dtype}[{','.join(map(str, shape))}]"
    # Of others the type: what they hold may be large, or nobody's business.
    return repr(value) if isinstance(value, bool | int) or value is None else type(value).__name__


def _arrays(fun: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments as `fun.lower` takes them; zeros for Equinox, to which all but arrays is static."""
    if not type(fun).__module__.startswith("equinox."):
        return tuple(args), dict(kwargs)
    from jax import tree_util

    made: tuple[tuple[Any, ...], dict[str, Any]] = tree_util.tree_map(_zeros, (tuple(args), dict(kwargs)))
    return made


def _zeros(spec: Any) -> Any:
    import jax
    import numpy as np

    if not isinstance(spec, jax.ShapeDtypeStruct):
        return spec
    if jax.dtypes.issubdtype(spec.dtype, jax.dtypes.prng_key):
        data = jax.eval_shape(jax.random.key_data, spec)
        name = jax.eval_shape(lambda key: key, spec).dtype
        return jax.random.wrap_key_data(np.zeros(data.shape, data.dtype), impl=name._impl.name)
    # Of arrays with a weak type only scalars can be made in public.
    weak = spec.weak_type and spec.shape == ()
    zeros = jax.numpy.asarray(np.zeros((), spec.dtype).item() if weak else np.zeros(spec.shape, spec.dtype))
    return zeros if spec.sharding is None else jax.device_put(zeros, spec.sharding)
