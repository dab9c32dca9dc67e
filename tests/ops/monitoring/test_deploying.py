"""Manifests and configurations: checked by promtool and amtool where these can, else against the generated rules."""

import fnmatch
import functools
import graphlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from helpers import crd_checks, examples
from helpers.paths import ROOT
from helpers.requirements import program

from jaxobs.base import callers, config
from jaxobs.ops.monitoring import alerting, generate
from jaxobs.ops.monitoring.deploying import gke, prometheus
from jaxobs.ops.monitoring.generate import kubernetes as generator
from jaxobs.ops.monitoring.promql import parse
from jaxobs.ops.monitoring.site import Site

SITE = Site()

RECEIVERS = {name: {"webhook_configs": [{"url": f"https://{name}.example.org/"}]} for name in ("pager", "tickets")}
quickly = functools.partial(yaml.load, Loader=yaml.CSafeLoader)


@functools.cache
def files() -> dict[str, str]:
    """Returns the generated texts by path."""
    return generator.files(SITE)


@functools.cache
def objects() -> dict[str, Any]:
    """Returns the generated objects of Kubernetes by path."""
    return loaded("deploy/kubernetes/")


def loaded(folder: str) -> dict[str, Any]:
    """The generated YAML of a folder, less Kustomize's lists."""
    chosen = (path for path in files() if path.startswith(folder) and not path.endswith("kustomization.yaml"))
    return {path: quickly(files()[path]) for path in chosen}


