"""Which processes are asked about an incident, where no Prometheus says whose they are, and how long each may take."""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator

import pytest
from helpers import stub_prometheus
from helpers.page_fixtures import serving
from helpers.top_snapshots import process, snapshot
from helpers.waiting import until

from jaxobs.ops.agent import deadlines, looking
from jaxobs.ops.agent.looking import Bounds, Seen
from jaxobs.ops.agent.pods import Told
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


class Source:
    """A source of pods that answers what it was given."""

    def __init__(self, source: str, **told: object) -> None:
        self.source, self._told = source, told

    def look(self, *_: object) -> Told:
        return Told(source=self.source, **self._told)  # type: ignore[arg-type]


SOURCES = ("prometheus", "processes", "kubernetes", "loki", "kube-state-metrics")
HERE = {"job": "train", "instance": "a:9464", "namespace": "ml", "pod": "train-0"}


@pytest.mark.parametrize("labels", [{"job": "train"}, {"alertname": "X"}])
@pytest.mark.parametrize(
    ("sources", "states", "answers"),
    [
        ((), False, {"prometheus"}),
        ((Source("kubernetes"), Source("loki", notes=("Loki: HTTP 401.",))), False, {"prometheus"}),
        (tuple(Source(each, looked_at=f"{each}: 1") for each in ("kubernetes", "loki")), True,
         {"prometheus", "kubernetes", "loki", "kube-state-metrics"}),
    ],
    ids=["none", "silent", "all"],
)  # fmt: skip
def test_every_source_is_named(
    labels: dict[str, str], sources: tuple[Source, ...], states: bool, answers: set[str]
) -> None:
    """Among those that answered, or with the reason among the others; never in both places."""
    with stub_prometheus.serving() as stub:
        stub.series = {"kube_pod_container_status_last_terminated_reason": [(HERE, 1.0)]} if states else {}
        seen = looking.look(stub.url, (), Subject.of(labels), (), WINDOW, Bounds(), sources)
    read, not_read = ({each.lower() for each in told} for told in (seen.looked_at, seen.not_looked_at))
    assert {name for name in SOURCES if any(each.startswith(name) for each in read)} == answers
    assert {name for name in SOURCES if any(each.startswith(f"{name}: ") for each in not_read)} == {*SOURCES} - answers
    assert sum("not configured" in each for each in not_read) == 2 - len(sources)


def test_a_prometheus_that_is_gone_hides_the_series_of_kube_state_metrics() -> None:
    assert "kube-state-metrics: Prometheus does not answer." in look((), "").not_looked_at


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
