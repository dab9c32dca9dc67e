"""Samples read from traces made by hand: names, places, programs that are kept."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType

import jax
import jax.numpy as jnp
import pytest
from helpers import xplanes
from helpers.made_by_hand import compilation
from helpers.xplanes import event, operation

from jaxobs.facts.profile_samples import ProfileSample
from jaxobs.internals import short_traces
from jaxobs.internals.short_traces import MARK
from jaxobs.internals.xplane.space import Plane, Space
from jaxobs.sources.support import host_looks
from jaxobs.sources.support.host_looks import HostLooks
from jaxobs.sources.support.sample_reading import Reader, names_of
from jaxobs.state.host_record import HostRecord
from jaxobs.state.wall import Wall

MS = 1e6
HERE = f"{__file__}:"


def record(wall: Wall) -> HostRecord:
    """A record of an account that noted nothing."""
    made = HostRecord(wall)
    made.stop()
    return made


def read(*planes: Plane, looks: HostLooks | None = None, names: dict[str, str] | None = None) -> ProfileSample:
    """The sample of a trace whose first mark began at 0 by both clocks."""
    data = xplanes.space(Space(planes))
    return Reader().read(data, looks or HostLooks(), record(Wall()), 0.0, {}, names or {})


def looked(monkeypatch: pytest.MonkeyPatch, *moments: float, category: str = "idle") -> HostLooks:
    """Looks at this thread at these moments, in seconds."""
    looks = HostLooks()
    for moment in moments:
        monkeypatch.setattr(host_looks, "perf_counter", lambda moment=moment: moment)
        looks.look(sys._getframe(), category)
    monkeypatch.undo()
    return looks


def test_idle_time_has_the_line_at_which_the_thread_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only while a device was idle; the wait for input comes from the account of time."""
    busy = operation("dot.2", 0, 10 * MS)
    more = operation("dot.2", 30 * MS, 40 * MS)
    python = [event(MARK, 0, 1), event("PjitFunction(f)", 1, 2)]
    looks = looked(monkeypatch, 0.005, 0.015, 0.020, 0.025, category="input_wait")
    sample = read(xplanes.host(python=python, worker=[busy, more]), looks=looks)
    assert sample.busy == {"cpu:0": pytest.approx(0.5)}
    assert {each.reason: round(each.seconds, 4) for each in sample.idle} == {"input": 0.02}
    [place] = sample.places
    assert place.where.startswith(HERE)
    assert (place.reason, place.share) == ("input", pytest.approx(0.75))
    assert sample.looks == 4


def test_a_wait_for_the_device_is_no_fault_of_the_host() -> None:
    """Nobody knows the reason of idle time meanwhile."""
    python = [event(MARK, 0, 1), event("PjitFunction(f)", 1, 2), event("CommonPjRtBuffer::Await", 2, 30 * MS)]
    worker = [operation("dot.2", 0, 10 * MS), operation("dot.2", 35 * MS, 40 * MS)]
    sample = read(xplanes.host(python=python, worker=worker))
    assert {each.reason: round(each.seconds, 4) for each in sample.idle} == {"unknown": 0.02, "dispatch": 0.005}


def test_functions_have_the_names_that_they_have_everywhere() -> None:
    names = names_of([
        compilation("train.step"), compilation("models.loss"), compilation("losses.loss"),
        compilation("jax.numpy.add", eager=True), compilation("mine.where"), compilation("jax.numpy.where", eager=True),
    ])  # fmt: skip
    assert names == {"step": "train.step", "add": "<eager>", "where": "mine.where"}
    worker = [operation("dot.1", 0, MS, module="jit_step"), operation("dot.2", MS, 2 * MS, module="jit_loss")]
    sample = read(xplanes.host(worker=worker), names=names)
    assert [each.function for each in sample.functions] == ["train.step", "loss"]
    assert {each.function for each in sample.operations} == {"train.step", "loss"}


def test_a_device_that_did_nothing_was_not_busy() -> None:
    reader, host = Reader(), record(Wall())
    for worker in ([operation("dot.1", 0, MS)], [event("nothing", 0, MS)]):
        data = xplanes.space(Space((xplanes.host(worker=worker),)))
        sample = reader.read(data, HostLooks(), host, 0.0, {}, {})
    assert sample.busy == {"cpu:0": 0.0}
    assert sample.collective_seconds is None


def test_programs_are_asked_for_once() -> None:
    """Names from a first trace hold for the later ones, which are smaller."""
    product = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jnp.ones((64, 64))
    product(x).block_until_ready()
    reader, scopes = Reader(), []
    for wanted in (True, False):
        assert reader.wants_programs is wanted
        trace = short_traces.begin(programs=reader.wants_programs)
        assert trace is not None
        product(x).block_until_ready()
        data = trace.end()
        assert data is not None
        sample = reader.read(data, HostLooks(), record(Wall()), trace.began, {}, {})
        scopes.append({each.scope for each in sample.operations})
    assert scopes[0] == scopes[1] != {None}
    assert reader.wants_programs is False


def test_programs_that_no_trace_has_are_not_asked_for_again() -> None:
    """Each trace would be several times larger for nothing; a new one is asked for."""
    reader, host = Reader(), record(Wall())
    one, other = operation("dot.1", 0, MS), event("dot.2", 0, MS, hlo_op="dot.2", hlo_module="jit_g", program_id=8)
    wanted = []
    for worker in ([one], [one], [one, other]):
        reader.read(xplanes.space(Space((xplanes.host(worker=worker),))), HostLooks(), host, 0.0, {}, {})
        wanted.append(reader.wants_programs)
    assert wanted == [False, False, True]


# -------------------------------------------------------------------------------------------- where a thread is


def doing(frame: FrameType | None, category: str = "idle") -> list[str]:
    """Words of a look at a frame."""
    looks = HostLooks()
    looks.look(frame, category)
    return list(looks.spans(0.0))


class Batches:
    """An iterator that looks at its own thread."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> int:
        self.seen += doing(sys._getframe())
        return 1


def test_the_next_element_of_a_loop_is_input() -> None:
    """By an iterator's method, or a generator; work in the loop is not."""
    batches, seen = Batches(), []

    def generated() -> Iterator[int]:
        seen.extend(doing(sys._getframe()))
        yield 1

    for _ in zip(batches, generated(), strict=False):
        seen += doing(sys._getframe())
        break
    assert (batches.seen, seen) == (["input"], ["input"])


class Waiting:
    """An array that looks at the thread that waits for it."""

    seen: list[str]

    def block_until_ready(self) -> None:
        frame = sys._getframe().f_back
        self.seen = doing(frame)

    def other(self) -> None:
        self.seen = doing(sys._getframe().f_back)


def test_a_method_without_a_frame_is_known_by_its_name() -> None:
    array = Waiting()
    array.block_until_ready()
    assert array.seen == [host_looks.WAITS]
    array.other()
    assert array.seen == []


def test_what_the_account_says_comes_first() -> None:
    """The account knows of `jaxobs.data` and of transfers that are counted."""
    assert doing(sys._getframe(), "input_wait") == ["input"]
    assert doing(sys._getframe(), "transfer") == ["transfer"]
    assert doing(None) == []
