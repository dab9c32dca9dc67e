"""Rules as Prometheus takes them, and their promtool tests: made of the declarations and a site's choices."""

import dataclasses
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import quote_plus

from jaxobs.base.errors import SettingError, did_you_mean
from jaxobs.base.links import page_url
from jaxobs.facts.verdicts import SEVERITIES
from jaxobs.ops.monitoring import burn_rates, latency_objectives, objectives, promql, recordings, rules
from jaxobs.ops.monitoring.objective_types import Objective
from jaxobs.ops.monitoring.rule_types import ORDER, Alert, Case, Fired
from jaxobs.ops.monitoring.site import WATCHDOG, AlertChoice, ObjectiveChoice, Site

Rule = dict[str, Any]

_TEMPLATE = re.compile(r"\{\{(.+?)\}\}")
_QUERIED = re.compile(r"\{\{ with query \(.+?\) \}\}(.*?)\{\{ end \}\}")
_LABEL = re.compile(r"\$(labels\.(\w+)|externalURL)\s*(?:\| (urlquery|reReplaceAll .*))?")


def declared(site: Site) -> list[Alert]:
    """Returns all alerts, those of the objectives included: by concern, then by severity, then by name."""
    found = [*rules.alerts(), *(alert for each in wanted_objectives(site) for alert in burn_rates.alerts(each))]
    return sorted(found, key=lambda each: (ORDER.index(each.concern), SEVERITIES.index(each.severity), each.name))


def offered(site: Site) -> list[Alert]:
    """Returns the alerts that the site did not switch off: those that are generated, and the extended set."""
    return [alert for alert in declared(site) if site.alerts.get(alert.name, AlertChoice()).enabled]


def enabled(site: Site) -> list[Alert]:
    """Returns the alerts that are generated."""
    return [each for each in offered(site) if site.extended or each.name in site.alerts or not each.extended]


def wanted_objectives(site: Site) -> list[Objective]:
    """Returns the objectives that the site wants, its own included, with its targets: by name."""
    found = []
    for objective in known_objectives(site):
        choice = site.objectives.get(objective.name, ObjectiveChoice())
        if choice.enabled:
            target = objective.target if choice.target is None else Decimal(repr(choice.target))
            found.append(dataclasses.replace(objective, target=target, period=choice.period or objective.period))
    return found


def known_objectives(site: Site) -> list[Objective]:
    """Returns the built-in objectives and the site's own, by name.

    An objective of the site takes the place of a built-in one with its name, and keeps its page of the runbooks.
    """
    brought_in = [*objectives.objectives(), *latency_objectives.objectives(site.latency)]
    found = {each.name: each for each in brought_in}
    for own in site.slos:
        brought = found.get(own.name)
        if brought is not None:
            same = (own.bad, own.total) == (brought.bad, brought.total)
            example = brought.example if same else None
            if own.description == brought.text():
                kept = ("description", "denominator", "absent", "pages", "extended", "culprit", "inhibits")
                own = dataclasses.replace(own, **{name: getattr(brought, name) for name in kept})
            own = dataclasses.replace(own, guide=brought.guide, example=example)
        found[own.name] = own
    return sorted(found.values(), key=lambda each: each.name)


def thresholds(alert: Alert, site: Site) -> dict[str, float]:
    """Returns the values of an alert's thresholds, by name."""
    chosen = site.alerts.get(alert.name, AlertChoice()).thresholds
    return {name: chosen.get(name, each.value) for name, each in alert.thresholds.items()}


def expression(alert: Alert, site: Site) -> str:
    """Returns an alert's expression as Prometheus takes it."""
    return site.filled(alert.expr, thresholds(alert, site))


def recording_groups(site: Site) -> list[Rule]:
    """Returns the groups of recording rules."""
    return [
        {
            "name": f"jaxobs-{group.name}",
            "interval": group.interval,
            "rules": [
                {
                    "record": rule.name,
                    "expr": site.filled(rule.expr),
                    **({"labels": dict(rule.labels)} if rule.labels else {}),
                }
                for rule in group.rules
            ],
        }
        for group in [*recordings.groups(), burn_rates.group(wanted_objectives(site))]
    ]


def groups(site: Site) -> list[Rule]:
    """Returns all groups, those of recording rules first: promtool has no order of its own."""
    return [*recording_groups(site), *alert_groups(site)]


def alert_groups(site: Site) -> list[Rule]:
    """Returns the groups of alerts: one for each concern, in the order of `ORDER`."""
    groups: dict[str, list[Rule]] = {}
    for alert in enabled(site):
        groups.setdefault(alert.concern, []).append(rule(alert, site))
    if WATCHDOG in site.receivers:
        groups.setdefault("info", []).append(watchdog())
    return [{"name": f"jaxobs-{concern}", "interval": "1m", "rules": found} for concern, found in groups.items()]


