"""Why devices were idle: traces made by hand, and real ones of programs with a fault."""

import gc
import time
from collections.abc import Callable
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
from jaxobs.profiles.analysis import analyse
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


def reasons(made: Trace, **host: list[tuple[float, float]]) -> dict[str, float]:
    """Microseconds by reason."""
    return {each.reason: round(each.seconds * 1e6, 3) for each in analyse(made, host=host).profile.idle}


NAMES = {
    "compile": (
        "backend_compile_and_load", "$compiler.py:292 backend_compile_and_load", "$mlir.py:1287 lower_jaxpr_to_module",
    ),
    "checkpoint": ("$checkpointer.py:120 save", "$_npyio_impl.py:756 _savez"),
    "garbage_collection": ("$gc collect",),
    "input": ("$train.py:13 __next__", "$builtins next", "$train.py:7 make_loader"),
    "transfer": ("DevicePutWithSharding", "$array.py:600 _value"),
    "waiting": ("$multihost_utils.py:80 sync_global_devices",),
    "dispatch": ("$time sleep", "train", "Handle inputs", "AllocateOutputBuffersWithInputReuse"),
}  # fmt: skip


@pytest.mark.parametrize("reason", NAMES)
def test_what_the_calling_thread_did_is_the_reason(reason: str) -> None:
    """The rest of the gap is the way to the next program."""
    expected = {"dispatch": 8.0} if reason == "dispatch" else {reason: 6.0, "dispatch": 2.0}
    for name in NAMES[reason]:
        assert reasons(trace(event(name, 2 * US, 8 * US))) == expected, name


WAIT = "$api.py:2479 block_until_ready"
COLLECTION = "$__init__.py:132 _xla_gc_callback"
GAPS: dict[str, tuple[Trace, dict[str, float]]] = {
    "a loader that works ahead keeps nobody waiting": (
        trace(loader=[event("$train.py:13 __next__", 2 * US, 8 * US)]), {"dispatch": 8.0},
    ),
    "XLA's threads move arrays while the caller waits": (
        trace(pool=[event("H2D Dispatch", 2 * US, 8 * US)]), {"transfer": 6.0, "dispatch": 2.0},
    ),
    "a transfer that begins late, and whose end is seen late": (
        trace(event(WAIT, 2 * US, 8 * US), event(WAIT, 8.5 * US, 9 * US), pool=[event("H2D Dispatch", 4 * US, 5 * US)]),
        {"transfer": 6.0, "dispatch": 2.0},
    ),
    "a wait in which the device computes is none for a transfer": (
        trace(event(WAIT, 2 * US, 9.5 * US), pool=[event("H2D Dispatch", 4 * US, 5 * US)]),
        {"dispatch": 7.0, "transfer": 1.0},
    ),
    "a loader that moves arrays is input, and one that compiles is a compilation": (
        trace(
            event("$train.py:13 __next__", 1 * US, 9 * US), event("DevicePut", 2 * US, 4 * US),
            event("backend_compile", 5 * US, 6 * US),
        ),
        {"input": 7.0, "compile": 1.0},
    ),
    "a call that compiles is a compilation from the start": (
        trace(event("PjitFunction(g)", 2 * US, 8 * US), event("backend_compile_and_load", 6 * US, 7 * US)),
        {"compile": 6.0, "dispatch": 2.0},
    ),
    "collections lie between their callbacks": (
        trace(*(event(COLLECTION, at * US, (at + 0.1) * US) for at in (2, 5, 7))),
        {"garbage_collection": 3.1, "dispatch": 4.9},
    ),
    "a device that is alone waits for the others": (
        trace_of(Space((xplanes.host(
            python=[CALL], worker=[operation("dot.1", 0, 10 * US), operation("dot.1", 0, 4 * US, device=1)]
        ),))),
        {"waiting": 6.0},
    ),
    "without the host it is unknown, not dispatch": (
        trace_of(Space((xplanes.host(worker=[operation("dot.1", 0, US), operation("dot.1", 9 * US, 10 * US)]),))),
        {"unknown": 8.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GAPS)
def test_each_moment_of_a_gap_has_one_reason(name: str) -> None:
    made, expected = GAPS[name]
    assert reasons(made) == expected


def test_what_is_known_from_elsewhere_counts() -> None:
    """Waits for input, for one, which a trace without Python's calls can't show."""
    assert reasons(trace(), input=[(2 * US, 5 * US)]) == {"input": 3.0, "dispatch": 5.0}


def test_every_reason_has_a_text() -> None:
    assert set(IDLE_TEXTS) == set(IDLE_REASONS) == {*idle.ORDER, "dispatch", "unknown"}


BIG = np.ones((2000, 2000), np.float32)
PAUSE = 0.02


class Slow:
    def __next__(self) -> None:
        time.sleep(PAUSE)


FAULTS: dict[str, Callable[[], object]] = {
    "dispatch": lambda: time.sleep(PAUSE),
    "input": lambda: next(Slow()),
    "compile": lambda: jax.jit(lambda x: jnp.sin(x) @ x + time.monotonic())(jnp.ones((8, 8))),
    "transfer": lambda: [jax.block_until_ready(jax.device_put(BIG)) for _ in range(4)],
    "garbage_collection": lambda: [gc.collect() for _ in range(3)],
}


@pytest.fixture
def junk() -> list[object]:
    """Objects that a collection has to look through: those of a test's module are frozen."""
    return [[number] for number in range(200_000)]


@pytest.mark.usefixtures("junk")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(fault: str, tmp_path: Path) -> None:
    """Between the steps of a real program, with Python's calls in the trace as JAX records them by default.

    In one of three traces at least: a machine that is busy with something else adds idle time of other reasons.
    """
    step = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jax.block_until_ready(jnp.ones((100, 100)))
    jax.block_until_ready(step(x))
    named: list[str] = []
    while fault not in named and len(named) < 3:
        folder = tmp_path / str(len(named))
        jax.profiler.start_trace(folder)
        for _ in range(4):
            FAULTS[fault]()
            jax.block_until_ready(step(x))
        jax.profiler.stop_trace()
        named.append(reading.read(folder).profile.idle[0].reason)
    assert named[-1] == fault, named
