"""The store: exact counts, bounds with what they cut off, snapshots that are whole, and a child's fresh start."""

import dataclasses
import os
import threading
from typing import Any

import pytest
from helpers.made_by_hand import compilation, full_store
from helpers.threads import at_once, elsewhere

from jaxobs import internals
from jaxobs.base import guard
from jaxobs.base.config import Settings
from jaxobs.facts.compilations import EAGER, OTHER, CacheLookup, OpenCompilation
from jaxobs.facts.events import Event
from jaxobs.facts.memory import DeviceMemory, DeviceState
from jaxobs.state import store as stores
from jaxobs.state.call_stats import MOST_ERROR_TYPES, MOST_LABEL, CallStats, MutableHistogram
from jaxobs.state.parts import MOST_HISTORY, MOST_NOTES, RECENT_HISTORY
from jaxobs.state.store import Store

pytestmark = pytest.mark.usefixtures("fresh")


def _by_name(store: Store) -> dict[str, Any]:
    return {function.name: function for function in store.snapshot().functions}


def test_events_are_numbered_without_gaps_and_marked_with_the_process() -> None:
    """From 1, whoever records; the pid and the index come from the store, not from the source."""
    store = Store()
    recorded = [store.record(compilation(pid=1, sequence=99)) for _ in range(3)]
    assert [event.sequence for event in recorded] == [1, 2, 3]
    assert {event.pid for event in recorded} == {os.getpid()}
    assert store.events()[0] == recorded


def test_numbers_are_exact_when_sixteen_threads_record() -> None:
    store = Store(Settings(max_events=100_000))
    at_once(16, lambda _: [store.record(compilation()) for _ in range(250)])
    events, newest, lost = store.events()
    assert [event.sequence for event in events] == list(range(1, 4001))
    assert (newest, lost) == (4000, 0)
    assert _by_name(store)["train.step"].compilations == {"first_call": {"disabled": 4000}}


def test_the_ring_keeps_the_latest_of_each_kind_and_tells_how_many_are_gone() -> None:
    """A busy kind does not push out a rare one; `lost` counts what came after `since` and is no longer there."""
    store = Store(Settings(max_events=5))
    store.record(CacheLookup(time=1.0, function="f", result="miss"))
    for _ in range(12):
        store.record(compilation())

    def found(**chosen: Any) -> tuple[list[int], int, int]:
        events, newest, lost = store.events(**chosen)
        return [event.sequence for event in events], newest, lost

    assert found() == ([1, 9, 10, 11, 12, 13], 13, 7)
    assert (store.events(since=8)[2], store.events(since=6)[2]) == (0, 2)
    assert found(since=13) == found(since=1000) == found(kind="step") == ([], 13, 0)
    assert found(kind="cache_lookup") == ([1], 13, 0)
    assert found(kind="compilation") == ([9, 10, 11, 12, 13], 13, 7)
    store.configure(Settings(max_events=4))  # takes effect at once
    assert found() == ([1, 10, 11, 12, 13], 13, 8)
    store.record(CacheLookup(time=2.0, function="f", result="miss"))
    assert store.events(since=9, kind="compilation")[2] == 0


def test_subscribers_may_raise_record_and_get_out_while_they_are_called() -> None:
    """An error of one of them is counted; the recording thread and the other subscribers go on."""
    guard.raise_internal_errors(False)
    store, seen, once = Store(), list[int](), list[int]()

    def broken(event: Event) -> None:
        raise RuntimeError("the exporter is broken")

    def answer(event: Event) -> None:
        if event.kind == "compilation":
            store.record(CacheLookup(time=1.0, function="f", result="miss"))

    def first(event: Event) -> None:
        once.append(event.sequence)
        out()

    store.subscribe(broken)
    out = store.subscribe(first)
    store.subscribe(answer)
    store.subscribe(lambda event: seen.append(event.sequence))
    for _ in range(2):
        store.record(compilation())
    out()
    assert once == [1] and sorted(seen) == [1, 2, 3, 4]
    assert [event.kind for event in store.events()[0]] == ["compilation", "cache_lookup"] * 2
    assert guard.internal_errors() == {"subscriber": 4}


