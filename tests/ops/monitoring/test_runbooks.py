"""The runbooks: a page for each alert, with every section, whose queries, figures and links hold."""

import re

import pytest
from helpers import rule_checks
from helpers.paths import ROOT

from jaxobs.base.links import page_url
from jaxobs.ops.monitoring import alerting, boards, burn_rates, promql
from jaxobs.ops.monitoring.generate import runbooks
from jaxobs.ops.monitoring.objectives import objectives
from jaxobs.ops.monitoring.site import AlertChoice, Site

SITE = Site(grafana_url="https://grafana.example.org", extended=True)
PAGES = runbooks.files(SITE)
RULES = {rule["alert"]: rule for group in alerting.alert_groups(SITE) for rule in group["rules"]}
SECTIONS = (
    "Do first",
    "Meaning",
    "Impact",
    "Diagnosis",
    "Mitigation",
    "What this is not",
    "Escalation",
    "How to verify",
    "Configuration",
)


def test_each_alert_has_its_page_and_no_page_is_left_over() -> None:
    """As many pages as names, and the index."""
    assert {f"runbooks/{name}.md" for name in RULES} | {"runbooks/README.md"} == set(PAGES)


@pytest.mark.parametrize("name", RULES)
def test_a_page_is_whole(name: str) -> None:
    """Every section says something; every query parses, and asks for what there is."""
    page = PAGES[f"runbooks/{name}.md"]
    parts = re.split(r"(?m)^## (.+)$", page)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert tuple(found) == SECTIONS
    assert [title for title, text in found.items() if len(text.strip()) < 40] == []
    assert re.search(r"```sh\n.+\n```", found["Diagnosis"])
    assert "| --- |" not in page and "\\|\\|" not in page
    gaps = {f"<{gap}>" for alert in alerting.declared(Site()) if alert.name == name for gap in alert.thresholds}
    assert [gap for gap in gaps if gap in page] == []
    queries = re.findall(r"```promql\n(.*?)\n```", page, re.S)
    assert queries
    wrong = [text for query in queries for text in rule_checks.mistakes_in_query(query, looked_at=True)]
    assert [text for text in wrong if "15 days" not in text] == []


@pytest.mark.parametrize("name", RULES)
def test_nothing_in_a_command_is_left_to_fill_in(name: str) -> None:
    """The cause comes first; variables are those that the annotation sets, and reports lie beside the event log."""
    page = PAGES[f"runbooks/{name}.md"]
    asked = 'diagnose --prometheus "$PROMETHEUS" --job "$JOB" --namespace "$NAMESPACE" --cluster "$CLUSTER"'
    assert page.index(f"jaxobs {asked}\n") < page.index("## Meaning")
    commands = "\n".join(re.findall(r"```sh\n(.*?)\n```", page, re.S))
    assert re.findall(r"(?<![\w$\"'{-])(?:POD|PID|LOG|HOST\w*|DIR|DIRECTORY|JOB|NAMESPACE)\b", commands) == []
    assert re.findall(r"ls -t (?!\"\$\(dirname)", commands) == []
    first = page[: page.index("## Meaning")]
    for variable in {*re.findall(r"\$([A-Z]+)\b", commands)} - {"JAXOBS", "JAX"}:
        assert f"`{variable}`" in first, variable


@pytest.mark.parametrize("name", RULES)
def test_a_page_quotes_the_rule(name: str) -> None:
    """Expression, time to wait, severity, link to the panel and every figure are those of the rule."""
    page = PAGES[f"runbooks/{name}.md"]
    for rule in (rule for group in alerting.alert_groups(SITE) for rule in group["rules"] if rule["alert"] == name):
        assert f"```promql\n{rule['expr']}\n```" in page
        assert f"It has to hold for `{rule['for']}`" in page
        assert (
            f"Severity `{RULES[name]['labels']['severity']}`" in page
            or f"`severity: {rule['labels']['severity']}`" in page
        )
        assert rule["annotations"]["dashboard_url"].partition("&")[0] in page
        assert rule["annotations"]["runbook_url"].endswith(f"/runbooks/{name}.md")
    for alert in alerting.declared(Site()):
        for value in alerting.thresholds(alert, Site()).values() if alert.name == name else ():
            assert f"| `{promql.number(value)}` |" in page


