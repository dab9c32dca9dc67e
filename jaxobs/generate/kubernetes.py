"""What brings rules and dashboards into a cluster, or to a Prometheus and an Alertmanager without one."""

from __future__ import annotations

import json

from jaxobs import alerting, yaml_text
from jaxobs.deploying import kubernetes, prometheus
from jaxobs.generate import dashboards
from jaxobs.site import Site


def files(site: Site) -> dict[str, str]:
    """Contents by path."""
    groups = [*alerting.recording_groups(site), *alerting.alert_groups(site)]
    found = {
        "kubernetes/podmonitor.yaml": _yaml(kubernetes.pod_monitor(site)),
        "kubernetes/prometheusrule.yaml": _yaml(kubernetes.prometheus_rule(groups)),
        "kubernetes/autoscaler.yaml": _yaml(kubernetes.autoscaler()),
        "kubernetes/prometheus-adapter.values.yaml": _yaml(kubernetes.adapter_rules(site)),
        "kubernetes/keda.yaml": _yaml(kubernetes.scaled_object(site)),
        "prometheus/prometheus.yaml": _yaml(prometheus.prometheus(site)),
        "prometheus/alertmanager.yaml": _yaml(prometheus.alertmanager()),
        "prometheus/targets/train.json": json.dumps(prometheus.TARGETS, indent=2) + "\n",
    }
    for store in prometheus.STORES:
        found[f"prometheus/prometheus.{store}.yaml"] = _yaml(prometheus.prometheus(site, store))
    for each in kubernetes.dashboards(dashboards.files(site)):
        found[f"kubernetes/{each['metadata']['name']}.yaml"] = _yaml(each)
    return {f"deploy/{path}": text for path, text in found.items()}


def _yaml(document: object) -> str:
    return yaml_text.dump(document, what="kubernetes")
