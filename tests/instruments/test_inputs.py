"""`jaxobs.data`: the same iterable, the time waited for it, and who holds the loop up."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.clock import Clock
from helpers.condition_scenes import scene
from helpers.threads import at_once
from helpers.waiting import until

import jaxobs
from jaxobs.exporters.forms.exposition import SnapshotCollector
from jaxobs.facts.findings import Finding
from jaxobs.facts.inputs import InputState
from jaxobs.findings.cases import Scene
from jaxobs.findings.input import input_bound
from jaxobs.findings.standing import Standing
from jaxobs.state import input_waits, store
from jaxobs.state.input_waits import MOST_INPUTS, Inputs, verdict_of
from jaxobs.state.wall import Wall

pytestmark = pytest.mark.usefixtures("fresh")

ENOUGH = 100


@pytest.fixture(autouse=True)
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops of these tests are short."""
    monkeypatch.setattr(input_waits, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(input_waits, "_LOOK_PAUSE", 10)


@dataclasses.dataclass(eq=False)
class Loader:
    """In the manner of PyTorch's `DataLoader`: a length, attributes, and a fresh iterator for each epoch."""

    batches: int = 3
    seconds: float = 0.0
    sleep: Callable[[float], object] = time.sleep
    batch_size: int = 4

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[Any]:
        for number in range(self.batches):
            self.sleep(self.seconds)
            yield {"x": np.arange(12, dtype=np.float32).reshape(4, 3) * number, "y": np.arange(4) + number}


class Checkpointable:
    """In the manner of Grain's iterators: the place in the data can be saved."""

    place = 0

    def __iter__(self) -> Checkpointable:
        return self

    def __next__(self) -> int:
        self.place += 1
        return self.place

    def get_state(self) -> int:
        return self.place


def state_of(name: str = "input") -> InputState:
    """The snapshot's row of one input."""
    return next(each for each in jaxobs.snapshot().inputs if each.name == name)


def test_a_loader_stays_what_it_is() -> None:
    inner = Loader()
    loader = jaxobs.data(inner)
    assert isinstance(loader, Loader)
    assert (len(loader), loader.batch_size, bool(loader), callable(loader)) == (3, 4, True, False)
    loader.batch_size = 8
    assert inner.batch_size == 8
    assert [len(list(loader)) for _ in range(2)] == [3, 3]
    first, second = iter(loader), iter(loader)
    next(first)
    assert next(second)["y"][0] == 0
    for other in (copy.copy(loader), pickle.loads(pickle.dumps(loader))):
        assert type(other) is type(loader) and len(list(other)) == 3
    assert len(list(jaxobs.data(loader, "again"))) == 3
    assert (state_of().batches, state_of("again").batches) == (14, 3)


def test_iterators_and_generators_stay_what_they_are() -> None:
    iterator = jaxobs.data(Checkpointable(), "grain")
    assert iter(iterator) is iterator and not hasattr(iterator, "__len__")
    assert next(iterator) == iterator.get_state() == 1

    def doubling() -> Any:
        got = 1
        while True:
            got = yield got * 2

    generator = jaxobs.data(doubling(), "generator")
    assert next(generator) == 2
    assert generator.send(21) == 42
    generator.close()
    assert next(generator, None) is None
    assert jaxobs.data([1, 2, 3])[1] == 2
    assert list(jaxobs.data({"a": 1})) == ["a"]


def test_errors_of_the_loader_pass_unchanged() -> None:
    def breaking() -> Iterator[int]:
        yield 1
        raise KeyError("gone")

    loader = jaxobs.data(breaking())
    next(loader)
    with pytest.raises(KeyError, match="gone") as caught:
        next(loader)
    assert [entry.name for entry in caught.traceback] == ["test_errors_of_the_loader_pass_unchanged", "breaking"]
    with pytest.raises(TypeError, match="an iterable, but got int: 3"):
        jaxobs.data(3)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="must be a string, not int: 3"):
        jaxobs.data([], 3)  # type: ignore[arg-type]


