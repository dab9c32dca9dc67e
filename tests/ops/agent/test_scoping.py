"""By which labels an incident's series are found, and what is known of a job of which nothing is seen."""

import json
import time
import urllib.parse
from collections.abc import Iterator

import pytest
from helpers.stub_prometheus import Stub, serving

from jaxobs.ops.agent import investigating, looking, notifications
from jaxobs.ops.agent.incidents import Incident
from jaxobs.ops.agent.investigating import Where
from jaxobs.ops.agent.report import Report
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis.gathering.prometheus_api import Window

OWN = {"job": "train", "instance": "a:9464"}
ALERT = {**OWN, "alertname": "JaxNonFiniteValues", "severity": "critical"}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving() as found:
        found.series = {"up": [(OWN, 1.0)]}
        yield found


def report(stub: Stub, labels: dict[str, str]) -> Report:
    body = {"version": "4", "alerts": [{"status": "firing", "labels": labels}]}
    now = time.time()
    incident = Incident(id="x", subject=list(Subject.of(labels).labels), opened_at=now, asked_at=now)
    incident.take(list(notifications.parse(json.dumps(body).encode()).alerts), now, 0)
    return investigating.investigate(incident, Where(prometheus=stub.url))


def asked(stub: Stub) -> str:
    return urllib.parse.unquote_plus("\n".join(stub.asked))


def test_labels_that_prometheus_adds_to_alerts_choose_no_series(stub: Stub) -> None:
    stub.series["jax_build_info"] = [({**OWN, "jax": "0.10.2"}, 1.0)]
    found = report(stub, {**ALERT, "cluster": "eu", "namespace": "ml"})
    assert 'cluster="eu"' not in asked(stub) and 'namespace="ml"' not in asked(stub)
    assert (found.blast_radius.processes, found.subject.name) == (1, "train in namespace ml, cluster eu")


@pytest.mark.parametrize("cluster", ["eu", "us"])
def test_labels_of_series_choose_among_them(stub: Stub, cluster: str) -> None:
    stub.series["up"] = [({**OWN, "cluster": cluster}, 1.0)]
    report(stub, {**ALERT, "cluster": "eu", "namespace": "ml"})
    assert 'up{cluster="eu", job="train"}' in asked(stub)


def test_a_prometheus_that_does_not_say_leaves_a_subject_as_it_is() -> None:
    subject = Subject((("cluster", "eu"), ("job", "train")))
    window = Window(end=time.time(), seconds=60)
    assert looking.in_series("http://127.0.0.1:9", subject, window, 1) == subject
    alone = Subject((("alertname", "A"), ("cluster", "eu")))
    assert looking.in_series("http://127.0.0.1:9", alone, window, 1) == alone


@pytest.mark.parametrize("name", ["DatabaseSlow", "JaxStepsStalled"])
def test_what_answers_and_has_no_metrics_of_jaxobs_is_not_called_healthy(stub: Stub, name: str) -> None:
    """A database is scraped as well: nothing is known of its work."""
    found = report(stub, {**OWN, "alertname": name})
    assert (found.verdict, found.causes) == ("inconclusive", [])
    assert "no metrics of jaxobs" in found.collect[0]


def test_a_target_that_is_no_process_of_jaxobs_shows_nothing(stub: Stub) -> None:
    stub.targets = [(f"{stub.url}/metrics", OWN, "up")]
    found = report(stub, {**OWN, "alertname": "DatabaseSlow"})
    assert found.verdict == "inconclusive"
    assert any("not a jaxobs endpoint" in each for each in found.not_looked_at)


def test_a_job_that_ended_before_the_window_was_one(stub: Stub) -> None:
    stub.series = {"up": [(OWN, 0.0)], "jax_process_start_timestamp_seconds": [(OWN, 1.0)]}
    assert looking.was_seen(stub.url, Subject((("job", "train"),)), time.time(), 5)
    assert "last_over_time(jax_process_start_timestamp_seconds" in asked(stub)
    stub.series = {"up": [(OWN, 0.0)]}
    assert not looking.was_seen(stub.url, Subject((("job", "train"),)), time.time(), 5)
