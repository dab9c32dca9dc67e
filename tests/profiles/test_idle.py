"""Why devices were idle: traces made by hand, and real ones of programs with a fault."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import xplanes
from helpers.xplanes import event, operation

from jaxobs.facts.profiles import IDLE_REASONS
from jaxobs.internals.xplane import space
from jaxobs.internals.xplane.space import Event, Space
from jaxobs.profiles import idle, reading
from jaxobs.profiles.analysis import profile_of
from jaxobs.profiles.tracks import Trace, trace_of, wanted
from jaxobs.views.profile.text import IDLE_TEXTS

US = 1000.0
CALL = event("PjitFunction(f)", 0, US)


def trace(*did: Event, **others: list[Event]) -> Trace:
    """Returns a device that is busy in the first and the last of 10 microseconds, and what the calling thread did
    between."""
    made = xplanes.host(
        python=[CALL, *did], worker=[operation("dot.1", 0, US), operation("dot.1", 9 * US, 10 * US, run=2)], **others
    )
    return trace_of(space.read(xplanes.space(Space((made,))), wanted))


def reasons(made: Trace) -> dict[str, float]:
    """Microseconds by reason."""
    return {each.reason: round(each.seconds * 1e6, 3) for each in profile_of(made).idle}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("backend_compile_and_load", "compile"),
        ("$compiler.py:292 backend_compile_and_load", "compile"),
        ("$mlir.py:1287 lower_jaxpr_to_module", "compile"),
        ("$checkpointer.py:120 save", "checkpoint"),
        ("$_npyio_impl.py:756 _savez", "checkpoint"),
        ("$gc collect", "garbage_collection"),
        ("$train.py:13 __next__", "input"),
        ("$builtins next", "input"),
        ("$train.py:7 make_loader", "input"),
        ("DevicePutWithSharding", "transfer"),
        ("$array.py:600 _value", "transfer"),
        ("$multihost_utils.py:80 sync_global_devices", "waiting"),
        ("$time sleep", "dispatch"),
        ("train", "dispatch"),
        ("Handle inputs", "dispatch"),
        ("AllocateOutputBuffersWithInputReuse", "dispatch"),
    ],
)
def test_what_the_calling_thread_did_is_the_reason(name: str, reason: str) -> None:
    """The rest of the gap is the way to the next program."""
    found = reasons(trace(event(name, 2 * US, 8 * US)))
    assert found == ({"dispatch": 8.0} if reason == "dispatch" else {reason: 6.0, "dispatch": 2.0})


def test_what_other_threads_do_is_none_but_for_transfers() -> None:
    """A loader that works ahead keeps nobody waiting; XLA's threads move arrays while the caller waits."""
    loader = [event("$train.py:13 __next__", 2 * US, 8 * US)]
    assert reasons(trace(loader=loader)) == {"dispatch": 8.0}
    assert reasons(trace(pool=[event("H2D Dispatch", 2 * US, 8 * US)])) == {"transfer": 6.0, "dispatch": 2.0}


def test_one_moment_has_one_reason() -> None:
    """A loader that moves arrays is input, and one that compiles is a compilation."""
    made = trace(
        event("$train.py:13 __next__", 1 * US, 9 * US),
        event("DevicePut", 2 * US, 4 * US),
        event("backend_compile", 5 * US, 6 * US),
    )
    assert reasons(made) == {"input": 7.0, "compile": 1.0}


def test_a_call_that_compiles_is_a_compilation_from_the_start() -> None:
    """Without Python's calls, tracing is the call's own time."""
    made = trace(event("PjitFunction(g)", 2 * US, 8 * US), event("backend_compile_and_load", 6 * US, 7 * US))
    assert reasons(made) == {"compile": 6.0, "dispatch": 2.0}


def test_collections_lie_between_their_callbacks() -> None:
    """JAX has itself called before and after each."""
    mark = "$__init__.py:132 _xla_gc_callback"
    made = trace(event(mark, 2 * US, 2.1 * US), event(mark, 5 * US, 5.1 * US), event(mark, 7 * US, 7.1 * US))
    assert reasons(made) == {"garbage_collection": 3.1, "dispatch": 4.9}


def test_a_device_that_is_alone_waits_for_the_others() -> None:
    """The host's own doings have precedence."""
    made = xplanes.host(
        python=[CALL],
        worker=[operation("dot.1", 0, 10 * US), operation("dot.1", 0, 4 * US, device=1)],
    )
    assert reasons(trace_of(Space((made,)))) == {"waiting": 6.0}


def test_a_trace_without_the_host_has_no_reasons() -> None:
    """Unknown, not dispatch."""
    made = xplanes.host(worker=[operation("dot.1", 0, US), operation("dot.1", 9 * US, 10 * US)])
    assert reasons(trace_of(Space((made,)))) == {"unknown": 8.0}


def test_what_is_known_from_elsewhere_counts() -> None:
    """Such as waits for input, which a trace without Python's calls can't show."""
    profile = profile_of(trace(), host={"input": [(2 * US, 5 * US)]})
    assert {each.reason: round(each.seconds * 1e6, 3) for each in profile.idle} == {"input": 3.0, "dispatch": 5.0}


def test_every_reason_has_a_text() -> None:
    assert set(IDLE_TEXTS) == set(IDLE_REASONS) == {*idle.ORDER, "dispatch", "unknown"}


# ------------------------------------------------------------------------------------------------- real programs

BIG = np.ones((2000, 2000), np.float32)
JUNK = [[number] for number in range(200_000)]
PAUSE = 0.02


class Slow:
    """A data set that takes its time."""

    def __iter__(self) -> Iterator[np.ndarray]:
        return self

    def __next__(self) -> np.ndarray:
        time.sleep(PAUSE)
        return np.ones(8)


def compile_something() -> None:
    """A function that nobody has seen."""
    jax.jit(lambda x: jnp.sin(x) @ x + time.monotonic())(jnp.ones((8, 8)))


FAULTS: dict[str, Callable[[], object]] = {
    "dispatch": lambda: time.sleep(PAUSE),
    "input": lambda: next(Slow()),
    "compile": compile_something,
    "transfer": lambda: [jax.block_until_ready(jax.device_put(BIG)) for _ in range(4)],
    "garbage_collection": lambda: [gc.collect() for _ in range(3)],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(fault: str, tmp_path: Path) -> None:
    """Between the steps of a real program, with Python's calls in the trace as JAX records them by default."""
    step = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jax.block_until_ready(jnp.ones((100, 100)))
    jax.block_until_ready(step(x))
    jax.profiler.start_trace(tmp_path)
    for _ in range(4):
        FAULTS[fault]()
        jax.block_until_ready(step(x))
    jax.profiler.stop_trace()
    first = reading.read(tmp_path).profile.idle[0]
    assert first.reason == fault