def test_the_index_in_a_job_is_known_from_the_first_event_after_joining_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`jax.distributed.initialize` may come after the first events; nobody has to wait for the slow tick."""
    monkeypatch.setattr(internals, "process_index_and_count", lambda: (0, 1))
    monkeypatch.setattr(internals, "backends_awake", lambda: False)
    store = Store()
    assert store.record(compilation()).process_index == 0
    monkeypatch.setattr(internals, "process_index_and_count", lambda: (3, 8))
    assert store.record(compilation()).process_index == 3
    process = store.snapshot().process
    assert (process.process_index, process.process_count) == (3, 8)


def test_functions_beyond_the_bound_share_a_row_and_the_totals_stay_exact() -> None:
    store = Store()
    store.record(compilation("add", eager=True))
    for number in range(10_000):
        store.record(compilation(f"module.function_{number}", cause="shape" if number % 2 else "first_call"))
    functions = store.snapshot().functions
    assert len(functions) == 202
    assert {function.name for function in functions} >= {EAGER, OTHER, "module.function_0", "module.function_199"}
    assert sum(function.compiled for function in functions) == 10_001
    other = _by_name(store)[OTHER]
    assert other.compilations == {"first_call": {"disabled": 4900}, "shape": {"disabled": 4900}}
    assert store.snapshot().observer.dropped == {"max_functions": 9800}
    histogram = store.snapshot().phases["compile"]
    assert sum(histogram.counts) == 10_001


def test_wrappers_beyond_the_bound_share_their_counts() -> None:
    store = Store(Settings(max_functions=3))
    for number in range(10):
        next(store.call_stats(f"f{number}").counter)
    calls = {name: function.calls for name, function in _by_name(store).items()}
    assert calls == {"f0": 1, "f1": 1, "f2": 1, OTHER: 7}
    assert store.call_stats("f9") is store.call_stats("f8")


def test_eager_operations_are_one_row() -> None:
    store = Store()
    for name in ("add", "mul", "convert_element_type"):
        store.record(compilation(name, eager=True))
    assert {name: function.compiled for name, function in _by_name(store).items()} == {EAGER: 3}
    assert [event.function for event in store.events()[0]] == ["add", "mul", "convert_element_type"]  # type: ignore[attr-defined]


def test_labels_are_bounded_and_can_be_written() -> None:
    store = Store()
    store.record(compilation("m." + "x" * 1_000_000))
    store.record(compilation("bad\ud800name"))
    store.call_stats("bad\ud800name").failed(type("Wrong" + "y" * 1000, (Exception,), {})())
    names = list(_by_name(store))
    assert [len(name) for name in names] == [MOST_LABEL, 8]
    errors = _by_name(store)[names[1]].errors
    assert all(text.encode() and len(text) <= MOST_LABEL for text in (*names, *errors))


def test_error_types_are_bounded() -> None:
    stats = CallStats()
    for number in range(100):
        stats.failed(type(f"Error{number}", (Exception,), {})())
    errors = stats.errors()
    assert len(errors) == MOST_ERROR_TYPES + 1
    assert errors[OTHER] == 100 - MOST_ERROR_TYPES
    stats.failed(type("Error3", (Exception,), {})())
    assert stats.errors()["Error3"] == 2


def test_notes_are_bounded_each_kept_once_and_the_cut_is_counted() -> None:
    store = Store()
    assert store.note("first")
    assert not store.note("first")
    for number in range(MOST_NOTES + 4):
        store.note(f"note {number}")
    observer = store.snapshot().observer
    assert len(observer.notes) == MOST_NOTES
    assert observer.notes[-1] == f"note {MOST_NOTES + 3}"
    assert observer.dropped == {"notes": 5}


def test_the_history_of_a_device_is_bounded_and_reaches_back_to_the_start() -> None:
    store = Store()
    device = DeviceState(device="gpu:0", id=0, platform="gpu", device_kind="Fake", process_index=0)
    for number in range(5000):
        store.set_device(device, DeviceMemory(time=float(number), device="gpu:0", in_use_bytes=number))
        assert len(store.snapshot_devices()[0].history) <= MOST_HISTORY
    [state] = store.snapshot().devices
    times = [point[0] for point in state.history]
    assert times == sorted(set(times))
    assert times[0] == 0.0
    assert times[-RECENT_HISTORY:] == [float(number) for number in range(5000 - RECENT_HISTORY, 5000)]
    assert state.history[-1] == (4999.0, 4999, None)
    assert state.memory is not None and state.memory.in_use_bytes == 4999


def test_dispatch_histograms_are_for_the_first_forty() -> None:
    store = Store()
    for number in range(60):
        stats = store.call_stats(f"f{number}")
        next(stats.counter)
        stats.durations.append(0.001)
    functions = store.snapshot().functions
    assert sum(function.dispatch is not None for function in functions) == 40
    assert all(function.calls == 1 for function in functions)
    assert store.snapshot().observer.dropped == {"dispatch_histograms": 20}


def test_what_is_open_is_the_outermost_phase_of_each_thread() -> None:
    store = Store()
    outer, inner = OpenCompilation("f", "trace", 1.0, "a"), OpenCompilation("g", "compile", 2.0, "a")
    store.begin(1, outer)
    store.begin(1, inner)
    store.begin(2, OpenCompilation("h", "compile", 3.0, "b"))
    assert {each.function for each in store.snapshot().in_progress} == {"f", "h"}
    store.end(1, "trace")
    assert {each.function for each in store.snapshot().in_progress} == {"h"}
    store.end(1, "compile")
    store.end(7, "compile")
    store.nothing_open()
    assert store.snapshot().in_progress == ()


def test_a_snapshot_is_whole_while_others_write() -> None:
    store, read = Store(), threading.Event()

    def work(number: int) -> None:
        while number and not read.is_set():
            store.record(compilation(cache="miss"))
        earlier = 0
        try:
            for _ in range(0 if number else 150):
                snapshot = store.snapshot()
                compiled = sum(function.compiled for function in snapshot.functions)
                assert compiled == snapshot.last_sequence >= earlier
                assert all(sum(h.counts) == compiled for h in snapshot.phases.values())
                assert sum(sum(f.cache.values()) for f in snapshot.functions) == compiled
                assert all(n == compiled for f in snapshot.functions for n in f.phase_counts.values())
                earlier = compiled
            assert number or earlier > 0
        finally:
            read.set()

    at_once(5, work)


def test_a_snapshot_does_not_change_afterwards() -> None:
    store = full_store()
    snapshot = store.snapshot()
    copy = repr(dataclasses.replace(snapshot, time=0.0))
    store.record(compilation())
    next(store.call_stats("train.step").counter)
    store.note("later")
    assert repr(dataclasses.replace(snapshot, time=0.0)) == copy
    with pytest.raises(dataclasses.FrozenInstanceError):
        snapshot.time = 1.0  # type: ignore[misc]


def test_a_snapshot_does_not_wait_for_a_backend_that_is_being_woken() -> None:
    import jax
    from jax._src import xla_bridge

    jax.devices()
    store = Store()
    with xla_bridge._backend_lock:
        elsewhere(store.snapshot, lambda: store.record(compilation()), internals.clients)


def test_backends_are_awake_when_all_of_them_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX has its CPU long before the accelerator: a process asked for its index meanwhile must not settle on it."""
    import jax
    from jax._src import xla_bridge

    jax.devices()
    assert internals.backends_awake()
    monkeypatch.setattr(xla_bridge, "_backends", {})
    assert not internals.backends_awake()
    xla_bridge._backends["cpu"] = jax.devices()[0].client
    with xla_bridge._backend_lock:
        assert not internals.backends_awake()
        assert internals.clients() == []
        assert internals.default_platform() is None
    assert internals.backends_awake()
    with xla_bridge._backend_lock:
        assert internals.backends_awake(), "JAX takes the lock for a moment on many calls"