ALWAYS = "JaxWatchdog"


def watchdog() -> Rule:
    """Returns the alert that always fires."""
    return {
        "alert": ALWAYS,
        "expr": "vector(1)",
        "labels": {"severity": "info"},
        "annotations": {
            "summary": "Prometheus evaluates the alerts of JAX, and Alertmanager sends them.",
            "description": "This always fires. Where it no longer arrives, no other alert does.",
            "runbook_url": page_url("docs/alerts.md#a-dead-mans-switch"),
        },
    }


def rule(alert: Alert, site: Site) -> Rule:
    """Returns an alert as Prometheus takes it."""
    chosen = site.alerts.get(alert.name, AlertChoice())
    panel = dashboard_url(*alert.panel, site)
    return {
        "alert": alert.name,
        "expr": expression(alert, site),
        "for": chosen.for_ or alert.for_,
        **({"keep_firing_for": alert.keep_firing_for} if alert.keep_firing_for else {}),
        "labels": labels(alert, site),
        "annotations": {
            "summary": alert.summary,
            "description": _described(alert, site),
            "runbook_url": f"{site.runbook_url}/{alert.name}.md",
            "shell": shell(alert, site),
            **({"dashboard_url": panel + _chosen(alert, site)} if panel else {}),
            **({"report_url": f"{site.reports_url}/?{_labelled(site.grouping)}"} if site.reports_url else {}),
        },
    }


def _described(alert: Alert, site: Site) -> str:
    """Returns the description, with the query for the culprit in the alert's own job where it asks for that."""
    chosen = [f'{name}="%[{number}]q"' for number, name in enumerate(site.grouping, 1)]
    query = promql.filled(
        " ".join(alert.culprit.split()), ", ".join([*chosen, *site.extra_matchers()]), grouping=site.grouping
    )
    given = " ".join(f"$labels.{name}" for name in site.grouping)
    query = re.sub(r'"(%\[\d+]q)"', r"\1", query)  # what %q writes has its quotes
    return alert.description.replace("with culprit", f"with query (printf `{query}` {given})")


def dashboard_url(board: str, key: str, site: Site) -> str:
    """Returns the address of a panel; empty if the site has not said where Grafana is."""
    return f"{site.grafana_url}/d/jaxobs-{board}?viewPanel={panel_id(key)}" if site.grafana_url else ""


def of_process(alert: Alert) -> bool:
    """Returns whether an alert is about one process, not a whole job."""
    return "$labels.instance" in alert.description


def shell(alert: Alert, site: Site) -> str:
    """Returns a line of shell, with templates, that sets what the commands of a runbook use, from the labels."""
    named = ["job", "namespace", "cluster", *(["instance"] if of_process(alert) else [])]
    said = {each.upper(): f"{{{{ $labels.{each} | {_QUOTED} }}}}" for each in named}
    if of_process(alert):
        said["POD"] = _POD
    if any("$FIRST" in step.command for step in alert.runbook.diagnosis):
        said["FIRST"] = _FIRST
    values = {"PROMETHEUS": f"{{{{ $externalURL | {_QUOTED} }}}}", **said, "EVENT_LOG": site.event_log}
    return "export " + " ".join(f"{name}='{value}'" for name, value in values.items())


_QUOTED = 'reReplaceAll "\'" ""'
"""Template that leaves out the one character that a text in single quotes must not have: labels are never commands."""
_POD = (
    "{{ with query (printf \"up{job=%q, instance=%q, pod!=''}\" $labels.job $labels.instance) }}"
    f'{{{{ . | first | label "pod" | {_QUOTED} }}}}{{{{ end }}}}'
)
"""Template of the pod whose process an alert is about: what is recorded has lost that label."""
_FIRST = (
    "{{ with query (printf \"jax_process_info{job=%q, process_index='0'}\" $labels.job) }}"
    f'{{{{ . | first | label "instance" | {_QUOTED} }}}}{{{{ end }}}}'
)
"""Template of the job's process 0, which compares all of them."""
BEFORE = 10_800
"""Seconds before an alert that its link shows."""
_TIME = 'query "time() - {}" | first | value | printf "%.0f"'


def _labelled(names: Iterable[str], prefix: str = "") -> str:
    """The values of an alert's labels, for the query of an address."""
    return "&".join(f"{prefix}{name}={{{{ $labels.{name} | urlquery }}}}" for name in names)


def _chosen(alert: Alert, site: Site) -> str:
    """The job, the process and the time of an alert, for the address of its panel."""
    named = [*site.grouping, *(["instance"] if of_process(alert) else [])]
    times = [f"{name}={{{{ {_TIME.format(ago)} }}}}000" for name, ago in (("from", BEFORE), ("to", 0))]
    return "".join(f"&{each}" for each in (_labelled(named, "var-"), *times))


