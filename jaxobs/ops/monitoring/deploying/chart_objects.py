"""The templates of the Helm chart: an object as it is generated, its values, and when it is created.

What is in capitals is replaced: OBJECT by the object, INDENT by an indentation.
"""

import json
from dataclasses import dataclass, replace

from jaxobs.ops.monitoring.deploying import agent_objects, alertmanager_config, gke, kubernetes, prometheus
from jaxobs.ops.monitoring.deploying.chart_values import Value, declared, read
from jaxobs.ops.monitoring.deploying.kubernetes import NAME_LABEL, Object
from jaxobs.ops.monitoring.site import RECEIVERS, Site

OPERATOR, MANAGED = "prometheus-operator", "gke"
RULES, MANAGED_RULES = "files/jaxobs.rules.yaml", "files/gke.rules.yaml"
DASHBOARDS = "files/dashboards"
_POD = ("spec", "template", "spec")
TEXTS = read("chart_texts.toml")
"""Texts of files of the chart."""
_NOT_BUILT = "this chart lacks its rules and dashboards: build it with `jaxobs generate kubernetes --out DIR`"
"""The error of the chart as it is in our repository, where the copies of rules and dashboards are left out."""

MONITORING = Value(
    name="monitoring",
    default=OPERATOR,
    choices=(OPERATOR, MANAGED),
    help="Whose objects are created: prometheus-operator's, or those of Google Cloud's managed Prometheus.",
)


Fixed = tuple[tuple[str | int, ...], str]
"""A place, and the template there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A file of the chart's `templates/`."""

    name: str
    document: Object
    around: str
    """Text of the file, with OBJECT once."""
    values: tuple[Value, ...]
    """Values that the file uses; one with a path replaces what is at that place."""
    fixed: tuple[Fixed, ...] = ()
    """Places that are replaced by a fixed template."""


def templates(site: Site, dashboard: Object) -> list[Template]:
    """Returns the chart's templates, given the ConfigMap of any one dashboard."""
    name, workload, keys = ("metadata", "name"), ("spec", "selector", "matchLabels", NAME_LABEL), ("data",)
    config = alertmanager_config.alertmanager_config(site)
    return [
        _template("podmonitor", kubernetes.pod_monitor(site), _of("podMonitor", OPERATOR)),
        _template("clusterpodmonitoring", gke.pod_monitoring("", site), TEXTS["each_workload"],
                  (name, " {{ . | quote }}"), (workload, " {{ . | quote }}")),
        _template("prometheusrule", kubernetes.prometheus_rule([]), _of("prometheusRule", OPERATOR),
                  (("spec",), _file(RULES))),
        _template("clusterrules", gke.rules([]), _of("prometheusRule", MANAGED), (("spec",), _file(MANAGED_RULES))),
        _template("dashboards", {**dashboard, "data": {"FILE": ""}}, TEXTS["each_dashboard"],
                  (name, ' {{ base $path | trimSuffix ".json" }}-dashboard'),
                  (keys, "\n  {{ base $path }}: |\n{{ $.Files.Get $path | indent 4 }}")),
        replace(
            _template("alertmanagerconfig", config, _when(".Values.alertmanagerConfig.enabled", TEXTS["receivers"])),
            values=(*declared()["alertmanagerconfig"], _RECEIVERS),
        ),
        replace(
            _template("scaledobject", kubernetes.scaled_object(site), _when(".Values.scaledObject.enabled"),
                      (name, " {{ .Values.scaledObject.deployment | quote }}")),
            values=_scaled(site),
        ),
        *(
            _template(f"agent-{name}", document, _when(condition), *_AGENT_FIXED.get(name, ()), more=_AGENT)
            for condition, objects in _AGENT_OBJECTS
            for name, document in objects().items()
        ),
    ]  # fmt: skip


def _template(name: str, document: Object, around: str, *fixed: Fixed, more: tuple[Value, ...] = ()) -> Template:
    """Returns a template with the values that are declared for it, behind some others."""
    return Template(
        name=name, document=document, around=around, values=(*more, *declared().get(name, ())), fixed=fixed
    )  # fmt: skip


def _of(group: str, operator: str) -> str:
    return _when(f'and .Values.{group}.enabled (eq .Values.monitoring "{operator}")')


def _when(condition: str, before: str = "") -> str:
    return f"{{{{- if {condition} }}}}\n{before}OBJECT{{{{- end }}}}\n"


def _file(path: str) -> str:
    return f'\n{{{{ required "{_NOT_BUILT}" (.Files.Get "{path}") | indent INDENT }}}}'


_AGENT = declared()["agent"]
_RECEIVERS = Value(
    name="alertmanagerConfig.receivers",
    path=("spec", "receivers"),
    default=[{"name": name} for name in (prometheus.AGENT, *RECEIVERS, "nowhere")],
    help="Receivers of an AlertmanagerConfig: `pager` for critical alerts, `tickets` for warnings; the agent.",
)
_READS_CLUSTER = (
    ((*_POD, "automountServiceAccountToken"), " {{ .Values.agent.kubernetes }}"),
    ((*_POD, "serviceAccountName"), f' {{{{ ternary "{prometheus.AGENT}" "default" .Values.agent.kubernetes }}}}'),
)
_AGENT_OBJECTS = (
    (".Values.agent.enabled", agent_objects.every),
    ("and .Values.agent.enabled .Values.agent.kubernetes", agent_objects.reading_cluster),
)
_AGENT_FIXED = {
    "deployment": _READS_CLUSTER,
    "clusterrolebinding": ((("subjects", 0, "namespace"), " {{ .Release.Namespace }}"),),
}


def _scaled(site: Site) -> tuple[Value, ...]:
    query = kubernetes.scaling_query(site, job="@JOB", namespace="@NAMESPACE").replace("%", "%%")
    for token in ("@JOB", "@NAMESPACE"):
        query = query.replace(token, "%s")
    template = f" {{{{ printf {json.dumps(query)} .Values.scaledObject.job .Release.Namespace | quote }}}}"
    return tuple(
        replace(each, template=template) if each.name == "scaledObject.job" else each
        for each in declared()["scaledobject"]
    )
