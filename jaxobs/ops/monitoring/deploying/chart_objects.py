"""The templates of the Helm chart: an object as it is generated, its values, and when it is created.

What is in capitals is replaced: OBJECT by the object, INDENT by an indentation.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from jaxobs.ops.monitoring.deploying import agent_objects, alertmanager_config, gke, kubernetes, prometheus
from jaxobs.ops.monitoring.deploying.chart_values import Value
from jaxobs.ops.monitoring.deploying.kubernetes import NAME_LABEL, Object
from jaxobs.ops.monitoring.site import RECEIVERS, Site

OPERATOR, MANAGED = "prometheus-operator", "gke"
RULES, MANAGED_RULES = "files/jaxobs.rules.yaml", "files/gke.rules.yaml"
DASHBOARDS = "files/dashboards"
_NOT_BUILT = "this chart lacks its rules and dashboards: build it with `jaxobs generate kubernetes --out DIR`"
"""The error of the chart as it is in our repository, where the copies of rules and dashboards are left out."""

MONITORING = Value(
    name="monitoring",
    default=OPERATOR,
    choices=(OPERATOR, MANAGED),
    help="Whose objects are created: prometheus-operator's, or those of Google Cloud's managed Prometheus.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A file of the chart's `templates/`."""

    name: str
    document: Object
    around: str
    """Text of the file, with OBJECT once."""
    values: tuple[Value, ...]
    """Values that the file uses; one with a path replaces what is at that place."""
    fixed: tuple[tuple[tuple[str | int, ...], str], ...] = ()
    """Places that are replaced by a fixed template."""


def templates(site: Site, dashboard: Object) -> list[Template]:
    """Returns the chart's templates, given the ConfigMap of any one dashboard."""
    scraped = (_ENABLED, _LABELS, _INTERVAL, _NAMESPACES, _SAMPLES)
    return [
        Template(
            name="podmonitor",
            document=kubernetes.pod_monitor(site),
            around=_when(f'and .Values.podMonitor.enabled (eq .Values.monitoring "{OPERATOR}")'),
            values=scraped,
        ),
        Template(
            name="clusterpodmonitoring",
            document=gke.pod_monitoring("", site),
            around=_EACH_WORKLOAD,
            values=(
                replace(_INTERVAL, path=("spec", "endpoints", 0, "interval")),
                replace(_SAMPLES, path=("spec", "limits", "samples")),
                _WORKLOADS,
            ),
            fixed=(
                (("metadata", "name"), " {{ . | quote }}"),
                (("spec", "selector", "matchLabels", NAME_LABEL), " {{ . | quote }}"),
            ),
        ),
        Template(
            name="prometheusrule",
            document=kubernetes.prometheus_rule([]),
            around=_when(f'and .Values.prometheusRule.enabled (eq .Values.monitoring "{OPERATOR}")'),
            values=_PROMETHEUS_RULE,
            fixed=((("spec",), _file(RULES)),),
        ),
        Template(
            name="clusterrules",
            document=gke.rules([]),
            around=_when(f'and .Values.prometheusRule.enabled (eq .Values.monitoring "{MANAGED}")'),
            values=(),
            fixed=((("spec",), _file(MANAGED_RULES)),),
        ),
        Template(
            name="dashboards",
            document={**dashboard, "data": {"FILE": ""}},
            around=_EACH_DASHBOARD,
            values=_DASHBOARDS,
            fixed=(
                (("metadata", "name"), ' {{ base $path | trimSuffix ".json" }}-dashboard'),
                (("data",), "\n  {{ base $path }}: |\n{{ $.Files.Get $path | indent 4 }}"),
            ),
        ),
        Template(
            name="alertmanagerconfig",
            document=alertmanager_config.alertmanager_config(site),
            around=_when(".Values.alertmanagerConfig.enabled", _FILLED),
            values=_ALERTMANAGER_CONFIG,
        ),
        Template(
            name="scaledobject",
            document=kubernetes.scaled_object(site),
            around=_when(".Values.scaledObject.enabled"),
            values=_scaled(site),
            fixed=((("metadata", "name"), " {{ .Values.scaledObject.deployment | quote }}"),),
        ),
        *(
            Template(
                name=f"agent-{name}",
                document=document,
                around=_when(".Values.agent.enabled"),
                values=(_AGENT, *_AGENT_PARTS.get(name, ())),
            )
            for name, document in agent_objects.every().items()
        ),
    ]


