"""What goes into a cluster: checked by promtool and amtool where they can, else against the generated rules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from requirements import program

from jaxobs import alerting, generate
from jaxobs.deploying import kubernetes, prometheus
from jaxobs.generate import kubernetes as generator
from jaxobs.promql import parse
from jaxobs.site import Site

SITE = Site()
FILES = generator.files(SITE)
OBJECTS = {path: yaml.safe_load(text) for path, text in FILES.items() if path.startswith("deploy/kubernetes/")}


def test_prometheus_takes_each_configuration(tmp_path: Path) -> None:
    """With its rules beside it, and the targets in a file; each long-term store as well."""
    promtool = program("promtool")
    for path, text in {**FILES, **generate.files("alerts")}.items():
        target = tmp_path / path.removeprefix("deploy/prometheus/").removeprefix("alerts/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    configurations = sorted(tmp_path.glob("prometheus*.yaml"))
    assert len(configurations) == 1 + len(prometheus.STORES)
    for path in configurations:
        done = subprocess.run([promtool, "check", "config", str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "rules found" in done.stdout, done.stdout + done.stderr


def test_alertmanager_routes_by_severity(tmp_path: Path) -> None:
    """A page, a ticket, nothing; and the configuration is one."""
    amtool = program("amtool")
    path = tmp_path / "alertmanager.yaml"
    path.write_text(FILES["deploy/prometheus/alertmanager.yaml"], encoding="utf-8")
    checked = subprocess.run([amtool, "check-config", str(path)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for severity, receiver in (("critical", "pager"), ("warning", "tickets"), ("info", "nowhere")):
        done = subprocess.run(
            [amtool, "config", "routes", "test", f"--config.file={path}", f"severity={severity}", "alertname=JaxX"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout.strip() == receiver, done.stderr


def test_what_inhibits_is_an_alert_with_the_labels_it_needs() -> None:
    """Each alert that an inhibition names is there, and one with each static label that it asks for."""
    names = {alert.name for alert in alerting.enabled(SITE)}
    labels = {pair for alert in alerting.enabled(SITE) for pair in alert.labels.items()}
    for rule in prometheus.alertmanager()["inhibit_rules"]:
        for matcher in [*rule["source_matchers"], *rule["target_matchers"]]:
            name, _, value = matcher.replace("=~", "=").replace("!=", "=").partition("=")
            if name == "alertname" and "=~" not in matcher:
                assert json.loads(value) in names
            if name == "phase":
                assert (name, json.loads(value)) in labels


def test_kubernetes_objects_are_whole() -> None:
    """Kinds and versions, unique names, the rules as Prometheus takes them, the dashboards as they are imported."""
    kinds = {each["kind"] for each in OBJECTS.values() if "kind" in each}
    assert kinds == {"PodMonitor", "PrometheusRule", "ConfigMap", "HorizontalPodAutoscaler", "ScaledObject"}
    named = [(each["kind"], each["metadata"]["name"]) for each in OBJECTS.values() if "kind" in each]
    assert len(named) == len(set(named))
    rules = yaml.safe_load(generate.files("alerts")["alerts/jaxobs.rules.yaml"])
    assert OBJECTS["deploy/kubernetes/prometheusrule.yaml"]["spec"] == rules
    drawn = generate.files("dashboards")
    maps = [each for each in OBJECTS.values() if each.get("kind") == "ConfigMap"]
    assert {file: text for each in maps for file, text in each["data"].items()} == {
        path.rpartition("/")[2]: text for path, text in drawn.items()
    }
    for each in maps:
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert len(json.dumps(each)) < 2**20, "a ConfigMap takes 1 MiB"


def test_autoscalers_ask_for_a_metric_that_there_is() -> None:
    """The same threshold for both; the queries are PromQL over a metric of the catalogue."""
    hpa, keda = OBJECTS["deploy/kubernetes/autoscaler.yaml"], OBJECTS["deploy/kubernetes/keda.yaml"]
    metric = hpa["spec"]["metrics"][0]["pods"]
    trigger = keda["spec"]["triggers"][0]["metadata"]
    assert metric["target"]["averageValue"] == trigger["threshold"] == str(kubernetes.IN_FLIGHT)
    assert metric["metric"]["name"] in trigger["query"]
    parse(trigger["query"])
    adapter = OBJECTS["deploy/kubernetes/prometheus-adapter.values.yaml"]["rules"]["custom"][0]
    assert adapter["seriesQuery"].startswith(metric["metric"]["name"] + "{")


def test_a_sites_choices_are_in_them() -> None:
    """Matchers and the interval."""
    chosen: dict[str, Any] = {
        path: yaml.safe_load(text)
        for path, text in generator.files(Site(job="serve", matchers={"cluster": "a"}, scrape_interval="15s")).items()
        if path.endswith(".yaml")
    }
    endpoint = chosen["deploy/kubernetes/podmonitor.yaml"]["spec"]["podMetricsEndpoints"][0]
    assert endpoint["interval"] == "15s"
    assert 'job=~"serve", cluster="a"' in json.dumps(chosen["deploy/kubernetes/keda.yaml"]).replace('\\"', '"')
    assert chosen["deploy/prometheus/prometheus.yaml"]["global"]["scrape_interval"] == "15s"


@pytest.mark.parametrize("store", prometheus.STORES)
def test_long_term_stores_get_everything(store: str) -> None:
    """With a label that tells one Prometheus from another, which the stores ask for."""
    config = prometheus.prometheus(SITE, store)
    assert config["remote_write"][0]["url"] == prometheus.STORES[store]
    assert config["global"]["external_labels"]
