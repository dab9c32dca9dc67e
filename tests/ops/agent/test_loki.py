"""Logs of a Loki: a server here answers in the documented form of `/loki/api/v1`, for no Loki is at hand."""

import re
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from helpers import answering
from helpers.stub_prometheus import Stub, serving

from jaxobs.ops.agent import loki, looking
from jaxobs.ops.agent.loki import Loki
from jaxobs.ops.agent.looking import Bounds, Seen
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis import diagnose
from jaxobs.ops.diagnosis.gathering.prometheus_api import Window

NOW = 1_769_850_600.0
LABELS = {"job": "train", "namespace": "ml", "instance": "10.0.0.7:9464", "pod": "train-0"}
RAISED = 'Traceback (most recent call last):\n  File "/app/train.py", line 7, in main\n    step(x)\n' + (
    "jaxlib._jax.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes."
)


class Server:
    """Streams of lines by what a LogQL selector may name; parameters that it got."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, str, str]] = [(NOW - 500 + 10 * n, "train-0", f"step {n}") for n in range(30)]
        self.labels, self.asked = ["namespace", "pod", "container"], list[dict[str, str]]()
        self.status, self.headers = 200, list[Any]()

    def answer(self, request: answering.Request) -> Any:
        path, _, query = request.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        self.headers.append(request.headers)
        if self.status != 200 or path == "/loki/api/v1/labels":
            return {"status": "success", "data": self.labels} if self.status == 200 else self.status
        assert path == "/loki/api/v1/query_range"
        self.asked.append(asked)
        _, _, words = asked["query"].partition(" |~ ")
        wanted = re.compile(words.strip('"'))
        kept = [each for each in self.lines if float(asked["start"]) <= each[0] * 1e9 <= float(asked["end"])
                and wanted.search(each[2])]  # fmt: skip
        kept.sort(reverse=asked["direction"] == "backward")
        result = [{"stream": {"namespace": "ml", self.labels[1]: pod}, "values": [[str(int(at * 1e9)), text]]}
                  for at, pod, text in kept[: int(asked["limit"])]]  # fmt: skip
        return {"status": "success", "data": {"resultType": "streams", "result": result, "stats": {}}}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving() as found:
        found.series = {"up": [(LABELS, 1.0)], "jax_process_start_timestamp_seconds": [(LABELS, NOW - 7200)]}
        yield found


def look(stub: Stub, server: Server, job: str = "train") -> Seen:
    with answering.serving(server.answer) as url:
        subject = Subject((("job", job), ("namespace", "ml")))
        window = Window(end=NOW, seconds=3600.0)
        return looking.look(stub.url, (), subject, [], window, Bounds(), (Loki(url),), NOW - 200)


def test_a_traceback_between_many_lines(stub: Stub, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest lines do not reach it; those around the beginning of the incident do."""
    monkeypatch.setattr(loki, "MOST_LINES", 5)
    server.lines[15:] = [(at, pod, "the sidecar waits") for at, pod, _ in server.lines[15:]]
    server.lines.append((NOW - 319, "train-0", RAISED))
    seen = look(stub, server)
    [cause] = diagnose(seen.evidence).causes
    assert (cause.id, cause.component, cause.where) == (
        "device_out_of_memory",
        LABELS["instance"],
        "/app/train.py:7 in main",
    )
    assert {each["query"].partition(" |~ ")[0] for each in server.asked} == {'{pod=~"train\\\\-0", namespace="ml"}'}
    assert "Loki: the rest: it has more lines of these streams than were read." in seen.not_looked_at
    assert any(each.startswith("Loki: 10 lines of 1 pods; ") for each in seen.looked_at)


def test_a_job_that_is_well(stub: Stub, server: Server) -> None:
    seen = look(stub, server)
    assert diagnose(seen.evidence).verdict == "no_fault"
    assert not any("Loki" in each for each in seen.not_looked_at)


@pytest.mark.parametrize(
    ("labels", "selector"),
    [(["k8s_namespace_name", "k8s_pod_name"], '{k8s_pod_name=~"train\\\\-0", k8s_namespace_name="ml"}'),
     (["namespace", "job"], '{job=~"(?:.+/)?train", namespace="ml"}'), (["filename", "stream"], "")],
)  # fmt: skip
def test_labels_of_other_collectors(stub: Stub, server: Server, labels: list[str], selector: str) -> None:
    server.labels = labels
    seen = look(stub, server)
    assert {each["query"].partition(" |~ ")[0] for each in server.asked} == {selector} - {""}
    assert any("none of its labels" in each for each in seen.not_looked_at) == (not selector)


def test_a_loki_that_wants_a_tenant(stub: Stub, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXOBS_LOKI_TOKEN", "open-sesame")
    monkeypatch.setenv("JAXOBS_LOKI_HEADERS", "X-Scope-OrgID: ml")
    seen = look(stub, server)
    assert {(each["X-Scope-OrgID"], each["Authorization"]) for each in server.headers} == {("ml", "Bearer open-sesame")}
    assert "open-sesame" not in repr(seen)
    server.status = 401
    assert any("HTTP 401: it refuses the credentials" in each for each in look(stub, server).not_looked_at)