def _when(condition: str, before: str = "") -> str:
    return f"{{{{- if {condition} }}}}\n{before}OBJECT{{{{- end }}}}\n"


def _file(path: str) -> str:
    return f'\n{{{{ required "{_NOT_BUILT}" (.Files.Get "{path}") | indent INDENT }}}}'


_ENABLED = Value(name="podMonitor.enabled", default=True, help="Whether pods are scraped.")
_LABELS = Value(
    name="podMonitor.labels",
    path=("metadata", "labels"),
    help="Labels of the PodMonitor; your Prometheus' podMonitorSelector must match them.",
)
_INTERVAL = Value(
    name="podMonitor.interval", path=("spec", "podMetricsEndpoints", 0, "interval"), help="How often pods are scraped."
)
_NAMESPACES = Value(
    name="podMonitor.namespaces",
    path=("spec", "namespaceSelector"),
    default=[],
    help="Namespaces of the pods; empty for all. prometheus-operator only.",
    template="""
    {{- with .Values.podMonitor.namespaces }}
    matchNames: {{- toYaml . | nindent 6 }}
    {{- else }}
    any: true
    {{- end }}""",
)
_SAMPLES = Value(
    name="podMonitor.sampleLimit", path=("spec", "sampleLimit"), help="A scrape with more samples than this fails."
)
_WORKLOADS = Value(
    name="gke.workloads",
    default=[],
    help=f"With `monitoring: {MANAGED}`: values of the pods' label {NAME_LABEL}; each is a `job` of its own.",
)
_PROMETHEUS_RULE = (
    Value(name="prometheusRule.enabled", default=True, help="Whether there are recording and alerting rules."),
    Value(
        name="prometheusRule.labels",
        path=("metadata", "labels"),
        help="Labels of the PrometheusRule; your Prometheus' ruleSelector must match them.",
    ),
)
_DASHBOARDS = (
    Value(name="dashboards.enabled", default=True, help="Whether there are ConfigMaps with the Grafana dashboards."),
    Value(
        name="dashboards.labels",
        path=("metadata", "labels"),
        help="Labels of the ConfigMaps; Grafana's sidecar looks for one of them.",
    ),
    Value(
        name="dashboards.annotations",
        path=("metadata", "annotations"),
        help="Annotations of the ConfigMaps; the sidecar reads Grafana's folder from one of them.",
    ),
)
_ALERTMANAGER_CONFIG = (
    Value(
        name="alertmanagerConfig.enabled",
        default=False,
        help="Whether Alertmanager gets routes and inhibitions for these alerts.",
    ),
    Value(
        name="alertmanagerConfig.labels",
        path=("metadata", "labels"),
        help="Labels of the AlertmanagerConfig; your Alertmanager's alertmanagerConfigSelector must match them.",
    ),
    Value(
        name="alertmanagerConfig.receivers",
        path=("spec", "receivers"),
        default=[{"name": name} for name in (prometheus.AGENT, *RECEIVERS, "nowhere")],
        help="Receivers of an AlertmanagerConfig: `pager` for critical alerts, `tickets` for warnings; the agent.",
    ),
)
_AGENT = Value(
    name="agent.enabled",
    default=False,
    help="Whether `jaxobs agent` runs in the release's namespace, with the keys of a Secret `jaxobs-agent`.",
)
_CONTAINER = ("spec", "template", "spec", "containers", 0)
_AGENT_PARTS = {
    "deployment": (
        Value(name="agent.image", path=(*_CONTAINER, "image"), help="Your image: Python with `jaxobs[agent]`."),
        Value(name="agent.prometheus", path=(*_CONTAINER, "env", 0, "value"), help="Address of Prometheus."),
        Value(name="agent.url", path=(*_CONTAINER, "env", 1, "value"), help="Address at which people reach the agent."),
        Value(name="agent.resources", path=(*_CONTAINER, "resources"), help="Resources of the container."),
    ),
    "persistentvolumeclaim": (
        Value(
            name="agent.storage",
            path=("spec", "resources", "requests", "storage"),
            help="Size of the volume of reports.",
        ),
    ),
    "networkpolicy": (
        Value(
            name="agent.from",
            path=("spec", "ingress", 0, "from"),
            help="Peers that reach the agent: Alertmanager, Prometheus, and what forwards readers to it.",
        ),
        Value(name="agent.to", path=("spec", "egress", 0, "ports"), help="Ports that the agent reaches."),
    ),
}
_FILLED = """\
{{- range .Values.alertmanagerConfig.receivers }}
{{- if and (ne .name "nowhere") (lt (len .) 2) }}
{{- fail (printf "alertmanagerConfig.receivers: `%s` has no destination, so its alerts would reach nobody" .name) }}
{{- end }}
{{- end }}
"""
_EACH_WORKLOAD = f"""\
{{{{- if and .Values.podMonitor.enabled (eq .Values.monitoring "{MANAGED}") }}}}
{{{{- if not .Values.gke.workloads }}}}
{{{{- fail "gke.workloads: name the workloads to scrape" }}}}
{{{{- end }}}}
{{{{- range .Values.gke.workloads }}}}
---
OBJECT{{{{- end }}}}
{{{{- end }}}}
"""
_EACH_DASHBOARD = f"""\
{{{{- if .Values.dashboards.enabled }}}}
{{{{- if not (.Files.Glob "{DASHBOARDS}/*.json") }}}}
{{{{- fail "{_NOT_BUILT}" }}}}
{{{{- end }}}}
{{{{- range $path, $_ := .Files.Glob "{DASHBOARDS}/*.json" }}}}
---
OBJECT{{{{- end }}}}
{{{{- end }}}}
"""


