"""The field's own linters have nothing to say about the rules and dashboards: none of their checks is left out."""

import json
import re
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.paths import ROOT
from helpers.requirements import built

from jaxobs.ops.monitoring import alerting, boards, burn_rates, drawing, objectives, yaml_text
from jaxobs.ops.monitoring.site import AlertChoice, ObjectiveChoice, Site

pytestmark = [pytest.mark.linters, pytest.mark.settled, pytest.mark.timeout(1200)]

POLICY = ROOT / "tools" / "go" / "pint.hcl"

SITES = {
    "as committed": Site(grafana_url="https://grafana.example.org"),
    "with choices": Site(
        job="train-.*",
        functions=("trainer.*",),
        runbook_url="https://wiki.example.org/jax",
        grafana_url="https://grafana.example.org",
        extended=True,
        alerts={"JaxRecompilationStorm": AlertChoice(for_="10m", thresholds={"compilations": 20})},
        objectives={"goodput": ObjectiveChoice(target=0.95, period="30d")},
    ),
}


def told(*command: str | Path) -> tuple[int, str]:
    """Returns a linter's exit status and its output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


# ----------------------------------------------------------------------------------------------------- pint


def pint(rules: str, folder: Path) -> tuple[int, str]:
    """Returns pint's exit status and output for rules, without a Prometheus; information is a fault like any other."""
    (folder / "rules.yaml").write_text(rules)
    return told(
        built("pint"), "--no-color", "--log-level=error", "--offline", f"--config={POLICY}",
        "lint", "--require-owner", "--min-severity=info", "--fail-on=info", folder / "rules.yaml",
    )  # fmt: skip


@pytest.mark.parametrize("site", SITES.values(), ids=SITES)
def test_rules_have_no_faults(site: Site, tmp_path: Path) -> None:
    """pint reports nothing, not even information, and nothing tells it to look away."""
    groups = alerting.groups(site)
    rules = yaml_text.dump({"groups": groups}, what="alerts", owner=True)
    assert re.findall(r"# pint (.*)", rules) == ["file/owner jaxobs"]
    assert "disable" not in POLICY.read_text()
    assert pint(rules, tmp_path) == (0, "")


SOUND: dict[str, Any] = {
    "alert": "JaxThing",
    "expr": 'rate(a_total{job=~".+"}[5m]) > 1',
    "for": "5m",
    "labels": {"severity": "warning"},
    "annotations": {
        "summary": "Something is wrong.",
        "description": "{{ $value | humanize }} of {{ $labels.job }}.",
        "runbook_url": "https://example.org/JaxThing.md",
        "dashboard_url": "https://example.org/d/x",
    },
}

FAULTS: dict[str, tuple[dict[str, Any], ...]] = {
    "alerts/annotation": ({**SOUND, "annotations": {"summary": "Something is wrong."}},),
    "alerts/comparison": ({**SOUND, "expr": 'rate(a_total{job=~".+"}[5m])'},),
    "alerts/for": ({**SOUND, "for": "5 minutes"},),
    "alerts/template": ({**SOUND, "labels": {"severity": "warning", "much": "{{ $value }}"}},),
    "promql/aggregate": ({**SOUND, "expr": 'sum by (instance) (rate(a_total{job=~".+"}[5m])) > 1'},),
    "promql/fragile": ({**SOUND, "expr": 'topk(2, rate(a_total{job=~".+"}[5m])) > 1'},),
    "promql/impossible": (
        {**SOUND, "expr": 'b{job="x"} > 0 unless on (job, instance) sum by (job) (rate(a_total{job="x"}[5m])) > 1'},
    ),
    "promql/nan": ({**SOUND, "expr": 'sum by (job) (a{job=~".+"} / b{job=~".+"}) > 1'},),
    "promql/regexp": ({**SOUND, "expr": 'rate(a_total{job=~".*"}[5m]) > 1'},),
    "promql/selector": ({**SOUND, "expr": "rate(a_total[5m]) > 1"},),
    "promql/syntax": ({**SOUND, "expr": 'rate(a_total{job=~".+"}[5m] > 1'},),
    "rule/duplicate": (SOUND, SOUND),
    "rule/for": ({**SOUND, "for": "10s"},),
    "rule/label": ({**SOUND, "labels": {"severity": "page"}},),
    "rule/name": ({"record": "thing", "expr": 'sum by (job) (rate(a_total{job=~".+"}[5m]))'},),
    "rule/reject": ({**SOUND, "labels": {"severity": "warning", "link": "https://example.org"}},),
}