@pytest.mark.parametrize("name", [name for name in RULES if name.startswith("JaxSlo")])
def test_a_page_of_an_objective_quotes_what_is_recorded_for_it(name: str) -> None:
    """Objectives record under the same names: a page quotes those rules whose label `slo` its alerts select."""
    recorded = [rule for group in alerting.recording_groups(Site()) for rule in group["rules"]]
    totals = {rule["labels"]["slo"]: rule["expr"] for rule in recorded if rule["record"] == burn_rates.TOTAL}
    wanted = {each.name for each in objectives() if name in (each.alert, "JaxSloNoData")}
    page = PAGES[f"runbooks/{name}.md"]
    assert {slo for slo, total in totals.items() if f"```promql\n{total}\n```" in page} == wanted != set()


def test_steps_that_need_an_accelerator_are_marked() -> None:
    """Marks stand in the diagnosis and in the mitigation, before steps whose commands ask a GPU, and no others."""
    page = PAGES["runbooks/JaxDeviceXidErrors.md"]
    assert "3. (Accelerators only.) Reset the GPU (`nvidia-smi --gpu-reset" in page
    assert "**3.** (Accelerators only.) See heat" in page and "\n2. If the job ended, restart it" in page


@pytest.mark.parametrize("path", PAGES)
def test_links_lead_somewhere(path: str) -> None:
    """To pages that are generated too, or that lie in the repository."""
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGES[path]):
        if link.startswith(page_url("")):
            assert (ROOT / link.removeprefix(page_url(""))).is_file(), link
            continue
        if link.startswith("http"):
            panel = re.search(r"/d/jaxobs-(\w+)\?viewPanel=(\d+)", link)
            assert panel, link
            shown = [row for board in boards.boards() if board.name == panel[1] for row in board.rows]
            ids = {alerting.panel_id(each.key) for row in shown for each in row.panels}
            assert not shown or int(panel[2]) in ids, link
            continue
        target = ((ROOT / path).parent / link).resolve()
        # No further: runbooks are copied to wikis, and generated from a wheel, where no other folder lies beside them.
        assert str(target.relative_to(ROOT)) in PAGES, link


def test_a_site_s_choices_are_on_the_page() -> None:
    """The figures, in the sentences as well."""
    site = Site(alerts={"JaxColdRequestsHigh": AlertChoice(thresholds={"share": 0.2}, severity="info", for_="20m")})
    page = runbooks.files(site)["runbooks/JaxColdRequestsHigh.md"]
    assert "More than `20 %` of the requests" in page
    assert "> 0.2" in page
    assert "Severity `info`: it is not routed." in page
    assert "It has to hold for `20m`" in page


def test_an_alert_that_is_off_has_no_page() -> None:
    """Nor is it linked."""
    pages = runbooks.files(Site(alerts={"JaxArrayLeak": AlertChoice(enabled=False)}))
    assert "runbooks/JaxArrayLeak.md" not in pages
    assert not any("(JaxArrayLeak.md)" in page for page in pages.values())


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.05, "ratio", "5 %"), (1.5, "factor", "1.5 times"), (7200, "seconds", "2 hours"),
        (90, "seconds", "90 seconds"), (86400, "seconds", "1 day"), (0, "seconds", "0 seconds"),
        (3 * 2**20, "bytes", "3 MiB"), (10, "count", "10"), (90, "celsius", "90 °C"),
    ],
)  # fmt: skip
def test_figures_are_said_as_a_person_says_them(value: float, unit: str, said: str) -> None:
    """With the unit, and without needless digits."""
    assert runbooks.human(value, unit) == said