def test_a_slow_loader_is_the_bottleneck_and_a_fast_one_is_not(clock: Clock) -> None:
    step = jax.jit(lambda x: (x @ x.T).sum())
    step(jnp.ones((4, 3)))
    before = store.current().part(Wall).seconds()["input_wait"]
    for batch in jaxobs.data(Loader(ENOUGH, 0.004, clock.sleep), "slow"):
        step(batch["x"]).block_until_ready()
        clock.sleep(0.0005)
    waited = store.current().part(Wall).seconds()["input_wait"] - before
    for batch in jaxobs.data(Loader(ENOUGH // 2), "fast"):
        step(batch["x"]).block_until_ready()
        clock.sleep(0.015)
    for batch in jaxobs.data(Loader(ENOUGH, 0.002, clock.sleep), "even"):
        step(batch["x"]).block_until_ready()
        clock.sleep(0.006)
    slow, fast, even = state_of("slow"), state_of("fast"), state_of("even")
    assert (slow.verdict, fast.verdict, even.verdict) == ("input", "compute", "mixed")
    assert slow.batches == ENOUGH
    assert slow.wait_seconds == pytest.approx(ENOUGH * 0.004)
    assert waited == pytest.approx(slow.wait_seconds)
    assert slow.share == pytest.approx(8 / 9)
    assert even.share == pytest.approx(0.25)
    assert "the input is the bottleneck" in slow.summary
    assert "the rest of the loop is the bottleneck" in fast.summary
    metrics = {metric.name: dict(samples) for metric, samples in SnapshotCollector(store.current()).samples()}
    assert metrics["jax_input_batches_total"]["slow",] == ENOUGH
    assert metrics["jax_input_wait_seconds_total"]["slow",] == slow.wait_seconds


def test_a_wait_that_the_devices_do_not_notice_is_no_bottleneck(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that runs ahead waits for most of its time, and the input is not to blame while devices are busy."""
    busy = iter([True, True, False] * ENOUGH)
    monkeypatch.setattr(input_waits.internals, "computing", lambda: next(busy))
    for _ in jaxobs.data(Loader(ENOUGH, 0.004, clock.sleep)):
        clock.sleep(0.001)
    state = state_of()
    assert state.share == pytest.approx(0.8)
    assert state.looks >= 3
    assert state.hidden == pytest.approx(2 / 3, abs=0.05)
    assert state.verdict == "compute"
    assert "still had work" in state.summary
    assert (verdict_of(0.9, None), verdict_of(0.9, 0.2), verdict_of(0.3, 0.2), verdict_of(0.01, None)) == (
        "input", "input", "mixed", "compute",
    )  # fmt: skip


def test_what_a_prefetcher_fetches_is_no_wait_of_the_program() -> None:
    """Batches taken on another thread give no verdict; the queue's wait is told where it is seen."""
    handed: queue.Queue[Any] = queue.Queue(2)

    def prefetch() -> None:
        for batch in jaxobs.data(Loader(ENOUGH, 0.002), "raw"):
            handed.put(batch)
        handed.put(None)

    thread = threading.Thread(target=prefetch)
    thread.start()
    until(handed.full)  # the prefetcher is the first to fetch
    for _ in jaxobs.data(iter(handed.get, None), "queue"):
        time.sleep(0.0001)
    thread.join()
    raw, seen = state_of("raw"), state_of("queue")
    assert (raw.batches, raw.elsewhere_batches, raw.wait_seconds, raw.verdict) == (ENOUGH, ENOUGH, 0.0, None)
    assert raw.elsewhere_seconds >= ENOUGH * 0.002
    assert "prefetcher" in raw.summary
    assert seen.verdict == "input"
    assert store.current().part(Wall).thread == threading.main_thread().ident


def test_names_are_bounded() -> None:
    for number in range(MOST_INPUTS + 3):
        list(jaxobs.data([1], f"n{number}"))
    snapshot = jaxobs.snapshot()
    assert len(snapshot.inputs) == MOST_INPUTS + 1
    assert state_of("<other>").batches == 3
    assert snapshot.observer.dropped["inputs"] == 3


def test_an_input_that_holds_the_loop_up_is_told_after_a_while_and_when_it_is_over() -> None:
    """Ten seconds of waiting make a finding, told again when it doubled, and once more at its end."""
    bound = InputState(
        name="train", batches=100, wait_seconds=0.0, share=0.9, verdict="input", summary="Figures.",
        intervals=128, mean_wait_seconds=0.09, mean_interval_seconds=0.1,
    )  # fmt: skip
    findings = Standing(Scene)
    told: list[tuple[float, Finding, bool]] = []
    for now in range(0, 200, 5):
        verdict = "input" if now <= 120 else "mixed"
        state = dataclasses.replace(bound, wait_seconds=now * 0.9, verdict=verdict)
        told += [(float(now), *each) for each in findings.see(scene(inputs=(state,), time=float(now)))]
    news = [(now, round(finding.seconds), finding.ended) for now, finding, new in told if new]
    assert news == [(15.0, 14, None), (30.0, 27, None), (60.0, 54, None), (120.0, 108, None), (180.0, 108, 125.0)]
    assert (told[0][1].finding, told[0][1].subject) == (input_bound.NAME, "train")
    assert told[-1][1].summary == "Input `train`: Figures. Over since 00:02:05Z."


def test_threads_lose_no_batch() -> None:
    at_once(4, lambda _: list(jaxobs.data(range(5_000), "shared")))
    assert state_of("shared").batches == 20_000
    assert len(store.current().part(Inputs).meter("shared").waits) < 2_000