def test_a_failing_sample_does_not_fail_the_snapshot() -> None:
    guard.raise_internal_errors(False)
    store = full_store()
    store.freshen = lambda: {}["nothing"]
    assert store.snapshot().last_sequence == 6
    assert guard.internal_errors()["freshen"] == 1


def test_calls_are_exact_with_sixteen_threads() -> None:
    """The hot path has no lock and needs none; reading takes none of the numbers away."""
    stats = CallStats()

    def work(number: int) -> None:
        if number == 16:
            while stats.calls < 320_000:
                stats.drain()
            return
        for _ in range(20_000):
            next(stats.counter)
            stats.durations.append(1e-5)

    at_once(17, work)
    histogram = stats.dispatch()
    assert stats.calls == 320_000 and histogram is not None and sum(histogram.counts) == 320_000


@pytest.mark.parametrize(
    ("timing", "first", "spent", "later"), [("off", 0, 0, 0), ("sampled", 1024, 0, 64), ("all", 1024, 4096, 4096)]
)
def test_the_tick_lets_some_more_calls_be_timed(timing: str, first: int, spent: int, later: int) -> None:
    store = Store(Settings(dispatch_timing=timing))
    stats = store.call_stats("f")
    assert stats.timed == first
    stats.durations.extend([0.001] * 5)
    stats.spent()
    assert (stats.timed, stats.durations) == (spent, [])
    stats.durations.extend([0.001] * 2)
    store.tick()
    assert (stats.timed, stats.durations) == (later, [])
    histogram = stats.dispatch()
    assert histogram is not None and sum(histogram.counts) == 7