def panel_id(key: str) -> int:
    """Returns the number of a panel, which stays the same from release to release, whatever is added next to it.

    FNV-1a of the key, folded to 31 bits less the sign (http://www.isthe.com/chongo/tech/comp/fnv/).
    """
    value = 0x811C9DC5
    for byte in key.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value % 999_983 + 1


def intervals(site: Site) -> list[str]:
    """Returns the intervals of the cases of the alerts that the site took as they are; promtool has one in a file."""
    return sorted({case.interval for alert in enabled(site) if alert.name not in site.alerts for case in alert.cases})


ON_THE_WAY = {"pending": "pending", "recovering": "firing", "target_gone": "firing"}
"""State in which an alert was on the way to what a case expects, by the kind of the case."""


def test(alert: Alert, cases: list[Case], site: Site) -> Rule:
    """Returns a promtool test of cases that look at the same series: what fires at the time of each.

    If an alert is to fire no more, or not yet, the test also asks whether it did, or is on its way there.
    """
    seen = 'count(last_over_time(ALERTS{{alertname="{}", alertstate="{}"}}[1d])) > bool 0'
    ways = [(case.at, seen.format(alert.name, ON_THE_WAY[case.kind])) for case in cases if case.kind in ON_THE_WAY]
    found: Rule = {
        "name": f"{alert.name}: {', '.join(dict.fromkeys(case.kind for case in cases))}",
        "interval": cases[0].interval,
        "input_series": [{"series": name, "values": values} for name, values in cases[0].series.items()],
        "alert_rule_test": [
            {
                "eval_time": case.at,
                "alertname": alert.name,
                "exp_alerts": [
                    {
                        "exp_labels": {**labels(alert, site), **fired.labels},
                        "exp_annotations": dict(_annotations(alert, fired, site, fired.told_at or case.at)),
                    }
                    for fired in case.fires
                ],
            }
            for case in cases
        ],
    }
    if ways:
        one = [{"labels": "{}", "value": 1}]
        found["promql_expr_test"] = [{"expr": expr, "eval_time": at, "exp_samples": one} for at, expr in ways]
    return found


def labels(alert: Alert, site: Site) -> dict[str, str]:
    """Returns the static labels of an alert."""
    chosen = site.alerts.get(alert.name, AlertChoice())
    return {"severity": chosen.severity or alert.severity, **alert.labels}


def _annotations(alert: Alert, fired: Fired, site: Site, at: str) -> Iterator[tuple[str, str]]:
    values = iter(fired.values)

    def found(block: re.Match[str]) -> str:
        value = fired.labels.get("pod", "") if 'label "pod"' in block[1] else fired.culprit
        value = "" if "process_index" in block[0] else value
        return value and _TEMPLATE.sub(value, block[1])

    def told(template: re.Match[str]) -> str:
        text = template[1].strip()
        label, ago = _LABEL.fullmatch(text), re.match(r'query "time\(\) - (\d+)"', text)
        if ago:
            return str(int(at[:-1]) * {"m": 60, "h": 3600}[at[-1]] - int(ago[1]))
        if not label:
            return next(values)
        value = fired.labels.get(label[2] or "", "")
        return quote_plus(value) if label[3] == "urlquery" else value

    for name, text in rule(alert, site)["annotations"].items():
        yield name, _TEMPLATE.sub(told, _QUERIED.sub(found, text))


def check(site: Site) -> None:
    """Refuses choices of a site about alerts, objectives or thresholds that do not exist.

    Raises:
      SettingError: an alert or a threshold is unknown, or a value lies outside its bounds; with the next step.
    """
    names = [each.name for each in known_objectives(site)]
    for name in site.objectives:
        if name not in names:
            meant = did_you_mean(name, names)
            raise SettingError(f"objectives.{name}: there is no such objective. {meant}Known: {', '.join(names)}.")
    burning = {each.alert: each.name for each in wanted_objectives(site)}
    known = {alert.name: alert for alert in declared(site)}
    for name, choice in site.alerts.items():
        if name not in known:
            raise SettingError(f"alerts.{name}: there is no such alert. {did_you_mean(name, known)}".rstrip())
        if name in burning and (choice.thresholds or choice.for_ or choice.severity):
            raise SettingError(
                f"alerts.{name}: its values follow from its objective; change objectives.{burning[name]} instead."
            )
        for threshold, value in choice.thresholds.items():
            place, found = f"alerts.{name}.thresholds.{threshold}", known[name].thresholds.get(threshold)
            if found is None:
                meant = did_you_mean(threshold, known[name].thresholds)
                raise SettingError(
                    f"{place}: unknown. {meant}Thresholds of {name}: {', '.join(known[name].thresholds)}."
                )
            if not found.least <= value <= found.most:
                raise SettingError(
                    f"{place} is {value:g}: it must be between {found.least:g} and {found.most:g} ({found.unit})."
                )
