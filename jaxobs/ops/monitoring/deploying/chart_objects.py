"""The templates of the Helm chart: an object as it is generated, its values, and when it is created.

What is in capitals is replaced: OBJECT by the object, INDENT by an indentation.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from jaxobs.ops.monitoring.deploying import agent_objects, alertmanager_config, gke, kubernetes, prometheus
from jaxobs.ops.monitoring.deploying.chart_values import Value, declared
from jaxobs.ops.monitoring.deploying.kubernetes import NAME_LABEL, Object
from jaxobs.ops.monitoring.site import RECEIVERS, Site

OPERATOR, MANAGED = "prometheus-operator", "gke"
RULES, MANAGED_RULES = "files/jaxobs.rules.yaml", "files/gke.rules.yaml"
DASHBOARDS = "files/dashboards"
_POD = ("spec", "template", "spec")
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
    reading = agent_objects.reading_cluster()
    return [
        Template(
            name="podmonitor",
            document=kubernetes.pod_monitor(site),
            around=_when(f'and .Values.podMonitor.enabled (eq .Values.monitoring "{OPERATOR}")'),
            values=declared()["podmonitor"],
        ),
        Template(
            name="clusterpodmonitoring",
            document=gke.pod_monitoring("", site),
            around=_EACH_WORKLOAD,
            values=declared()["clusterpodmonitoring"],
            fixed=(
                (("metadata", "name"), " {{ . | quote }}"),
                (("spec", "selector", "matchLabels", NAME_LABEL), " {{ . | quote }}"),
            ),
        ),
        Template(
            name="prometheusrule",
            document=kubernetes.prometheus_rule([]),
            around=_when(f'and .Values.prometheusRule.enabled (eq .Values.monitoring "{OPERATOR}")'),
            values=declared()["prometheusrule"],
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
            values=declared()["dashboards"],
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
                around=_when(
                    "and .Values.agent.enabled .Values.agent.kubernetes" if name in reading else ".Values.agent.enabled"
                ),
                values=(*_AGENT, *declared().get(f"agent-{name}", ())),
                fixed=_AGENT_FIXED.get(name, ()),
            )
            for name, document in (agent_objects.every() | reading).items()
        ),
    ]


def _when(condition: str, before: str = "") -> str:
    return f"{{{{- if {condition} }}}}\n{before}OBJECT{{{{- end }}}}\n"


def _file(path: str) -> str:
    return f'\n{{{{ required "{_NOT_BUILT}" (.Files.Get "{path}") | indent INDENT }}}}'


_AGENT = declared()["agent"]
_ALERTMANAGER_CONFIG = (
    *declared()["alertmanagerconfig"],
    Value(
        name="alertmanagerConfig.receivers",
        path=("spec", "receivers"),
        default=[{"name": name} for name in (prometheus.AGENT, *RECEIVERS, "nowhere")],
        help="Receivers of an AlertmanagerConfig: `pager` for critical alerts, `tickets` for warnings; the agent.",
    ),
)
_READS_CLUSTER = (
    ((*_POD, "automountServiceAccountToken"), " {{ .Values.agent.kubernetes }}"),
    ((*_POD, "serviceAccountName"), f' {{{{ ternary "{prometheus.AGENT}" "default" .Values.agent.kubernetes }}}}'),
)
_AGENT_FIXED = {
    "deployment": _READS_CLUSTER,
    "clusterrolebinding": ((("subjects", 0, "namespace"), " {{ .Release.Namespace }}"),),
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
    template = f" {{{{ printf {json.dumps(query)} .Values.scaledObject.job .Release.Namespace | quote }}}}"
    return tuple(
        replace(each, template=template) if each.name == "scaledObject.job" else each
        for each in declared()["scaledobject"]
    )