def test_prometheus_takes_each_configuration(tmp_path: Path) -> None:
    """With its rules beside it, and the targets in a file; each long-term store as well."""
    promtool = program("promtool")
    for path, text in {**files(), **generate.files("alerts")}.items():
        target = tmp_path / path.removeprefix("deploy/prometheus/").removeprefix("alerts/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    configurations = sorted(tmp_path.glob("prometheus*.yaml"))
    assert len(configurations) == 1 + len(prometheus.STORES)
    for path in configurations:
        done = subprocess.run([promtool, "check", "config", str(path)], capture_output=True, text=True, check=False)
        found = re.search(r"SUCCESS: \d+ rules found", done.stdout)
        assert done.returncode == 0 and found, done.stdout + done.stderr
        assert all(found[0] in (ROOT / "docs" / page).read_text() for page in ("alerts.md", "tutorials/fleet.md"))


def test_alertmanager_routes_by_severity(tmp_path: Path) -> None:
    """A page, a ticket, nothing, the agent next to them; refused while a receiver has no destination."""
    amtool = program("amtool")
    path = tmp_path / "alertmanager.yaml"
    paged = {"pager": {"webhook_configs": [{"url": "https://pager.example.org/"}]}}
    watched = {**RECEIVERS, "watchdog": {"webhook_configs": [{"url": "https://hc.example.org/"}]}}
    for named, refused in (({}, "name-a-destination"), (paged, "name-a-destination"), (RECEIVERS, ""), (watched, "")):
        text = generator.files(Site(receivers=named))["deploy/prometheus/alertmanager.yaml"]
        path.write_text(text, encoding="utf-8")
        checked = subprocess.run([amtool, "check-config", str(path)], capture_output=True, text=True, check=False)
        assert bool(checked.returncode) == bool(refused) and refused in checked.stderr + checked.stdout, checked
    for severity, name, receiver in (
        ("critical", "JaxX", "jaxobs-agent,pager"), ("warning", "JaxX", "jaxobs-agent,tickets"),
        ("info", "JaxX", "nowhere"), ("x", "JaxX", "tickets"), ("info", alerting.ALWAYS, "watchdog"),
    ):  # fmt: skip
        done = subprocess.run(
            [amtool, "config", "routes", "test", f"--config.file={path}", f"severity={severity}", f"alertname={name}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout.strip() == receiver, done.stderr
    always = [each["alert"] for each in alerting.alert_groups(Site(receivers=watched))[-1]["rules"]]
    assert always[-1] == alerting.ALWAYS and alerting.ALWAYS not in str(alerting.alert_groups(Site(extended=True)))


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ("severity=critical", "jaxobs-agent,pager"),
        ("severity=warning", "jaxobs-agent,tickets"),
        ("severity=info", "nowhere"),
        ("severity=page", "tickets"),
        ("alertname=Watchdog", "tickets"),
    ],
)
def test_pager_and_tickets_keep_their_alerts(tmp_path: Path, labels: str, receivers: str) -> None:
    """The text of docs/agent.md, which is what is generated, asked for each severity and for alerts of others."""
    amtool, path = program("amtool"), tmp_path / "alertmanager.yml"
    (shown,) = (
        each.text for each in examples.blocks("yaml") if each.page == "docs/agent.md" and "receivers:" in each.text
    )
    path.write_text(shown)
    given = yaml.safe_load(shown)
    named = {each.pop("name"): each for each in yaml.safe_load(shown)["receivers"]}
    assert given == prometheus.alertmanager(Site(receivers={name: named[name] for name in RECEIVERS}))
    for command in (["check-config", str(path)], ["config", "routes", "test", f"--config.file={path}", labels]):
        done = subprocess.run([amtool, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == receivers


@pytest.mark.parametrize(
    ("first", "later"),
    [("JaxArrayLeak", {"JaxHostMemoryGrowth", "JaxDeviceMemoryFillingUp", "JaxDeviceMemoryHeadroomLow"}),
     ("JaxExecutableLeak", {"JaxHostMemoryGrowth"}), ("JaxPersistentCacheNotSaving", {"JaxSloCacheHitsBurn"})],
)  # fmt: skip
def test_what_follows_in_the_extended_set_is_kept_back(first: str, later: set[str]) -> None:
    """A leak fills memory later, and a cache that saves nothing is missed later: of one mechanism, one ticket."""
    rules = prometheus.alertmanager(Site(extended=True))["inhibit_rules"]
    [targets] = [each["target_matchers"] for each in rules if f'alertname="{first}"' in each["source_matchers"]]
    assert later == {*re.findall(r"Jax\w+", str(targets))}


def test_what_inhibits_is_an_alert_with_the_labels_it_needs() -> None:
    """Each alert that an inhibition names is there, and one with each static label that it asks for."""
    every = Site(extended=True)
    names = {alert.name for alert in alerting.enabled(every)}
    labels = {pair for alert in alerting.enabled(every) for pair in alert.labels.items()}
    order = graphlib.TopologicalSorter({alert.name: alert.inhibits for alert in alerting.enabled(every)})
    assert {*order.static_order()} == names, "two that inhibit each other are both kept back"
    for rule in prometheus.alertmanager(every)["inhibit_rules"]:
        for matcher in [*rule["source_matchers"], *rule["target_matchers"]]:
            name, _, value = matcher.replace("=~", "=").replace("!=", "=").partition("=")
            if name == "alertname" and "=~" not in matcher:
                assert json.loads(value) in names
            if name == "phase":
                assert (name, json.loads(value)) in labels


def test_kubernetes_objects_are_whole() -> None:
    """Kinds and versions, unique names, the rules as Prometheus takes them, the dashboards as they are imported."""
    kinds = {each["kind"] for each in objects().values() if "kind" in each}
    operators = {"PodMonitor", "PrometheusRule", "AlertmanagerConfig", "ScaledObject"}
    agent = {"Deployment", "Service", "PersistentVolumeClaim", "NetworkPolicy",
             "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}  # fmt: skip
    assert kinds == {*operators, *agent, "ConfigMap", "HorizontalPodAutoscaler"}
    named = [(each["kind"], each["metadata"]["name"]) for each in objects().values() if "kind" in each]
    assert len(named) == len(set(named))
    rules = quickly(generate.files("alerts")["alerts/jaxobs.rules.yaml"])
    assert objects()["deploy/kubernetes/prometheusrule.yaml"]["spec"] == rules
    drawn = generate.files("dashboards")
    maps = [each for each in objects().values() if each.get("kind") == "ConfigMap"]
    assert {file: text for each in maps for file, text in each["data"].items()} == {
        path.rpartition("/")[2]: text for path, text in drawn.items()
    }
    assert {each["metadata"]["labels"]["grafana_dashboard"] for each in maps} == {"1"}
    assert max(len(json.dumps(each)) for each in maps) < 2**20, "a ConfigMap takes 1 MiB"


def test_alertmanager_config_is_alertmanagers() -> None:
    """Prometheus-operator's object has the routes, inhibitions and receivers of the plain configuration."""
    spec = objects()["deploy/kubernetes/alertmanagerconfig.yaml"]["spec"]
    plain = quickly(files()["deploy/prometheus/alertmanager.yaml"])

    def matchers(found: list[dict[str, str]]) -> list[str]:
        return [f'{each["name"]}{each["matchType"]}"{each["value"]}"' for each in found]

    assert spec["route"]["groupBy"] == plain["route"]["group_by"]
    assert [(matchers(each.get("matchers", [])), each["receiver"]) for each in spec["route"]["routes"]] == [
        (each.get("matchers", []), each["receiver"]) for each in plain["route"]["routes"]
    ]
    assert [(matchers(each["sourceMatch"]), matchers(each["targetMatch"])) for each in spec["inhibitRules"]] == [
        (each["source_matchers"], each["target_matchers"]) for each in plain["inhibit_rules"]
    ]
    used = {spec["route"]["receiver"], *(each["receiver"] for each in spec["route"]["routes"])}
    assert used == {each["name"] for each in spec["receivers"]}


GKE_RULE = {"record", "alert", "expr", "for", "labels", "annotations"}
GKE_PROTECTED = {"project_id", "location", "cluster", "namespace", "job", "instance"}


def test_gke_gets_the_same_rules_without_what_it_lacks(tmp_path: Path) -> None:
    """Rules have no `keep_firing_for`, groups nothing but name, interval and rules; Prometheus takes the rest."""
    groups = loaded("deploy/gke/")["deploy/gke/rules.yaml"]["spec"]["groups"]
    ours = objects()["deploy/kubernetes/prometheusrule.yaml"]["spec"]["groups"]
    assert {key for group in groups for key in group} == {"name", "interval", "rules"}
    assert {key for group in groups for rule in group["rules"] for key in rule} == GKE_RULE
    for group in ours:
        for rule in group["rules"]:
            rule.pop("keep_firing_for", None)
    assert groups == ours
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    command = [program("promtool"), "check", "rules", str(tmp_path / "rules.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_gke_scrapes_each_workload_as_a_job() -> None:
    """An object for each, named after what it selects; protected labels are not touched; the same limits."""
    monitor = objects()["deploy/kubernetes/podmonitor.yaml"]["spec"]
    found = [each for each in loaded("deploy/gke/").values() if each["kind"] == "ClusterPodMonitoring"]
    assert [each["metadata"]["name"] for each in found] == list(gke.EXAMPLES)
    for workload in found:
        spec = workload["spec"]
        assert spec["selector"]["matchLabels"] == {
            **monitor["selector"]["matchLabels"], monitor["jobLabel"]: workload["metadata"]["name"],
        }  # fmt: skip
        (endpoint,) = spec["endpoints"]
        (theirs,) = monitor["podMetricsEndpoints"]
        assert endpoint.items() <= theirs.items()
        assert spec["limits"] == {"samples": monitor["sampleLimit"], "labels": monitor["labelLimit"]}
        assert [pair["from"] for pair in spec["targetLabels"]["fromPod"]] == monitor["podTargetLabels"]
        assert not GKE_PROTECTED & {pair["to"] for pair in spec["targetLabels"]["fromPod"]}


def test_each_object_is_in_a_kustomization() -> None:
    """An object that is in none is applied by its own name, because it needs what not every cluster has."""
    listed: set[str] = set()
    for path in files():
        folder = path.rpartition("/")[0]
        if path.endswith("kustomization.yaml"):
            listed |= {f"{folder}/{name}" for name in quickly(files()[path])["resources"]}
    alone = {f"deploy/kubernetes/{name}.yaml" for name in ("alertmanagerconfig", "autoscaler", "keda")}
    wanted = {path for path, each in {**objects(), **loaded("deploy/gke/")}.items() if "kind" in each}
    assert wanted - listed == alone


@pytest.mark.linters
def test_the_commented_patch_guards_the_pods() -> None:
    """Without the comment signs, it adds to the PodMonitor's endpoint what the chart's value would."""
    text = files()["deploy/kubernetes/kustomization.yaml"]
    [patch] = quickly(re.sub(r"(?m)^# (?=patches:| )", "", text))["patches"]
    monitor = objects()["deploy/kubernetes/podmonitor.yaml"]
    assert patch["target"] == {"kind": monitor["kind"], "name": monitor["metadata"]["name"]}
    place = "/spec/podMetricsEndpoints/0/"
    added = {each["path"].removeprefix(place): each["value"] for each in quickly(patch["patch"])}
    assert added.keys() == {"scheme", "tlsConfig", "authorization"}
    endpoint = {**monitor["spec"]["podMetricsEndpoints"][0], **added}
    guarded = {**monitor, "spec": {**monitor["spec"], "podMetricsEndpoints": [endpoint]}}
    assert crd_checks.mistakes(guarded) == []


def examples_of(page: str) -> list[Any]:
    return [quickly(each.text) for each in examples.blocks("yaml") if each.page == page]


def test_the_pod_of_the_docs_is_scraped() -> None:
    """The pod has the label, the port and the name that the PodMonitor looks for."""
    (deployment,) = (each for each in examples_of("docs/kubernetes.md") if each.get("kind") == "Deployment")
    monitor = objects()["deploy/kubernetes/podmonitor.yaml"]["spec"]
    template = deployment["spec"]["template"]
    assert monitor["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert template["metadata"]["labels"][monitor["jobLabel"]] == deployment["metadata"]["name"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    assert container["ports"] == [
        {"name": monitor["podMetricsEndpoints"][0]["port"], "containerPort": config.Settings().port}
    ]
    assert container["env"] == [{"name": "JAXOBS_ADDR", "value": "0.0.0.0"}]


def test_the_values_of_the_docs_are_values_of_the_chart() -> None:
    """The chart's schema takes each value of the page, and refuses a misspelt one."""
    schema = json.loads(files()["deploy/helm/jaxobs/values.schema.json"])
    given = [each for each in examples_of("docs/kubernetes.md") if "kind" not in each]
    assert len(given) >= 2
    for each in [*given, quickly(files()["deploy/helm/jaxobs/values.yaml"])]:
        jsonschema.validate(each, schema)
    with pytest.raises(jsonschema.ValidationError, match="intervall"):
        jsonschema.validate({"podMonitor": {"intervall": "15s"}}, schema)
    page = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    named = [
        name for name in re.findall(r"^\| `([a-zA-Z]+(?:\.[a-zA-Z]+)?)`", page, re.MULTILINE) if "yaml" not in name
    ]
    assert "monitoring" in named and "scaledObject.enabled" in named
    for name in named:
        group, _, rest = name.partition(".")
        inside = schema["properties"][group]
        assert not rest or rest in inside["properties"], name


def test_autoscalers_ask_for_a_metric_that_there_is() -> None:
    """Both autoscalers have the same threshold, and their queries are PromQL over a metric of the catalogue."""
    hpa, keda = objects()["deploy/kubernetes/autoscaler.yaml"], objects()["deploy/kubernetes/keda.yaml"]
    metric = hpa["spec"]["metrics"][0]["pods"]
    trigger = keda["spec"]["triggers"][0]["metadata"]
    assert metric["target"]["averageValue"] == trigger["threshold"] == "4"
    assert metric["metric"]["name"] in trigger["query"]
    parse(trigger["query"])
    adapter = objects()["deploy/kubernetes/prometheus-adapter.values.yaml"]["rules"]["custom"][0]
    assert adapter["seriesQuery"].startswith(metric["metric"]["name"] + "{")


def test_the_agent_answers_for_its_service_alone() -> None:
    """Alertmanager asks the Service; the kubelet and Prometheus ask the pod's address; a web page, any name."""
    [container] = objects()["deploy/kubernetes/agent/deployment.yaml"]["spec"]["template"]["spec"]["containers"]
    assert {"NAMESPACE", "POD_IP"} <= {each["name"] for each in container["env"]}
    given = " ".join(container["args"]).replace("$(NAMESPACE)", "monitoring").replace("$(POD_IP)", "10.0.0.7")
    known = callers.known_hosts("0.0.0.0", re.findall(r"--allow-host=(\S+)", given), closed=False)
    service = [f"jaxobs-agent{more}" for more in ("", ".monitoring", ".monitoring.svc")]
    for host in (*service, "jaxobs-agent.monitoring.svc.cluster.local", "10.0.0.7", "localhost"):
        assert callers.is_asked_for([f"{host}:9465"], known), host
    assert not callers.is_asked_for(["evil.com"], known)


def test_a_sites_choices_are_in_them() -> None:
    """Matchers and the interval."""
    chosen: dict[str, Any] = {
        path: quickly(text)
        for path, text in generator.files(Site(job="serve", matchers={"cluster": "a"}, scrape_interval="15s")).items()
        if path.endswith(".yaml") and "/helm/" not in path
    }
    endpoint = chosen["deploy/kubernetes/podmonitor.yaml"]["spec"]["podMetricsEndpoints"][0]
    assert endpoint["interval"] == "15s"
    assert 'job="serve", namespace="default", cluster="a"' in json.dumps(chosen["deploy/kubernetes/keda.yaml"]).replace(
        '\\"', '"'
    )
    assert chosen["deploy/prometheus/prometheus.yaml"]["global"]["scrape_interval"] == "15s"


@pytest.mark.parametrize("store", prometheus.STORES)
def test_long_term_stores_get_everything(store: str) -> None:
    """With a label that tells one Prometheus from another, which the stores ask for."""
    config = prometheus.prometheus(SITE, store)
    assert config["remote_write"][0]["url"] == prometheus.STORES[store]
    assert config["global"]["external_labels"]


def test_a_repository_may_leave_the_copies_out(tmp_path: Path) -> None:
    """`generate all` writes everything into an empty folder; where the chart is without its copies, it stays so."""
    copies = {path for path in files() if any(fnmatch.fnmatch(path, pattern) for pattern in generator.COPIES)}
    own = {path: text for path, text in files().items() if path not in copies}
    own_rules = {path: text for path, text in own.items() if "/agent" not in path}  # the agent has none
    assert sum(text.count("\n") for text in own_rules.values()) < 1500, "a copy is committed"
    assert generator.kept(files(), tmp_path) == files()
    generate.write(own, tmp_path)
    assert generator.kept({**files(), "alerts/a.yaml": ""}, tmp_path) == {**own, "alerts/a.yaml": ""}
    assert set(generate.stale(files(), tmp_path)) == copies
    generate.write({path: files()[path] for path in list(copies)[:1]}, tmp_path)
    assert generator.kept(files(), tmp_path) == files()


def test_git_ignores_the_copies() -> None:
    """`jaxobs generate kubernetes` in a clone builds them in place."""
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {f"/{pattern}" for pattern in generator.COPIES} <= set(ignored)
