"""Which processes are asked about an incident, where no Prometheus says whose they are, and how long each may take."""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator

import pytest
from helpers.page_fixtures import serving
from helpers.top_snapshots import process, snapshot
from helpers.waiting import until

from jaxobs.ops.agent import deadlines, looking
from jaxobs.ops.agent.looking import Bounds, Seen
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis.gathering.prometheus_api import Window
from tools.ports import free_port

WINDOW = Window(end=1_769_850_200.0, seconds=3600.0)


@contextlib.contextmanager
def two(count: int) -> Iterator[tuple[str, str]]:
    """The addresses of two processes, each of a job of so many."""
    shown = dataclasses.replace(snapshot(), process=process(process_count=count))
    with serving(shown) as one, serving(shown) as other:
        yield one.url.rstrip("/"), other.url.rstrip("/")


def look(given: tuple[str, ...], instance: str) -> Seen:
    gone = f"http://127.0.0.1:{free_port()}"
    subject = Subject.of({"alertname": "X", "job": "train", "instance": instance})
    return looking.look(gone, given, subject, [instance] if instance else [], WINDOW, Bounds())


@pytest.mark.parametrize(("count", "asked"), [(1, 1), (2, 2)])
def test_a_job_of_its_own_is_left_out(count: int, asked: int) -> None:
    with two(count) as given:
        seen = look(given, given[0].removeprefix("http://"))
    assert seen.asked == given[:asked]
    assert any(given[1] in each and "job of one process" in each for each in seen.not_looked_at) == (count == 1)


@pytest.mark.parametrize("instance", ["", "node-7:9464"])
def test_all_are_asked_if_none_of_them_is_named(instance: str) -> None:
    with two(1) as given:
        assert look(given, instance).asked == given


def test_what_hangs_is_left_behind() -> None:
    """The results of the others are there, in order; what raises has none."""
    release = threading.Event()

    def hangs() -> int:
        release.wait(100)
        return 1

    def fails() -> int:
        raise ValueError("made on purpose")

    try:
        assert deadlines.at_once([hangs, lambda: 2, fails, lambda: 4], 0.5) == [None, 2, None, 4]
    finally:
        release.set()


def test_those_left_behind_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "_abandoned", threading.Semaphore(2))
    release = threading.Event()
    deadlines.at_once([lambda: release.wait(100)] * 2, 0.01)
    assert deadlines.at_once([lambda: 1], 5) == [None]
    release.set()
    until(lambda: deadlines.at_once([lambda: 1], 5) == [1])