@pytest.mark.parametrize("check", FAULTS)
def test_pint_looks(check: str, tmp_path: Path) -> None:
    """A fault of each kind that pint finds offline is found under this policy."""
    faulty = yaml_text.dump({"groups": [{"name": "g", "rules": FAULTS[check]}]}, what="alerts", owner=True)
    code, found = pint(faulty.replace("!!python/tuple", ""), tmp_path)
    assert code and f"({check})" in found, found


def test_sound_rule(tmp_path: Path) -> None:
    """The rule from which the faulty ones were made has no fault; one that nobody owns has."""
    groups = {"groups": [{"name": "g", "rules": [SOUND]}]}
    assert pint(yaml_text.dump(groups, what="alerts", owner=True), tmp_path) == (0, "")
    code, found = pint(yaml_text.dump(groups, what="alerts"), tmp_path)
    assert code and "(rule/owner)" in found


# --------------------------------------------------------------------------------------- dashboard-linter


def lint(content: str, folder: Path) -> tuple[int, dict[str, list[str]]]:
    """Returns dashboard-linter's exit status, and its output under the heading of each of its rules.

    It looks at no panel's unit where there is a list of mappings, be it empty, as Grafana's SDK writes it: these go.
    """
    path = folder / "dashboard.json"
    path.write_text(re.sub(r'"mappings": \[\],?', "", content))
    code, said = told(built("dashboard-linter"), "lint", "--strict", path)
    found: dict[str, list[str]] = {}
    for line in said.splitlines():
        if line.startswith("Checks that "):
            found[line.removeprefix("Checks that ").rstrip(".")] = []
        elif line and found:
            found[list(found)[-1]].append(line)
    return code, found


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("board", boards.boards(), ids=lambda board: board.name)
def test_dashboards_have_no_faults(board: Any, version: Any, tmp_path: Path) -> None:
    """Each of the 17 rules looked, and said nothing; nothing is excluded."""
    code, found = lint(drawing.draw(board, Site(dashboards=version)), tmp_path)
    assert (code, {rule: faults for rule, faults in found.items() if faults}) == (0, {})
    assert len(found) == 17


MISTAKES = {
    "each panel uses the templated datasource": (r'"\$\{?datasource\}?"', '"prometheus"'),
    "each panel has a title and description": (r'"description": "[^"]+"', '"description": ""'),
    "each panel uses has valid units defined": (r'"unit": "[^"]+"', '"unit": "apples"'),
    "every PromQL query has a instance matcher": (r"instance=~(?=.{2}\$instance)", "instance="),
    "every PromQL query has a job matcher": (r"job=~(?=.{2}\$job)", "job="),
    "each target uses a valid PromQL query": (r"sum by \(", "sum by [("),
    "each target uses $__rate_interval": (r"\$__rate_interval", "5m"),
    "the dashboard has a templated datasource": ('"label": "Data source"', '"label": "Source"'),
    "the dashboard has a templated instance": ('"label": "Instance"', '"label": "Process"'),
    "the dashboard has a templated job": (r'"allValue": "\.\+"', '"allValue": ".*"'),
    "the dashboard templated labels have proper PromQL expressions": (r"label_values\(", "values("),
    "the dashboard template variables are configured to reload on time change": (
        '"refresh": (2|"onTimeRangeChanged")', '"refresh": ' + "{never}",
    ),
    "the dashboard is not editable": ('"editable": false', '"editable": true'),
}  # fmt: skip


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_dashboard_linter_looks(version: Any, tmp_path: Path) -> None:
    """Each rule for Prometheus finds its mistake in both formats: what stands in for Grafana's module hides none."""
    (board,) = (each for each in boards.boards() if each.name == "oncall")
    sound = json.dumps(json.loads(drawing.draw(board, Site(dashboards=version))))
    for rule, (pattern, mistake) in MISTAKES.items():
        mistake = mistake.replace("{never}", "0" if version == "v1" else '"never"')
        faulty, changed = re.subn(pattern, mistake, sound)
        code, found = lint(faulty, tmp_path)
        assert changed and code and found[rule], rule


