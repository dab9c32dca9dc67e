"""Which processes are asked about an incident, where no Prometheus says whose they are."""

import contextlib
import dataclasses
from collections.abc import Iterator

import pytest
from helpers.page_fixtures import serving
from helpers.top_snapshots import process, snapshot

from jaxobs.ops.agent import looking
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
