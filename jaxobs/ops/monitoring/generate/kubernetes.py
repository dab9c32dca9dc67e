"""Manifests that bring rules and dashboards into a cluster, and configurations for those who run without one."""

import fnmatch
import json
from collections.abc import Mapping
from pathlib import Path

from jaxobs.ops.monitoring import alerting, yaml_text
from jaxobs.ops.monitoring.deploying import agent_objects, alertmanager_config, chart, gke, kubernetes, prometheus
from jaxobs.ops.monitoring.generate import dashboards
from jaxobs.ops.monitoring.site import Site

_GUARDED = """\
# For pods with a certificate and a token, from a Secret `jaxobs-tls` in this namespace:
# patches:
#   - target: {kind: PodMonitor, name: jaxobs}
#     patch: |
#       - {op: add, path: /spec/podMetricsEndpoints/0/scheme, value: https}
#       - op: add
#         path: /spec/podMetricsEndpoints/0/tlsConfig
#         value: {serverName: train.example.org, ca: {secret: {name: jaxobs-tls, key: ca.crt}}}
#       - op: add
#         path: /spec/podMetricsEndpoints/0/authorization
#         value: {credentials: {name: jaxobs-tls, key: token}}
"""
"""A JSON patch, because a patch by merge would replace the whole list of endpoints."""
COPIES = (
    "deploy/helm/jaxobs/files/*",
    "deploy/kubernetes/prometheusrule.yaml",
    "deploy/kubernetes/dashboards/*-dashboard.yaml",
    "deploy/gke/rules.yaml",
)
"""Files that repeat the rules and dashboards: a repository may leave them out, and `.gitignore` of ours does."""


def files(site: Site) -> dict[str, str]:
    """Returns the contents by path."""
    groups = alerting.groups(site)
    drawn = dashboards.files(site)
    maps = {f"{each['metadata']['name']}.yaml": each for each in kubernetes.dashboards(drawn)}
    found = {
        "kubernetes/kustomization.yaml": kubernetes.kustomization(
            ["podmonitor.yaml", "prometheusrule.yaml", "dashboards"]
        ),
        "kubernetes/podmonitor.yaml": kubernetes.pod_monitor(site),
        "kubernetes/prometheusrule.yaml": kubernetes.prometheus_rule(groups),
        "kubernetes/alertmanagerconfig.yaml": alertmanager_config.alertmanager_config(site),
        "kubernetes/agent/kustomization.yaml": kubernetes.kustomization(
            f"{name}.yaml" for name in agent_objects.every()
        ),
        **{f"kubernetes/agent/{name}.yaml": each for name, each in agent_objects.every().items()},
        "kubernetes/agent-reading-cluster/kustomization.yaml": agent_objects.kustomization_of_reading(),
        **{
            f"kubernetes/agent-reading-cluster/{name}.yaml": each
            for name, each in agent_objects.reading_cluster().items()
        },
        "kubernetes/autoscaler.yaml": kubernetes.read("autoscaler"),
        "kubernetes/prometheus-adapter.values.yaml": kubernetes.adapter_rules(site),
        "kubernetes/keda.yaml": kubernetes.scaled_object(site),
        "kubernetes/dashboards/kustomization.yaml": kubernetes.kustomization(maps),
        **{f"kubernetes/dashboards/{name}": each for name, each in maps.items()},
        "gke/kustomization.yaml": kubernetes.kustomization(
            [*(f"{name}-podmonitoring.yaml" for name in gke.EXAMPLES), "rules.yaml", "../kubernetes/dashboards"]
        ),
        **{f"gke/{name}-podmonitoring.yaml": gke.pod_monitoring(name, site) for name in gke.EXAMPLES},
        "gke/rules.yaml": gke.rules(groups),
        "prometheus/prometheus.yaml": prometheus.prometheus(site),
        "prometheus/alertmanager.yaml": prometheus.alertmanager(site),
        **{f"prometheus/prometheus.{store}.yaml": prometheus.prometheus(site, store) for store in prometheus.STORES},
    }
    texts = {path: _yaml(each) for path, each in found.items()}
    texts["kubernetes/kustomization.yaml"] += _GUARDED
    texts["prometheus/targets/train.json"] = json.dumps(prometheus.TARGETS, indent=2) + "\n"
    rules = (_yaml({"groups": groups}), _yaml(gke.rule_groups(groups)))
    for path, text in chart.files(site, *rules, drawn, next(iter(maps.values()))).items():
        texts[f"helm/jaxobs/{path}"] = text
    return {f"deploy/{path}": text for path, text in texts.items()}


def kept(wanted: Mapping[str, str], out: Path) -> dict[str, str]:
    """Returns the wanted files that belong into `out`: all of them, unless `out` leaves the copies out.

    A repository that has the chart and the bases without a single copy of the rules and dashboards builds these when it
    needs them, with `jaxobs generate kubernetes`.
    """
    copies = {path for path in wanted if any(fnmatch.fnmatch(path, pattern) for pattern in COPIES)}
    own = {path for path in wanted if path.startswith("deploy/")} - copies
    present = {path for path in copies | own if (out / path).exists()}
    left_out = copies if present & own and not present & copies else set()
    return {path: content for path, content in wanted.items() if path not in left_out}


def _yaml(document: object) -> str:
    return yaml_text.dump(document, what="kubernetes")
