"""The agent asks Kubernetes with the official client; the answers are in the form of a real server's.

`python -m tools.cluster` asks a real API server the same.
"""

import json
import re
import tomllib
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import answering
from helpers.stub_prometheus import Stub, serving

from jaxobs.base.errors import SettingError
from jaxobs.facts.events import timestamp
from jaxobs.ops.agent import cluster, investigating, looking, notifications
from jaxobs.ops.agent.cluster import Cluster
from jaxobs.ops.agent.incidents import Incident
from jaxobs.ops.agent.investigating import Where
from jaxobs.ops.agent.looking import Bounds, Seen
from jaxobs.ops.agent.pods import PodSource
from jaxobs.ops.agent.report import Report
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis import diagnose
from jaxobs.ops.diagnosis.gathering.prometheus_api import Window

NOW = 1_769_850_600.0
GIVEN = tomllib.loads(Path(__file__).with_name("cluster_objects.toml").read_text())
CASES = GIVEN["cases"]
LABELS = {"job": "train", "namespace": "ml", "instance": "10.0.0.7:9464", "pod": "train-0", "node": "node-1"}
SUBJECT = Subject((("job", "train"), ("namespace", "ml")))
TOKEN = "only-for-the-cluster"
PATHS = {
    "pods": "/api/v1/namespaces/ml/pods", "events": "/api/v1/namespaces/ml/events", "nodes": "/api/v1/nodes",
    "node events": "/api/v1/namespaces/default/events", "replicasets": "/apis/apps/v1/namespaces/ml/replicasets",
    "controllerrevisions": "/apis/apps/v1/namespaces/ml/controllerrevisions",
}  # fmt: skip
Object = dict[str, Any]


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A Prometheus in which the job is well."""
    with serving() as found:
        found.series = {"up": [(LABELS, 1.0)], "jax_process_start_timestamp_seconds": [(LABELS, NOW - 7200)]}
        yield found


class Api:
    """Answers as an API server does, and notes what it is asked."""

    def __init__(self) -> None:
        self.items: dict[str, list[Object]] = {each: [] for each in PATHS.values()}
        self.status = 200
        self.asked: list[answering.Request] = []

    def answer(self, request: answering.Request) -> Any:
        self.asked.append(request)
        path, _, query = request.partition("?")
        if self.status != 200 or path not in self.items:
            return self.status if self.status != 200 else None
        chosen = dict(urllib.parse.parse_qsl(query)).get("fieldSelector", "").removeprefix("metadata.name=")
        found = [each for each in self.items[path] if "=" in chosen or chosen in ("", each["metadata"]["name"])]
        return {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": found}

    def put(self, kind: str, name: str, **parts: Any) -> None:
        metadata = {"name": name, "labels": {}, **parts.pop("metadata", {})}
        self.items[PATHS[kind]].append({"metadata": metadata, **parts})


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    found = Api()
    with answering.serving(found.answer) as url:
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": url}}],
            "users": [{"name": "agent", "user": {"token": TOKEN}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "agent"}}],
        }  # fmt: skip
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        # What the client reads of it, it keeps.
        monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "kubeconfig"))
        yield found


def look(stub: Stub, sources: tuple[PodSource, ...] | None = None) -> Seen:
    window, given = Window(end=NOW, seconds=3600.0), (Cluster(),) if sources is None else sources
    return looking.look(stub.url, (), SUBJECT, [LABELS["instance"]], window, Bounds(), given, NOW - 300)


def at(text: str) -> Any:
    """JSON with the times of NOW."""
    return json.loads(re.sub(r"T-(\d+)", lambda found: timestamp(NOW - int(found[1]))[:19] + "Z", text))


def put_events(api: Api, text: str) -> None:
    for number, line in enumerate(text.strip().splitlines()):
        moment, kind, reason, about, message = line.split(" ", 4)
        of, _, name = about.partition("/")
        stamp = at(f'"{moment}"')
        api.put("events", f"{name}.{number}", type=kind, reason=reason, message=message, firstTimestamp=stamp,
                lastTimestamp=stamp, count=1, involvedObject={"kind": of, "name": name})  # fmt: skip


def put_revision(api: Api, number: int, before: int) -> None:
    template = {"spec": {"containers": [{"image": f"serve:{number}"}]}}
    api.put("replicasets", f"serve-{number}", spec={"template": template}, metadata={
        "annotations": {"deployment.kubernetes.io/revision": str(number)}, "creationTimestamp": at(f'"T-{before}"'),
        "ownerReferences": [{"kind": "Deployment", "name": "serve"}],
    })  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_an_object_shows(api: Api, stub: Stub, case: dict[str, str]) -> None:
    api.put("pods", "train-0", spec={"nodeName": "node-1"}, status=at(case.get("pod", "{}")),
            metadata={"ownerReferences": [{"kind": "Job", "name": "train"}]})  # fmt: skip
    api.put("nodes", "node-1", **at(case.get("node", "{}")))
    put_events(api, case.get("events", ""))
    seen = look(stub)
    found = diagnose(seen.evidence)
    if case["cause"] in ("", "?"):
        assert (found.verdict, found.causes) == ("inconclusive" if case["cause"] else "no_fault", ())
    else:
        assert [each.id for each in found.causes] == [case["cause"]]
        assert found.causes[0].component in (LABELS["instance"], "kubernetes job")
        assert {each.source for each in found.causes[0].evidence} <= {"kubernetes train-0", "kubernetes job"}
    absent = {each.partition(":")[0] for each in seen.not_looked_at}
    assert absent == {"Loki", "Processes", "kube-state-metrics"}, "only sources that this test does not have"


def report(stub: Stub) -> Report:
    stub.alerts = [{**LABELS, "alertname": "JaxCrashLoop", "severity": "critical"}]
    body = {"version": "4", "alerts": [{"status": "firing", "labels": stub.alerts[0]}]}
    incident = Incident(id="x", subject=list(SUBJECT.labels), opened_at=NOW, asked_at=NOW)
    incident.take(list(notifications.parse(json.dumps(body).encode()).alerts), NOW, 0)
    return investigating.investigate(incident, Where(prometheus=stub.url, pods=(Cluster(),)), clock=lambda: NOW)


def test_a_report_names_the_revision_before_the_incident(api: Api, stub: Stub) -> None:
    """The sources are named as well; the token is shown to the API, and to nobody else."""
    api.put("pods", "train-0", spec={"nodeName": "node-1"}, status=at(CASES[0]["pod"]))
    put_revision(api, 6, 9000)
    put_revision(api, 7, 400)
    found = report(stub)
    assert [(each.id, each.component) for each in found.causes] == [("host_out_of_memory", LABELS["instance"])]
    changed = "serve: revision 6 -> 7 (serve:6 -> serve:7)"
    assert found.context.version_changes == [f"{changed} at {timestamp(NOW - 400)}"]
    assert (timestamp(NOW - 400), f"{changed}.") in {(each.time, each.what) for each in found.timeline}
    assert "Kubernetes: 1 pods, 0 events, 2 replicasets, 0 controllerrevisions, 1 nodes; namespace ml" in found.sources
    assert {each.headers["authorization"] for each in api.asked} == {f"Bearer {TOKEN}"}
    assert TOKEN not in found.model_dump_json()


@pytest.mark.parametrize("case", GIVEN["changes"], ids=lambda case: case["name"])
def test_what_changed(api: Api, stub: Stub, case: dict[str, Any]) -> None:
    """A StatefulSet has revisions of a kind of its own, and its pods say which of them they have."""
    for number, before in case.get("deployment", ()):
        put_revision(api, number, before)
    for number, before in case.get("statefulset", ()):
        template = {"spec": {"containers": [{"image": f"train:{number}"}], "$patch": "replace"}}
        api.put("controllerrevisions", f"train-{number}", data={"spec": {"template": template}}, revision=number,
                metadata={"creationTimestamp": at(f'"T-{before}"'),
                          "ownerReferences": [{"kind": "StatefulSet", "name": "train"}]})  # fmt: skip
    for name, number, before in case.get("pods", ()):
        api.put("pods", name, metadata={
            "creationTimestamp": at(f'"T-{before}"'), "labels": {"controller-revision-hash": f"train-{number}"},
        })  # fmt: skip
    api.put("nodes", "node-1", **at(case.get("node", "{}")))
    put_events(api, case.get("events", ""))
    assert [f"T{moment - NOW:+.0f} {what}" for moment, what in look(stub).changes] == case["found"]


def test_a_pod_of_which_only_its_series_are_left(api: Api, stub: Stub) -> None:
    """Events and the node stay."""
    api.put("nodes", "node-1", **at(next(each["node"] for each in CASES if "silent" in each["name"])))
    assert [(each.id, each.component) for each in diagnose(look(stub).evidence).causes] == [
        ("host_failed", LABELS["instance"])
    ]


def test_an_api_that_refuses(api: Api, stub: Stub) -> None:
    """The report names it, and nothing follows from it."""
    api.status = 403
    seen = look(stub)
    assert {"Kubernetes: pods: HTTP 403.", "Kubernetes: events: HTTP 403."} <= set(seen.not_looked_at)
    assert not any(each.startswith("Kubernetes") for each in seen.looked_at)
    assert diagnose(seen.evidence).verdict == "no_fault"


def test_more_than_is_read(api: Api, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "MOST_OBJECTS", 2)
    put_events(api, "\n".join(["T-90 Normal Pulled Pod/other-0 x"] * 2))
    assert "Kubernetes: events: only the first 2 were read." in look(stub).not_looked_at
    assert all("limit=2" in each for each in api.asked)
    monkeypatch.setattr(cluster, "MOST_BYTES", 10)
    assert any("larger than 10 bytes" in each for each in look(stub).not_looked_at)


def test_without_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    with pytest.raises(SettingError, match="--kubernetes: "):
        Cluster()


def test_an_agent_that_may_not_look_says_so(stub: Stub) -> None:
    assert any("`--kubernetes`" in each for each in look(stub, ()).not_looked_at)


def test_what_kube_state_metrics_says_of_the_job(stub: Stub) -> None:
    """Prometheus has it under the job of kube-state-metrics, and it is about a process."""
    name = "kube_pod_container_status_last_terminated_reason"
    stub.series |= {name: [({"job": "kube-state-metrics", "instance": "10.0.0.2:8080", "namespace": "ml",
                             "pod": "train-0", "container": "main", "reason": "OOMKilled"}, 1.0)]}  # fmt: skip
    seen = look(stub, ())
    [state] = seen.evidence.metric(name)
    asked = urllib.parse.unquote_plus("\n".join(stub.asked))
    started = 'jax_process_start_timestamp_seconds{job="train", namespace="ml"}[3600s]'
    assert state.process == LABELS["instance"]
    assert f"{name} and on (namespace, pod) last_over_time({started})" in asked
