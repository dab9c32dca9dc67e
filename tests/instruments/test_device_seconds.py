"""Device time of sampled calls: the right figure, or none; nobody waits for it and nothing is kept alive by it."""

import gc
import os
import time
import weakref
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.paths import ROOT, TESTS
from helpers.run_programs import run
from helpers.waiting import until

import jaxobs
from jaxobs.base.config import Settings
from jaxobs.facts.functions import DEVICE_SKIPPED, FunctionState
from jaxobs.instruments import device_times
from jaxobs.instruments.device_times import MOST_CALLS, MOST_WAIT_SECONDS, DeviceTimes, Returned
from jaxobs.state import store
from jaxobs.state.call_stats import CallStats


@pytest.fixture(autouse=True)
def often(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call is timed, and windows open one after the other."""
    monkeypatch.setattr(device_times, "BUDGET", 1e3)
    monkeypatch.setattr(device_times, "WINDOW_SECONDS", 0.0)
    store.current().configure(Settings(dispatch_timing="all"))


def state(name: str) -> FunctionState:
    return next(each for each in jaxobs.snapshot().functions if each.name == name)


def told(name: str) -> tuple[int, float]:
    """How many device times a function has, and their sum, once nothing is waited for."""
    settled()
    device = state(name).device
    return (0, 0.0) if device is None else (sum(device.counts), device.sum)


def settled() -> None:
    times = store.current().part(DeviceTimes)
    until(lambda: times.pause() is None)


def work(total: Any, matrix: Any) -> Any:
    """Long enough that a CPU runs it on a thread of its own."""
    for _ in range(8):
        matrix = matrix @ matrix * 0.001
    return total + matrix.sum() * 0


SIZE = 500
MATRIX = np.ones((SIZE, SIZE), np.float32)


def test_a_call_in_a_queue_counts_without_its_time_in_the_queue() -> None:
    """Four calls ahead: the sampled ones take what a stopwatch at the outputs tells, not all that was before them."""
    ours = jaxobs.jit(work, name="queued")
    matrix, total = jax.device_put(MATRIX), jnp.float32(0)
    ours(ours(total, matrix), matrix).block_until_ready()
    for _ in range(20):  # on a busy machine the thread may come too late, and then tells nothing
        before = told("queued")
        began, outputs, ready = time.perf_counter(), [], []
        for _ in range(4):
            total = ours(total, matrix)
            outputs.append(total)
        dispatched = time.perf_counter() - began
        for output in outputs:
            output.block_until_ready()
            ready.append(time.perf_counter())
        count, seconds = (now - then for now, then in zip(told("queued"), before, strict=True))
        found = (
            count == 1  # the second; the others come while it is waited for
            and dispatched < ready[0] - began  # else nothing was queued
            and seconds == pytest.approx(ready[1] - ready[0], rel=0.3, abs=0.004)
            and seconds < 0.8 * (ready[1] - began)
        )
        if found:
            break
    assert found, (count, dispatched, seconds, began, ready)


def test_looks_that_took_long_are_followed_by_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread wakes for each look: of steps that take long there are fewer samples, not more looks."""
    monkeypatch.setattr(device_times, "BUDGET", 1e-6)
    slow = jaxobs.jit(work, name="slow")
    matrix = jnp.eye(256)
    for _ in range(3):
        total = slow(jnp.float32(0), matrix).block_until_ready()
    for _ in range(100):
        for _ in range(3):
            total = slow(total, matrix)
        total.block_until_ready()
        settled()
    assert told("slow")[0] + sum(state("slow").device_skipped.values()) <= MOST_CALLS


def test_a_program_that_runs_within_the_call_has_the_calls_time() -> None:
    """On the CPU one that calls back to the host; each call but that which compiled, and the one before it unknown."""

    def wait(x: Any) -> Any:
        time.sleep(0.02)
        return np.asarray(x)

    ours = jaxobs.jit(lambda x: jax.pure_callback(wait, jax.ShapeDtypeStruct((), np.float32), x), name="inline")
    x = jnp.float32(1)
    began = time.perf_counter()
    for _ in range(5):
        ours(x).block_until_ready()
    took = time.perf_counter() - began
    count, seconds = told("inline")
    assert count == 2 and state("inline").device_skipped == {}
    assert 0.02 <= seconds / count <= took


@pytest.mark.parametrize("installed", [False, True])
def test_calls_that_compiled_have_none(installed: bool) -> None:
    if installed:
        jaxobs.install()
    ours = jaxobs.jit(lambda x: x * 2, name="compiles")
    for size in range(1, 7):
        ours(np.ones(size, np.float32))
    assert told("compiles")[0] == 0
    x = np.ones(6, np.float32)
    if installed:
        for _ in range(3):
            jax.clear_caches()
            ours(x)
        assert told("compiles")[0] == 0
    for _ in range(3):
        ours(x)
    assert told("compiles")[0] >= 1


def test_donated_outputs_stay_right_and_are_lost() -> None:
    def update(total: Any, matrix: Any) -> Any:
        return total + matrix @ matrix * 0.001

    ours, bare = (make(update, donate_argnums=0) for make in (jaxobs.jit, jax.jit))
    name = next(each.name for each in jaxobs.snapshot().functions)
    matrix = jax.device_put(MATRIX)
    expected, total = jnp.zeros((SIZE, SIZE)), jnp.zeros((SIZE, SIZE))
    for _ in range(12):
        expected = bare(expected, matrix)
    for _ in range(12):
        given, total = total, ours(total, matrix)
        assert given.is_deleted()
    settled()
    np.testing.assert_array_equal(total, expected)
    assert set(state(name).device_skipped) <= set(DEVICE_SKIPPED)
    assert sum(state(name).device_skipped.values()) + told(name)[0] >= 1


def test_a_large_output_is_free_as_soon_as_the_program_lets_go() -> None:
    ours = jaxobs.jit(lambda x: (x @ x @ x @ x, x @ x), name="large")
    matrix = jax.device_put(MATRIX)
    jax.block_until_ready([ours(matrix) for _ in range(2)])
    settled()
    gc.disable()
    try:
        outputs = ours(matrix)
        held = [weakref.ref(each) for each in outputs]
        del outputs
        until(lambda: all(each() is None for each in held))  # a look may hold it for an instant
    finally:
        gc.enable()


def test_the_caller_waits_for_nothing() -> None:
    ours = jaxobs.jit(work, name="ahead")
    matrix, total = jax.device_put(MATRIX), jnp.float32(0)
    ours(total, matrix).block_until_ready()
    for _ in range(20):  # on a busy machine the device may be done before this thread goes on
        first = total = ours(total, matrix)
        for _ in range(4):
            total = ours(total, matrix)
        if ahead := not first.is_ready():
            break
        total.block_until_ready()
    assert ahead


def test_the_interpreter_ends_although_an_output_never_comes() -> None:
    done = run(
        """
        import time
        from jaxobs.state import store
        from test_device_seconds import Clock, Output
        stats = store.current().call_stats('f')
        clock = Clock([stats])
        clock.now = time.perf_counter()
        clock.call(stats, Output())
        time.sleep(0.05)
        print(clock.times._running, clock.times.pause() is not None)
        """,
        PYTHONPATH=os.pathsep.join((os.path.dirname(__file__), str(TESTS), str(ROOT))),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True True\n", "")


class _Device(str):
    """Equal by name."""

    platform = "gpu"


class Output:
    """An array of a device that is done when the test says so."""

    def __init__(self, device: str = "gpu:0", ready: bool = False, nbytes: int = 4) -> None:
        self.sharding = SimpleNamespace(device_set=frozenset({_Device(device)}))
        self.ready, self.gone, self.nbytes = ready, False, nbytes

    def is_ready(self) -> bool:
        return self.ready

    def is_deleted(self) -> bool:
        return self.gone


class Clock:
    """Shows calls to a `DeviceTimes` of its own; `now` is the time."""

    def __init__(self, everybody: list[CallStats]) -> None:
        self.times, self.everybody, self.now = DeviceTimes(), everybody, 1.0

    def call(self, stats: CallStats, result: Any, *, began: float | None = None, compiled: int = 0) -> None:
        self.now += 1e-5
        next(stats.counter)
        began = self.now if began is None else began
        self.times.take(Returned(stats, result, began, self.now, self.everybody, 0, compiled))

    def finish(self, output: Output, after: float, pause: float = 1e-4) -> None:
        """Lets an output be there after so many seconds, in which all are asked each `pause`."""
        until = self.now + after
        while self.now + pause < until:
            self.now += pause
            self.times.look()
        output.ready, self.now = True, until
        self.times.look()


def figures(stats: CallStats) -> tuple[int, float, dict[str, int]]:
    device, skipped = stats.device()
    return (0, 0.0, skipped) if device is None else (sum(device.counts), device.sum, skipped)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> tuple[CallStats, CallStats, Clock]:
    """Two functions that have been called before; there is no thread, and the clock stands still."""
    first, second = CallStats(), CallStats()
    for stats in (first, second):
        stats.programs = 0
        stats.time("all")
    clock = Clock([first, second])
    clock.times._running = True
    monkeypatch.setattr(device_times, "perf_counter", lambda: clock.now)
    return first, second, clock


Two = tuple[CallStats, CallStats, Clock]


def figures_after(clock: Clock, calls: Iterable[tuple[CallStats, float]], *devices: str, compiled: bool = False) -> Any:
    """Calls in a queue, each with the seconds after the one before it; what is known of the first one's function."""
    made = list(calls)
    outputs = [Output(*devices[number : number + 1]) for number in range(len(made))]
    for number, ((stats, _), output) in enumerate(zip(made, outputs, strict=True)):
        clock.call(stats, output, compiled=number * compiled)
    for (_, after), output in zip(made, outputs, strict=True):
        clock.finish(output, after)
    return figures(made[0][0])


def test_the_other_functions_call_before_it_is_not_its_time(two: Two) -> None:
    f, g, clock = two
    found = figures_after(clock, [(f, 0.05), (g, 0.1), (f, 0.02)])
    assert figures(g)[:2] == (1, pytest.approx(0.1, abs=0.0005))
    assert found[:2] == (1, pytest.approx(0.02, abs=0.0005))


def test_what_was_not_seen_in_between_makes_it_unknown(two: Two) -> None:
    f, g, clock = two
    outputs = [Output(), Output()]
    clock.call(f, outputs[0])
    next(g.counter)
    clock.call(f, outputs[1])
    for output in outputs:
        clock.finish(output, 0.02)
    assert figures(f)[0] == 0


def test_a_call_around_another_is_measured_from_before_both(two: Two) -> None:
    outer, inner, clock = two
    lead, within, around = Output(), Output(), Output()
    clock.call(outer, lead)
    began = clock.now
    clock.call(inner, within)
    clock.call(outer, around, began=began)
    for output, after in ((lead, 0.02), (within, 0.03), (around, 0.01)):
        clock.finish(output, after)
    assert figures(inner)[:2] == (1, pytest.approx(0.03, abs=0.0005))
    assert figures(outer)[:2] == (1, pytest.approx(0.04, abs=0.0005))


@pytest.mark.parametrize(("devices", "compiled"), [(("gpu:0", "gpu:1"), False), ((), True)])
def test_another_devices_call_and_a_compilation_by_anybody_tell_nothing(
    two: Two, devices: tuple[str, ...], compiled: bool
) -> None:
    f, _, clock = two
    assert figures_after(clock, [(f, 0.01)] * 2, *devices, compiled=compiled) == (0, 0.0, {})


def test_an_output_that_is_lost_gives_no_figure_and_is_counted(two: Two) -> None:
    f, _, clock = two
    for lose in ("deleted", "collected", "late"):
        first, second = Output(nbytes=2**20), Output(nbytes=2**20)
        clock.call(f, first)
        clock.call(f, second)
        if lose == "deleted":
            first.gone = True
        elif lose == "collected":
            del second
        else:
            clock.now += 0.02
        if lose != "collected":
            second.ready = True
        first.ready = True
        clock.times.look()
        del first
        assert clock.times.pause() is None
    assert figures(f) == (0, 0.0, {"deleted": 1, "collected": 1, "late": 1})


def test_an_argument_handed_through_is_not_taken_for_the_end(two: Two) -> None:
    f, _, clock = two
    outputs = [Output(), Output(nbytes=8)]
    for output in outputs:
        clock.call(f, [Output(ready=True), output])
    for output, after in zip(outputs, (0.01, 0.05), strict=True):
        clock.finish(output, after)
    assert figures(f)[:2] == (1, pytest.approx(0.05, abs=0.0005))


def test_a_device_that_was_done_before_anybody_looked_is_unknown(two: Two) -> None:
    """The call took 20 ms and the device was done by then: it may have taken next to nothing."""
    f, _, clock = two
    clock.call(f, Output(ready=True))
    clock.now += 0.02
    clock.call(f, Output(ready=True), began=clock.now - 0.02)
    assert figures(f) == (0, 0.0, {"late": 1})


def test_what_waits_is_bounded_and_given_up_in_the_end(two: Two) -> None:
    f, g, clock = two
    for number in range(100):
        clock.call((f, g)[number == 0], Output())
    assert 2 <= len(clock.times._pending) <= MOST_CALLS
    clock.now += MOST_WAIT_SECONDS + 1
    clock.times.look()
    assert clock.times.pause() is None
    assert figures(f)[2].get("unready", 0) >= 1