# ---------------------------------------------------------------------------------------------------- sloth

_PAIR = re.compile(
    r"max\(slo:sli_error:ratio_rate(\w+)\{.*?\} > \(([\d.]+) \* ([\d.]+)\)\) without \(sloth_window\)\s+"
    r"and\s+max\(slo:sli_error:ratio_rate(\w+)\{.*?\} > \(\2 \* \3\)\)"
)


def sloth(period: str, folder: Path) -> dict[str, list[tuple[str, str, str, Decimal, Decimal]]]:
    """Returns sloth's alerts by objective: severity, short and long window, factor and share that may be bad."""
    spec = {
        "version": "prometheus/v1",
        "service": "jax",
        "slos": [
            {
                "name": each.name,
                "objective": float(each.target * 100),
                "description": each.description,
                "sli": {"events": {"error_query": "bad[{{.window}}]", "total_query": "total[{{.window}}]"}},
                "alerting": {"name": each.alert}
                | {
                    f"{way}_alert": {"labels": {"severity": severity}}
                    for way, severity in (("page", "critical"), ("ticket", "warning"))
                },
            }
            for each in objectives.objectives()
        ],
    }
    (folder / "slo.yaml").write_text(yaml.safe_dump(spec))
    code, made = told(
        built("sloth"), "generate", "--no-log", f"--default-slo-period={period}", "-i", folder / "slo.yaml"
    )
    assert code == 0, made
    found: dict[str, list[tuple[str, str, str, Decimal, Decimal]]] = {}
    for group in yaml.safe_load(made)["groups"]:
        for rule in (each for each in group["rules"] if "alert" in each):
            name = group["name"].removeprefix("sloth-slo-alerts-jax-")
            for short, factor, budget, long in _PAIR.findall(rule["expr"]):
                pair = (rule["labels"]["severity"], short, long, Decimal(factor), Decimal(budget))
                found.setdefault(name, []).append(pair)
    return found


@pytest.mark.parametrize("period", ["28d", "30d"])
def test_burn_rates_are_sloths(period: Any, tmp_path: Path) -> None:
    """Windows, factors, severities and shares are those of sloth, which reads the same objectives.

    We differ on purpose in three things: sloth's shares carry binary digits, as 0.09999999999999998; it makes one alert
    of two pairs of windows, where ours are told apart by their labels; and where more than everything would have to be
    bad, ours has no rule, for it could never fire.
    """
    site = Site(objectives={each.name: ObjectiveChoice(period=period) for each in objectives.objectives()})
    theirs = sloth(period, tmp_path)
    never = 0
    for objective in alerting.wanted_objectives(site):
        assert len(theirs[objective.name]) == len(burn_rates.PAIRS) == 4
        possible = [found for found in theirs[objective.name] if found[3] * found[4] < 1]
        never += 4 - len(possible)
        ours = {(pair.severity, pair.short, pair.long): share for pair, share in burn_rates.pairs(objective)}
        for severity, short, long, factor, budget in possible:
            assert float(ours.pop((severity, short, long))) == pytest.approx(float(factor * budget), rel=1e-3)
        assert not ours
    assert never
