"""From a PodMonitor to series: the real operator writes a configuration with which a real Prometheus finds pods.

What a kubelet would do is done by hand: the pods are processes here, and their status is written to the server.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tools.cluster.api import TOKEN, Cluster, Object, decoded, wait
from tools.ports import free_port

OPERATED = "monitoring"
"""Namespace of Prometheus and of what is installed."""
PROMETHEUS: Object = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "Prometheus",
    "metadata": {"name": "main"},
    "spec": {
        "version": "v3.5.0",
        "serviceAccountName": "prometheus",
        "podMonitorSelector": {},
        "podMonitorNamespaceSelector": {},
        "ruleSelector": {"matchLabels": {"role": "alert-rules"}},
        "ruleNamespaceSelector": {},
    },
}
ALERTMANAGER: Object = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "Alertmanager",
    "metadata": {"name": "main"},
    "spec": {"replicas": 1, "alertmanagerConfigSelector": {}, "alertmanagerConfigMatcherStrategy": {"type": "None"}},
}
PROGRAM = """
import sys, time
import jax, jax.numpy as jnp, jaxobs
jaxobs.start(port=int(sys.argv[1]))
step = jaxobs.jit(lambda x: x * 2)
for _ in jaxobs.steps(range(10**9)):
    step(jnp.ones(4)).block_until_ready()
    time.sleep(0.2)
"""
PODS = (
    ("research", "train-0", {"jaxobs.scrape": "true", "app.kubernetes.io/name": "train"}, "Running"),
    ("research", "train-ended", {"jaxobs.scrape": "true", "app.kubernetes.io/name": "train"}, "Succeeded"),
    ("products", "train-0", {"jaxobs.scrape": "true", "app.kubernetes.io/name": "train"}, "Running"),
    ("products", "database-0", {"app.kubernetes.io/name": "database"}, "Running"),
)
"""Namespace, name, labels and phase: two jobs of one name, a pod that has ended, and one that is none of ours."""
WANTED = {
    ("research", "train", "train-0", ""): "1",
    ("research", "train", "train-ended", "Succeeded"): "0",
    ("products", "train", "train-0", ""): "1",
}
"""`up` by namespace, job, pod and phase."""


@contextlib.contextmanager
def operator(cluster: Cluster) -> Iterator[None]:
    """prometheus-operator, with a Prometheus and an Alertmanager to look after."""
    listen = f"--web.listen-address=127.0.0.1:{free_port()}"
    with cluster.program("prometheus-operator", listen, KUBECONFIG=str(cluster.kubeconfig)):
        for each in (PROMETHEUS, ALERTMANAGER):
            cluster.apply(each, OPERATED)
        yield


def secret(cluster: Cluster, name: str, key: str, contains: str) -> str:
    """Waits until the operator writes about us into a Secret, and returns the text."""

    def read() -> str:
        with contextlib.suppress(Exception):
            found = cluster.get(f"/api/v1/namespaces/{OPERATED}/secrets/{name}")["data"][key]
            text = gzip.decompress(decoded(found)).decode()
            return text if contains in text else ""
        return ""

    found: str = wait(read, f"the operator to write {name}", 120)
    return found


def rules(cluster: Cluster) -> dict[str, str]:
    """The rule files that the operator makes of PrometheusRules."""

    def read() -> dict[str, str]:
        listed = cluster.get(f"/api/v1/namespaces/{OPERATED}/configmaps")["items"]
        return {
            name: text
            for each in listed
            if each["metadata"]["name"].startswith("prometheus-main-rulefiles")
            for name, text in (each.get("data") or {}).items()
        }

    found: dict[str, str] = wait(read, "the operator to write rule files", 120)
    return found


def configuration(cluster: Cluster, text: str, folder: Path) -> Path:
    """The operator's configuration, for a Prometheus that runs outside of the cluster."""
    # What the operator's sidecar puts in for each replica.
    config = yaml.safe_load(text.replace("$(SHARD)", "0").replace("$(POD_NAME)", "main-0"))
    folder.mkdir()
    for name, content in rules(cluster).items():
        (folder / name).write_text(content)
    config["rule_files"] = [str(folder / "*.yaml")]
    config.pop("alerting", None)
    (folder / "token").write_text(TOKEN)
    for scrape in config["scrape_configs"]:
        for found in scrape["kubernetes_sd_configs"]:
            found["api_server"] = cluster.url
            found["authorization"] = {"credentials_file": str(folder / "token")}
            found["tls_config"] = {"ca_file": str(cluster.ca)}
        scrape["scrape_interval"] = "1s"
        scrape.pop("scrape_timeout", None)
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(config))
    return path


@contextlib.contextmanager
def pods(cluster: Cluster) -> Iterator[None]:
    """Pods in namespaces other than the PodMonitor's; those that run are processes here."""
    with contextlib.ExitStack() as stack:
        for namespace, name, labels, phase in PODS:
            port = free_port()
            if phase == "Running":
                stack.enter_context(_process(port))
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": labels},
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "image": "example.org/own",
                            "ports": [{"name": "jaxobs", "containerPort": port}],
                        }
                    ]
                },
            }
            cluster.apply(pod, namespace)
            ready = [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]
            address = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
            cluster.status(pod, namespace, {"phase": phase, "conditions": ready, **address})
        yield


@contextlib.contextmanager
def _process(port: int) -> Iterator[None]:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(port)], env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def seen(cluster: Cluster, config: Path) -> dict[tuple[str, ...], str]:
    """`up` of the targets that Prometheus finds, by namespace, job, pod and phase, once it is what it should be."""
    port = free_port()
    arguments = (
        f"--config.file={config}", f"--storage.tsdb.path={config.parent / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    )  # fmt: skip
    found: dict[tuple[str, ...], str] = {}

    def asked() -> bool:
        found.clear()
        with contextlib.suppress(OSError):
            for sample in _query(port, "up"):
                labels = sample["metric"]
                names = ("namespace", "job", "pod", "pod_phase")
                found[tuple(labels.get(name, "") for name in names)] = sample["value"][1]
            steps = {each["metric"]["namespace"] for each in _query(port, "jax_steps_total > 0")}
            return found == WANTED and steps == {"research", "products"}
        return False

    with cluster.program("prometheus", *arguments), contextlib.suppress(TimeoutError):
        wait(asked, "Prometheus to scrape the pods", 120)
    return found


def _query(port: int, expr: str) -> list[Any]:
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': expr})}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        found: list[Any] = json.load(answer)["data"]["result"]
        return found
