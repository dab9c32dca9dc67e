"""The built Helm chart and Kustomize bases are the generated objects, and the operators' CRDs take these."""

import copy
import functools
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers import crd_checks
from helpers.paths import ROOT
from helpers.requirements import built

import jaxobs
from jaxobs import cli
from jaxobs.ops.monitoring import generate
from jaxobs.ops.monitoring.generate import kubernetes as generator
from jaxobs.ops.monitoring.site import Site
from tools import release

pytestmark = [pytest.mark.linters, pytest.mark.settled, pytest.mark.timeout(1200)]

DEPLOY = ROOT / "build" / "deploy"
CHART = DEPLOY / "helm" / "jaxobs"
FILLED = {"alertmanagerConfig": {"enabled": True, "receivers": [
    {"name": "jaxobs-agent", "webhookConfigs": [{"url": "http://jaxobs-agent:9465/webhook"}]},
    {"name": "pager", "pagerdutyConfigs": [{"routingKey": {"name": "pagerduty", "key": "routing-key"}}]},
    {"name": "tickets", "webhookConfigs": [{"url": "https://tickets.example.org/"}]},
    {"name": "nowhere"},
]}}  # fmt: skip
"""Receivers as a site has them."""
Objects = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(autouse=True, scope="module")
def chart_is_built() -> None:
    """`make chart`."""
    assert cli.main(["generate", "kubernetes", "--out", str(ROOT / "build")]) == 0


def keyed(text: str) -> Objects:
    """The objects of a stream of YAML documents by kind and name."""
    documents = [each for each in yaml.load_all(text, Loader=crd_checks.Loader) if each]
    found = {(each["kind"], each["metadata"]["name"]): each for each in documents}
    assert len(found) == len(documents)
    return found


@functools.cache
def generated() -> dict[str, Any]:
    """Returns the generated documents for a cluster by path; the chart's files as text."""
    return {
        path.removeprefix("deploy/"): text if "/helm/" in path else yaml.load(text, Loader=crd_checks.Loader)
        for path, text in generator.files(Site()).items()
    }


def objects(folder: str) -> Objects:
    """The objects among the generated files of a folder."""
    found = [
        each
        for path, each in generated().items()
        if path.startswith(folder) and not path.startswith("helm/") and isinstance(each, dict)
    ]
    return {(each["kind"], each["metadata"]["name"]): each for each in found if "metadata" in each}


