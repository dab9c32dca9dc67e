"""A Helm chart of the same objects: each is written as it is generated, but for its values.

Rules and dashboards are files of the chart, because they are full of what Helm would take for its own templates.
"""

import copy
import json
import re
from collections.abc import Mapping

from jaxobs.base.version import __version__
from jaxobs.ops.monitoring import yaml_text
from jaxobs.ops.monitoring.deploying import chart_objects, chart_values
from jaxobs.ops.monitoring.deploying.chart_objects import Template
from jaxobs.ops.monitoring.deploying.chart_values import MARK, Given, Value
from jaxobs.ops.monitoring.deploying.kubernetes import Object
from jaxobs.ops.monitoring.site import Site

_HEAD = f"{{{{- /* {MARK}. Do not edit. */ -}}}}\n"
_HELD = re.compile(r"^(?P<indent> *(?:- )?)(?P<key>[\w./-]+): '?@@(?P<number>\d+)@@'?$", re.MULTILINE)
_HOME = "https://github.com/jaxobs/jaxobs"


def files(site: Site, rules: str, managed_rules: str, drawn: Mapping[str, str], dashboard: Object) -> dict[str, str]:
    """Returns the chart's files by path.

    Args:
      rules: the rules as Prometheus takes them, as a file.
      managed_rules: the file of rules for Google Cloud's managed Prometheus.
      drawn: the dashboards' JSON by path.
      dashboard: the ConfigMap of one of them.
    """
    found = {
        "Chart.yaml": _chart(),
        "templates/NOTES.txt": _HEAD + chart_objects.TEXTS["notes"],
        chart_objects.RULES: rules,
        chart_objects.MANAGED_RULES: managed_rules,
        **{f"{chart_objects.DASHBOARDS}/{path.rpartition('/')[2]}": content for path, content in drawn.items()},
    }
    given: Given = {chart_objects.MONITORING.name: (chart_objects.MONITORING, chart_objects.MONITORING.default)}
    for template in chart_objects.templates(site, dashboard):
        for value in template.values:
            given.setdefault(value.name, (value, chart_values.default(value, template.document)))
        found[f"templates/{template.name}.yaml"] = _HEAD + template.around.replace("OBJECT", _drawn(template))
    found["values.yaml"] = chart_values.text(given)
    found["values.schema.json"] = json.dumps(chart_values.schema(given), indent=2) + "\n"
    return found


def _drawn(template: Template) -> str:
    """Returns an object's YAML, with templates instead of its values."""
    places = {value.path: _template(value, template.document) for value in template.values if value.path}
    places.update(template.fixed)
    held = copy.deepcopy(template.document)
    for number, (*above, last) in enumerate(places):
        chart_values.at(held, above)[last] = f"@@{number}@@"
    body = yaml_text.dump(held, what="kubernetes").split("\n", 1)[1]
    if "{{" in body:
        raise ValueError(f"Helm would take a part of {template.name} for its own template")
    templates = list(places.values())

    def filled(found: re.Match[str]) -> str:
        inside = templates[int(found["number"])].replace("INDENT", str(len(found["indent"]) + 2))
        return f"{found['indent']}{found['key']}:{inside}"

    drawn, count = _HELD.subn(filled, body)
    if count != len(places):
        raise ValueError(f"{template.name}: {len(places)} places, {count} found")
    return drawn


def _template(value: Value, document: Object) -> str:
    if value.template:
        return value.template
    default = chart_values.default(value, document)
    if isinstance(default, dict | list):
        return f" {{{{- toYaml $.Values.{value.name} | nindent INDENT }}}}"
    return f" {{{{ $.Values.{value.name} | {'int' if isinstance(default, int) else 'quote'} }}}}"


def _chart() -> str:
    return yaml_text.dump(
        {
            "apiVersion": "v2",
            "name": "jaxobs",
            "description": "Scraping, alerting and recording rules, and Grafana dashboards for JAX workloads.",
            "type": "application",
            "version": __version__,
            "appVersion": __version__,
            "home": _HOME,
            "sources": [_HOME],
            "keywords": ["jax", "observability", "prometheus", "grafana"],
            "maintainers": [{"name": "jaxobs", "url": _HOME}],
        },
        what="kubernetes",
    )