def _scaled(site: Site) -> tuple[Value, ...]:
    query = kubernetes.scaling_query(site, job="@JOB", namespace="@NAMESPACE").replace("%", "%%")
    for token in ("@JOB", "@NAMESPACE"):
        query = query.replace(token, "%s")
    first = ("spec", "triggers", 0, "metadata")
    return (
        Value(
            name="scaledObject.enabled",
            default=False,
            help="Whether KEDA scales a Deployment of the release's namespace by its requests in flight.",
        ),
        Value(
            name="scaledObject.deployment",
            path=("spec", "scaleTargetRef", "name"),
            help="Name of the Deployment.",
        ),
        Value(
            name="scaledObject.job",
            path=(*first, "query"),
            default=kubernetes.SCALED,
            template=f" {{{{ printf {json.dumps(query)} .Values.scaledObject.job .Release.Namespace | quote }}}}",
            help=f"The label `job` of its pods: their label {NAME_LABEL}.",
        ),
        Value(name="scaledObject.serverAddress", path=(*first, "serverAddress"), help="Address of Prometheus."),
        Value(name="scaledObject.threshold", path=(*first, "threshold"), help="Requests in flight for each replica."),
        Value(name="scaledObject.minReplicaCount", path=("spec", "minReplicaCount"), help="Fewest replicas."),
        Value(name="scaledObject.maxReplicaCount", path=("spec", "maxReplicaCount"), help="Most replicas."),
        Value(
            name="scaledObject.cooldownPeriod",
            path=("spec", "cooldownPeriod"),
            help="Seconds without requests before the last replica goes, with `minReplicaCount: 0`.",
        ),
    )
