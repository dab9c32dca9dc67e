"""Kubernetes objects: for prometheus-operator, Grafana's sidecar, and autoscalers.

What is written stands in the documentation of these: PodMonitor and PrometheusRule (monitoring.coreos.com/v1),
HorizontalPodAutoscaler (autoscaling/v2), ScaledObject (keda.sh/v1alpha1), prometheus-adapter's rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxobs.site import Site

Object = dict[str, Any]

PORT = "jaxobs"
"""Name of the container port that is scraped."""
MOST_SAMPLES = 3000
"""A process keeps below 2,500 series by itself (see the design of the store); more than this is somebody else's."""
ANNOTATION_LIMIT = 256 * 1024
"""Bytes of annotations that Kubernetes takes: a larger object has to be applied by the server (`--server-side`)."""
IN_FLIGHT = 4
"""Requests under way for each replica that an autoscaler aims at."""

_LABELS = {"app.kubernetes.io/name": "jaxobs", "app.kubernetes.io/part-of": "jaxobs"}


def pod_monitor(site: Site) -> Object:
    """Scrapes every pod that has the label `jaxobs.scrape: "true"` and a port called `jaxobs`.

    `job` comes from the pod's own name label, else it would be the monitor's and two workloads could not be told apart.
    Pods that have ended are kept for one more scrape, so that their last counts are not lost.
    """
    endpoint = {"port": PORT, "path": "/metrics", "interval": site.scrape_interval, "filterRunning": False}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": "jaxobs", "labels": _LABELS},
        "spec": {
            "selector": {"matchLabels": {"jaxobs.scrape": "true"}},
            "jobLabel": "app.kubernetes.io/name",
            "podTargetLabels": ["app.kubernetes.io/version", "batch.kubernetes.io/job-completion-index"],
            "sampleLimit": MOST_SAMPLES,
            "labelLimit": 32,
            "podMetricsEndpoints": [endpoint],
        },
    }


def prometheus_rule(groups: list[Object]) -> Object:
    """The rules as an object of prometheus-operator."""
    metadata = {"name": "jaxobs", "labels": {**_LABELS, "role": "alert-rules"}}
    return {
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": metadata,
        "spec": {"groups": groups},
    }  # fmt: skip


def dashboards(files: dict[str, str]) -> Iterator[Object]:
    """Each dashboard as a ConfigMap that Grafana's sidecar finds by its label.

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
                "labels": {**_LABELS, "grafana_dashboard": "1"},
                "annotations": {"grafana_folder": "JAX"},
            },
            "data": {file: text},
        }


def autoscaler() -> Object:
    """Replicas by the requests under way.

    An accelerator is busy to 100 % with one request or with fifty, so its utilization says nothing of how many more it
    could take; the requests that wait do. https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
    """
    metric = {
        "metric": {"name": "jax_requests_in_flight"},
        "target": {"type": "AverageValue", "averageValue": str(IN_FLIGHT)},
    }
    calm = {"stabilizationWindowSeconds": 600, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 300}]}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "serve", "labels": _LABELS},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"},
            "minReplicas": 1,
            "maxReplicas": 8,
            "metrics": [{"type": "Pods", "pods": metric}],
            # A new replica compiles or loads for minutes: what is taken away too early is dear to get back.
            "behavior": {"scaleDown": calm},
        },
    }


def adapter_rules(site: Site) -> Object:
    """How prometheus-adapter hands the metric to the autoscaler above: values of its Helm chart."""
    matchers = ", ".join(['namespace!=""', 'pod!=""', *site.extra_matchers()])
    rule = {
        "seriesQuery": f"jax_requests_in_flight{{{matchers}}}",
        "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
        "metricsQuery": "sum by (<<.GroupBy>>) (avg_over_time(<<.Series>>{<<.LabelMatchers>>}[2m]))",
    }
    return {"rules": {"custom": [rule]}}


def scaled_object(site: Site) -> Object:
    """The same for KEDA, which asks Prometheus itself."""
    query = f"sum (avg_over_time(jax_requests_in_flight{{{site.targets()}}}[2m]))"
    trigger = {
        "type": "prometheus",
        "metadata": {"serverAddress": "http://prometheus:9090", "query": query, "threshold": str(IN_FLIGHT)},
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "serve", "labels": _LABELS},
        "spec": {
            "scaleTargetRef": {"name": "serve"}, "minReplicaCount": 1, "maxReplicaCount": 8, "cooldownPeriod": 600,
            "triggers": [trigger],
        },
    }  # fmt: skip