def test_values_go_where_their_bound_is() -> None:
    """At most, as Prometheus' `le` says; one by one, and few and many at once."""
    bounds = (0.5, 1.0, 2.0)
    values = [5.0, 0.1, 1.0, 0.5, 2.0, 2.1, 0.7, 1.5, 1.0]
    one, all_at_once = MutableHistogram(bounds), MutableHistogram(bounds)
    for value in values * 51:
        one.observe(value)
    for several in (values, values * 50):
        all_at_once.observe_all(several)
    assert all_at_once.frozen().counts == one.frozen().counts == (2 * 51, 3 * 51, 2 * 51, 2 * 51)
    assert all_at_once.frozen().sum == pytest.approx(one.frozen().sum) == pytest.approx(51 * sum(values))


def test_the_stores_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`jaxobs.jit` alone, without `install`, keeps to the variables as well; a wrong one breaks nothing."""
    monkeypatch.setattr(stores, "_store", None)
    monkeypatch.setenv("JAXOBS_MAX_FUNCTIONS", "7")
    assert stores.current().settings.max_functions == 7
    monkeypatch.setattr(stores, "_store", None)
    monkeypatch.setenv("JAXOBS_MAX_FUNCTIONS", "many")
    assert stores.current().settings.max_functions == 200


def test_there_is_one_store_however_many_threads_ask_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_store", None)
    found: list[Store] = []
    at_once(8, lambda _: found.append(stores.current()))
    assert len({id(each) for each in found}) == 1


def test_after_a_fork_a_child_has_done_nothing_yet() -> None:
    store = full_store()
    stats = store.call_stats("train.step")
    for number in range(50):
        store.call_stats(f"f{number}")
    store.after_fork()
    snapshot = store.snapshot()
    assert snapshot.last_sequence == 0
    assert snapshot.devices == snapshot.in_progress == ()
    assert snapshot.process.versions == {"jaxobs": "1", "jax": "2"}
    assert sum(row.shows_dispatch for row in store._functions._rows.values()) == 40
    nothing = dataclasses.replace(_by_name(store)["f0"], name="train.step", fastpath_watched=True)
    assert _by_name(store)["train.step"] == nothing
    next(stats.counter)
    assert _by_name(store)["train.step"].calls == 1
    assert store.call_stats("train.step") is stats
