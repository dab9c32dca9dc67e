"""Kubernetes objects: for prometheus-operator, Grafana's sidecar, and autoscalers. `objects.yaml` has most of them."""

import copy
import functools
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import Any, cast

from jaxobs.base.version import __version__
from jaxobs.ops.monitoring import yaml_text
from jaxobs.ops.monitoring.site import Site

Object = dict[str, Any]

NAME_LABEL = "app.kubernetes.io/name"
"""Label of a pod that says what it belongs to: it becomes `job`."""
LABELS = {NAME_LABEL: "jaxobs", "app.kubernetes.io/part-of": "jaxobs"}


def read(name: str, file: str = "objects.yaml") -> Object:
    """Returns what a file of this folder has under a name, to put in what the site has chosen."""
    return cast("Object", copy.deepcopy(_all(file)[name]))


@functools.cache
def _all(file: str) -> Any:
    text = (resources.files(__package__) / file).read_text(encoding="utf-8")
    return yaml_text.load(text.replace("${version}", __version__))[0]


def pod_monitor(site: Site) -> Object:
    """Returns the object that scrapes every pod with the label `jaxobs.scrape: "true"` and the port `jaxobs`."""
    found = read("podmonitor")
    found["spec"]["podMetricsEndpoints"][0]["interval"] = site.scrape_interval
    return found


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


def adapter_rules(site: Site) -> Object:
    """Returns values for the chart of prometheus-adapter, which hands the metric to the autoscaler."""
    found, matchers = read("adapter"), ['namespace!=""', 'pod!=""', *site.extra_matchers()]
    found["rules"]["custom"][0]["seriesQuery"] = f"jax_requests_in_flight{{{', '.join(matchers)}}}"
    return found


def scaling_query(site: Site, *, job: str, namespace: str) -> str:
    """Returns the query for one job's requests in flight: a sum over all jobs would scale each by the others' load."""
    chosen = ", ".join([f'job="{job}"', f'namespace="{namespace}"', *site.extra_matchers()])
    return f"sum (avg_over_time(jax_requests_in_flight{{{chosen}}}[2m]))"


def scaled_object(site: Site) -> Object:
    """Returns an autoscaler for KEDA, which asks Prometheus by itself."""
    found = read("scaledobject")
    found["spec"]["triggers"][0]["metadata"]["query"] = scaling_query(site, job="serve", namespace="default")
    return found