def kustomize(folder: Path) -> Objects:
    """Returns the objects that Kustomize makes of a base."""
    done = subprocess.run([built("kustomize"), "build", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return keyed(done.stdout)


def helm(values: dict[str, Any], folder: Path, chart: Path = CHART, *, command: str = "template") -> tuple[int, str]:
    """Helm's exit code, and what it writes: the objects, or what is wrong."""
    (folder / "values.yaml").write_text(json.dumps(values))
    name = ["jaxobs"] if command == "template" else ["--strict"]
    done = subprocess.run(
        [built("helm"), command, *name, str(chart), "--values", str(folder / "values.yaml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout if command == "template" and not done.returncode else done.stdout + done.stderr


def drawn(values: dict[str, Any], folder: Path, chart: Path = CHART) -> Objects:
    """The chart's objects with some values."""
    code, text = helm(values, folder, chart)
    assert code == 0, text
    return keyed(text)


def test_base_is_what_is_generated() -> None:
    """`kubectl apply -k` takes the PodMonitor, the rules, and each dashboard from the base."""
    base = kustomize(DEPLOY / "kubernetes")
    files = ("kubernetes/podmonitor", "kubernetes/prometheusrule", "kubernetes/dashboards/")
    assert base == {name: each for prefix in files for name, each in objects(prefix).items()}
    assert len(base) == 8


def test_base_for_gke_is_what_is_generated() -> None:
    """Google Cloud's objects stand in the place of prometheus-operator's."""
    assert kustomize(DEPLOY / "gke") == {**objects("gke/"), **objects("kubernetes/dashboards/")}


def test_chart_is_the_base(tmp_path: Path) -> None:
    """Without values, Helm and Kustomize say the same."""
    assert drawn({}, tmp_path) == kustomize(DEPLOY / "kubernetes")


def test_chart_for_gke_is_its_base(tmp_path: Path) -> None:
    """As soon as the workloads of the base are named."""
    values = {"monitoring": "gke", "gke": {"workloads": ["serve", "train"]}}
    assert drawn(values, tmp_path) == kustomize(DEPLOY / "gke")


def test_what_is_optional_in_the_chart_is_what_is_generated(tmp_path: Path) -> None:
    """KEDA's object; the agent's; and Alertmanager's, but for its receivers."""
    found = drawn({"scaledObject": {"enabled": True}, "agent": {"enabled": True}, **FILLED}, tmp_path)
    agent = kustomize(DEPLOY / "kubernetes" / "agent")
    assert len(agent) == 4 and agent.items() <= found.items() and agent == objects("kubernetes/agent/")
    assert found["ScaledObject", "serve"] == generated()["kubernetes/keda.yaml"]
    config = copy.deepcopy(generated()["kubernetes/alertmanagerconfig.yaml"])
    config["spec"]["receivers"] = FILLED["alertmanagerConfig"]["receivers"]
    assert found["AlertmanagerConfig", "jaxobs"] == config


def test_an_agent_that_reads_the_cluster_lists_and_no_more(tmp_path: Path) -> None:
    """Chart and base differ in the namespace of the release only."""
    base = kustomize(DEPLOY / "kubernetes" / "agent-reading-cluster")
    [subject] = base["ClusterRoleBinding", "jaxobs-agent"]["subjects"]
    subject["namespace"] = "default"
    found = drawn({"agent": {"enabled": True, "kubernetes": True}}, tmp_path)
    for given in (base, found):  # a patch of Kustomize puts its variable first
        [container] = given["Deployment", "jaxobs-agent"]["spec"]["template"]["spec"]["containers"]
        container["env"].sort(key=lambda one: str(one["name"]))
    assert len(base) == 7 and {name: found[name] for name in base} == base
    rules = base["ClusterRole", "jaxobs-agent"]["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list"}
    listed = {"pods", "events", "nodes", "replicasets", "controllerrevisions"}
    assert {each for rule in rules for each in rule["resources"]} == listed


@pytest.mark.parametrize(
    "values",
    [{}, {"monitoring": "gke", "gke": {"workloads": ["train"]}},
     {"scaledObject": {"enabled": True}, "agent": {"enabled": True, "kubernetes": True}, **FILLED}],
    ids=["as it is", "gke", "optional"],
)  # fmt: skip
def test_helm_lint_is_clean(values: dict[str, Any], tmp_path: Path) -> None:
    """With warnings as errors."""
    code, said = helm(values, tmp_path, command="lint")
    told = [line for line in said.splitlines() if line.startswith("[") and "icon is recommended" not in line]
    assert (code, told) == (0, []), said


GUARDED = {
    "scheme": "https", "tlsConfig": {"ca": {"secret": {"name": "jaxobs-tls", "key": "ca.crt"}}},
    "authorization": {"credentials": {"name": "jaxobs-tls", "key": "token"}},
}  # fmt: skip
CHOICES: list[tuple[dict[str, Any], tuple[str, str], tuple[str | int, ...], Any]] = [
    ({"podMonitor": {"interval": "15s"}}, ("PodMonitor", "jaxobs"), ("podMetricsEndpoints", 0, "interval"), "15s"),
    ({"podMonitor": {"endpoint": GUARDED}}, ("PodMonitor", "jaxobs"), ("podMetricsEndpoints", 0, "authorization"),
     GUARDED["authorization"]),
    ({"podMonitor": {"namespaces": ["a", "b"]}}, ("PodMonitor", "jaxobs"), ("namespaceSelector",),
     {"matchNames": ["a", "b"]}),
    ({"podMonitor": {"sampleLimit": 2_000_000}}, ("PodMonitor", "jaxobs"), ("sampleLimit",), 2_000_000),
    ({"scaledObject": {"enabled": True, "deployment": "llm"}}, ("ScaledObject", "llm"), ("scaleTargetRef", "name"),
     "llm"),
    ({"scaledObject": {"enabled": True, "job": "llm"}}, ("ScaledObject", "serve"), ("triggers", 0, "metadata", "query"),
     'sum (avg_over_time(jax_requests_in_flight{job="llm", namespace="default"}[2m]))'),
]  # fmt: skip


@pytest.mark.parametrize(("values", "name", "path", "wanted"), CHOICES, ids=lambda each: str(each)[:50])
def test_a_value_changes_its_place(
    values: dict[str, Any], name: tuple[str, str], path: tuple[str | int, ...], wanted: Any, tmp_path: Path
) -> None:
    """A value changes the place that it is for, and nothing else."""
    found, usual = drawn(values, tmp_path), drawn({}, tmp_path)
    place: Any = found[name]["spec"]
    for key in path:
        place = place[key]
    assert place == wanted
    assert crd_checks.mistakes(found[name]) == []
    assert {key for key in found if found[key] != usual.get(key)} == {name}


def test_labels_are_added(tmp_path: Path) -> None:
    """A Prometheus that selects by a label of its own gets it, beside ours."""
    found = drawn({"prometheusRule": {"labels": {"release": "stack"}}}, tmp_path)["PrometheusRule", "jaxobs"]
    usual = drawn({}, tmp_path)["PrometheusRule", "jaxobs"]
    assert found["metadata"]["labels"] == {**usual["metadata"]["labels"], "release": "stack"}


SWITCHES = {"podMonitor": {"PodMonitor"}, "prometheusRule": {"PrometheusRule"}, "dashboards": {"ConfigMap"}}


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_part_can_be_left_out(switch: str, tmp_path: Path) -> None:
    """Each part has a switch, and without one part all the others are there."""
    left = {kind for kind, _ in drawn({}, tmp_path)} - SWITCHES[switch]
    assert {kind for kind, _ in drawn({switch: {"enabled": False}}, tmp_path)} == left


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"podMonitors": {}}, "podMonitors"),
    ({"podMonitor": {"intervall": "15s"}}, "intervall"),
    ({"podMonitor": {"sampleLimit": "many"}}, "sampleLimit"),
    ({"monitoring": "datadog"}, "prometheus-operator"),
    ({"monitoring": "gke"}, "gke.workloads: name the workloads to scrape"),
    ({"alertmanagerConfig": {"enabled": True}}, "`jaxobs-agent` has no destination, so its alerts would reach nobody"),
]


@pytest.mark.parametrize(("values", "why"), REFUSED, ids=lambda each: str(each)[:50])
def test_a_value_that_cannot_be_meant_is_refused(values: dict[str, Any], why: str, tmp_path: Path) -> None:
    """With a sentence that names it."""
    code, said = helm(values, tmp_path)
    assert code and why in said, said


def test_chart_of_a_release(tmp_path: Path) -> None:
    """The packed chart has jaxobs' version and the objects of the built one."""
    packed = release.chart(tmp_path)
    with tarfile.open(packed) as archive, archive.extractfile("jaxobs/Chart.yaml") as file:  # type: ignore[union-attr]
        about = yaml.safe_load(file)
    assert about["version"] == about["appVersion"] == jaxobs.__version__ and jaxobs.__version__ in packed.name
    assert drawn({}, tmp_path, packed) == drawn({}, tmp_path)


def test_chart_that_is_not_built_is_refused(tmp_path: Path) -> None:
    """The chart as the repository has it, without the copies of rules and dashboards, says how to build it."""
    shutil.copytree(CHART, tmp_path / "jaxobs", ignore=shutil.ignore_patterns("files"))
    for values in ({}, {"prometheusRule": {"enabled": False}}, {"monitoring": "gke", "gke": {"workloads": ["a"]}}):
        code, said = helm(values, tmp_path, tmp_path / "jaxobs")
        assert code and "jaxobs generate kubernetes --out DIR" in said, said


def test_chart_of_a_site(tmp_path: Path) -> None:
    """A chart generated for a site has the site's rules and interval, without any value."""
    site = Site(scrape_interval="15s", runbook_url="https://wiki.example.org/jax", matchers={"cluster": "a%b"})
    files = generator.files(site)
    generate.write(files, tmp_path)
    found = drawn({"scaledObject": {"enabled": True}}, tmp_path, tmp_path / "deploy" / "helm" / "jaxobs")
    assert found["PodMonitor", "jaxobs"]["spec"]["podMetricsEndpoints"][0]["interval"] == "15s"
    assert "https://wiki.example.org/jax/" in json.dumps(found["PrometheusRule", "jaxobs"])
    assert found["ScaledObject", "serve"] == keyed(files["deploy/kubernetes/keda.yaml"])["ScaledObject", "serve"]


# ------------------------------------------------------------------------------------------------------- CRDs

KINDS = ("PodMonitor", "PrometheusRule", "AlertmanagerConfig", "ScaledObject")


def test_an_autoscaler_without_prometheus_keeps_its_replicas() -> None:
    """KEDA scales down to one replica otherwise, in the middle of the day."""
    spec = keyed(generator.files(Site())["deploy/kubernetes/keda.yaml"])["ScaledObject", "serve"]["spec"]
    assert spec["minReplicaCount"] < spec["fallback"]["replicas"] <= spec["maxReplicaCount"]
    assert spec["fallback"]["behavior"] == "currentReplicasIfHigher"


@pytest.mark.parametrize("kind", KINDS)
def test_the_operators_schemas_take_what_is_generated(kind: str) -> None:
    """Every object of their kinds, with no field that they do not know."""
    found = [each for each in objects("").values() if each["kind"] == kind]
    assert found
    assert [mistake for each in found for mistake in crd_checks.mistakes(each)] == []


def test_the_operators_schemas_take_a_sites_receivers(tmp_path: Path) -> None:
    """As the chart draws them."""
    assert crd_checks.mistakes(drawn(FILLED, tmp_path)["AlertmanagerConfig", "jaxobs"]) == []


FAULTS: list[tuple[str, tuple[str | int, ...], Any]] = [
    ("PodMonitor", ("namespaceSelectors",), {"any": True}),
    ("PodMonitor", ("podMetricsEndpoints", 0, "interval"), "soon"),
    ("PodMonitor", ("podMetricsEndpoints", 0, "filter_running"), False),
    ("PrometheusRule", ("groups", 0, "rules", 0, "keepFiringFor"), "5m"),
    ("PrometheusRule", ("groups", 0, "rules", 0, "expr"), None),
    ("AlertmanagerConfig", ("route", "group_by"), ["job"]),
    ("AlertmanagerConfig", ("inhibitRules", 0, "sourceMatch", 0, "matchType"), "=="),
    ("ScaledObject", ("maxReplicaCount",), "8"),
    ("ScaledObject", ("triggers", 0, "metadata", "threshold"), 4),
]


@pytest.mark.parametrize(("kind", "path", "value"), FAULTS, ids=lambda each: str(each)[:50])
def test_the_operators_schemas_find_mistakes(kind: str, path: tuple[str | int, ...], value: Any) -> None:
    """A field that there is not, and a value that does not fit."""
    (faulty,) = (copy.deepcopy(each) for each in objects("").values() if each["kind"] == kind)
    place: Any = faulty["spec"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert crd_checks.mistakes(faulty)
