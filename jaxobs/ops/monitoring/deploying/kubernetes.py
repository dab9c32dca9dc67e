"""Kubernetes objects: for prometheus-operator, Grafana's sidecar, and autoscalers.

What is written is in the documentation of these: PodMonitor and PrometheusRule (monitoring.coreos.com/v1),
HorizontalPodAutoscaler (autoscaling/v2), ScaledObject (keda.sh/v1alpha1), prometheus-adapter's rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jaxobs.ops.monitoring.site import Site

Object = dict[str, Any]

PORT = "jaxobs"
"""Name of the container port that is scraped."""
MOST_SAMPLES = 3000
"""A process keeps below 2,500 series by itself (see the design of the store); more than this is somebody else's."""
SCALED = "serve"
"""Name of the deployment that the autoscalers are about."""
IN_FLIGHT = 4
"""Requests under way for each replica that an autoscaler aims at."""

NAME_LABEL = "app.kubernetes.io/name"
"""Label of a pod that says what it belongs to: it becomes `job`."""
POD_LABELS = ("app.kubernetes.io/version", "batch.kubernetes.io/job-completion-index")
"""Further labels of pods that their series get."""
SCRAPED = {"jaxobs.scrape": "true"}
"""Label of the pods that are scraped."""
MOST_LABELS = 32

_CALM = {
    "scaleDown": {
        "stabilizationWindowSeconds": 600, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 300}],
    }
}  # fmt: skip
"""A new replica compiles or loads for minutes: one that is removed too early is expensive to get back."""

LABELS = {NAME_LABEL: "jaxobs", "app.kubernetes.io/part-of": "jaxobs"}


def pod_monitor(site: Site) -> Object:
    """Returns the object that scrapes every pod with the label `jaxobs.scrape: "true"` and the port `jaxobs`.

    `job` comes from the pod's own name label, else it would be the monitor's, the same for two workloads.
    Pods that have ended stay targets, with their phase as `pod_phase`: so the rules know who finished. Nothing is
    scraped of them, since another pod may have their address by then.
    """
    phase = {"sourceLabels": ["__meta_kubernetes_pod_phase"], "regex": "Succeeded|Failed"}
    endpoint = {
        "port": PORT, "path": "/metrics", "interval": site.scrape_interval, "filterRunning": False,
        "relabelings": [
            {"sourceLabels": ["__address__"], "targetLabel": "instance"},
            {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"},
            {**phase, "regex": "(Succeeded|Failed)", "targetLabel": "pod_phase"},
            {**phase, "targetLabel": "__address__", "replacement": "127.0.0.1:1"},
        ],
    }  # fmt: skip
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": "jaxobs", "labels": LABELS},
        "spec": {
            # Without it, prometheus-operator looks in the monitor's own namespace alone.
            "namespaceSelector": {"any": True},
            "selector": {"matchLabels": SCRAPED},
            "jobLabel": NAME_LABEL,
            "podTargetLabels": list(POD_LABELS),
            "sampleLimit": MOST_SAMPLES,
            "labelLimit": MOST_LABELS,
            "podMetricsEndpoints": [endpoint],
        },
    }


def prometheus_rule(groups: list[Object]) -> Object:
    """Returns the rules as an object of prometheus-operator."""
    metadata = {"name": "jaxobs", "labels": {**LABELS, "role": "alert-rules"}}
    return {
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": metadata,
        "spec": {"groups": groups},
    }  # fmt: skip


def dashboards(files: dict[str, str]) -> Iterator[Object]:
    """Yields each dashboard as a ConfigMap that Grafana's sidecar finds by its label.

    Args:
      files: the dashboards' JSON by path.
    """
    for path, text in files.items():
        file = path.rpartition("/")[2]
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": file.removesuffix(".json") + "-dashboard",
                "labels": {**LABELS, "grafana_dashboard": "1"},
                "annotations": {"grafana_folder": "JAX"},
            },
            "data": {file: text},
        }


def kustomization(resources: Iterable[str]) -> Object:
    """Returns a Kustomize base, by which `kubectl apply -k` takes these files and folders."""
    return {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": list(resources)}


def autoscaler() -> Object:
    """Returns an autoscaler that sets replicas by the requests in flight.

    An accelerator is busy to 100 % with one request or with fifty, so its utilization says nothing of how many more it
    could take; the requests that wait do. https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
    """
    metric = {
        "metric": {"name": "jax_requests_in_flight"},
        "target": {"type": "AverageValue", "averageValue": str(IN_FLIGHT)},
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": SCALED, "labels": LABELS},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": SCALED},
            "minReplicas": 1,
            "maxReplicas": 8,
            "metrics": [{"type": "Pods", "pods": metric}],
            "behavior": _CALM,
        },
    }


def adapter_rules(site: Site) -> Object:
    """Returns values for the chart of prometheus-adapter, which hands the metric to `autoscaler`."""
    matchers = ", ".join(['namespace!=""', 'pod!=""', *site.extra_matchers()])
    rule = {
        "seriesQuery": f"jax_requests_in_flight{{{matchers}}}",
        "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
        "metricsQuery": "sum by (<<.GroupBy>>) (avg_over_time(<<.Series>>{<<.LabelMatchers>>}[2m]))",
    }
    return {"rules": {"custom": [rule]}}


def scaling_query(site: Site, *, job: str, namespace: str) -> str:
    """Returns the query for one job's requests in flight: a sum over all jobs would scale each by the others' load."""
    chosen = ", ".join([f'job="{job}"', f'namespace="{namespace}"', *site.extra_matchers()])
    return f"sum (avg_over_time(jax_requests_in_flight{{{chosen}}}[2m]))"


def scaled_object(site: Site) -> Object:
    """Returns an autoscaler for KEDA, which asks Prometheus by itself."""
    query = scaling_query(site, job=SCALED, namespace="default")
    trigger = {
        "type": "prometheus",
        "metadata": {"serverAddress": "http://prometheus:9090", "query": query, "threshold": str(IN_FLIGHT)},
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": SCALED, "labels": LABELS},
        "spec": {
            "scaleTargetRef": {"name": SCALED}, "minReplicaCount": 1, "maxReplicaCount": 8, "cooldownPeriod": 600,
            # Without it, `cooldownPeriod` alone would be about the last replica only.
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _CALM}},
            "triggers": [trigger],
        },
    }  # fmt: skip
