"""The dashboards: every rule of Grafana's linter and what these let through, in both formats, and a site's choices."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import rule_checks
from helpers.paths import ROOT

from jaxobs.ops.monitoring import alerting, boards, drawing, panel_types, promql, recordings, rules
from jaxobs.ops.monitoring.drawing import layout
from jaxobs.ops.monitoring.generate import dashboards
from jaxobs.ops.monitoring.panel_types import Board, Panel, Row, Target
from jaxobs.ops.monitoring.rule_types import Threshold
from jaxobs.ops.monitoring.site import AlertChoice, Prices, Site
from tools.monitoring_checks import dashboard_budget, dashboard_checks, label_flow
from tools.monitoring_checks.dashboard_checks import CHECKS, Seen
from tools.monitoring_checks.label_flow import LabelError, Labels, labels_of

SITE = Site()
KEYS = {
    "executive": "goodput lost_time slo_state error_budget steps_per_second items_per_second requests_per_second "
    "cost_per_step cost_per_request utilization mfu",
    "oncall": "firing_alerts targets errors cold_share request_errors request_latency recompilations out_of_memory "
    "memory_headroom stragglers stalled findings nonfinite cache_hit_ratio device_faults observer",
    "debug": "compile_seconds recompilations causes first_calls in_progress calls dispatch device_seconds errors "
    "fastpath_misses cache_results cache_unsaved cache_size program_memory program_flops executables transfers steps "
    "step_time input_wait time_categories checkpoints checkpoint_bytes host",
    "devices": "memory_in_use memory_headroom time_to_full fragmentation live_arrays live_array_bytes driver_memory "
    "utilization tensorcore power energy temperature clocks throttled ecc_errors xid_errors pcie nvlink links "
    "device_table",
    "serving": "first_token output_token inter_token latency queue requests errors finish_reasons tokens "
    "tokens_per_request running_and_waiting kv_cache batch_size batch_fill in_flight cold_share cold_and_warm delayed",
    "fleet": "processes step_time_heatmap slowest_processes step_spread goodput_by_process compiling_processes "
    "memory_heatmap versions version_table findings_by_process restarts series_and_scrape "
    "tensor_cores pod_restarts host_memory",
}
"""Keys of panels that links from outside rely on."""


def seen(board: Board, site: Site) -> Seen:
    """A dashboard as it is read again."""
    raw = json.loads(drawing.draw(board, site))
    found = dashboard_checks.manifest(raw) if site.dashboards == "v2" else dashboard_checks.classic(raw)
    found.known = rule_checks.known_series()
    return found


BOARDS = boards.boards()
SITES = {
    "v1": SITE,
    "v2": Site(dashboards="v2"),
    "native": Site(native_histograms=True),
    "chosen": Site(job="train-.*", matchers={"pool": "a"}, functions=("trainer.*",), prices=Prices(currency="EUR")),
}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
@pytest.mark.parametrize("site", SITES.values(), ids=SITES)
def test_checks(board: Board, site: Site) -> None:
    """Nothing is wrong by any check, whatever the format and the choices."""
    found = seen(board, site)
    if site.matchers:
        found.known = {name: each.plus(site.matchers) for name, each in found.known.items()}
    wrong = [f"{check.__name__}: {sentence}" for check in CHECKS for sentence in check(found)]
    assert not wrong, "\n".join(wrong)


def broken(**changes: Any) -> Seen:
    """A dashboard with one panel that is as the others, but for the changes."""
    panel: dict[str, Any] = {
        "key": "steps", "title": "Steps", "description": "Steps a second of each loop; more is better.",
        "kind": "timeseries", "unit": "ops",
        "targets": (Target(expr="sum by (loop) (rate(jax_steps_total{@}[$__rate_interval]))", legend="{{loop}}"),),
    }  # fmt: skip
    board = Board(
        name="one", title="One", description="", rows=(Row(title="A row", panels=(Panel(**panel | changes),)),)
    )
    return seen(board, SITE)


@pytest.mark.parametrize(
    ("check", "changes"),
    [
        ("d07_d09_d18", {"description": ""}),
        ("d08_d19", {"unit": "seconds"}),
        ("d08_d19", {"unit": "s", "targets": (Target(expr="jax_live_array_bytes{@}"),)}),
        ("d10_d12", {"targets": (Target(expr="sum by (loop) (rate(jax_steps_total{@}[$__rate_interval])"),)}),
        ("d13", {"targets": (Target(expr="rate(jax_steps_total{@}[5m])"),)}),
        ("d14_d15", {"targets": (Target(expr="up + on (job, instance) up{@}"),)}),
        ("d16_d20", {"targets": (Target(expr="jax_steps_total{@} > 5"),)}),
        ("d16_d20", {"targets": (Target(expr="rate(jax_live_arrays{@}[$__rate_interval])"),)}),
        ("d21", {"targets": (Target(expr="sum by (function) (rate(jax_steps_total{@}[$__rate_interval]))"),)}),
        ("d21", {"targets": (Target(expr="sum(rate(jax_steps_total{@}[$__rate_interval]))", legend="{{loop}}"),)}),
        ("d21", {"targets": (Target(expr='up{@, job=~"$stranger"}'),)}),
        ("d23", {"kind": "timeseries", "title": "Steps"}),
        ("d29", {"targets": (Target(expr="jax_live_array_bytes{@} / jax_live_arrays{@}"),)}),
    ],
)  # fmt: skip
def test_checks_find(check: str, changes: dict[str, Any]) -> None:
    """A check says something of a panel that is broken in just its way, and nothing of the panel as it was."""
    function = next(each for each in CHECKS if each.__name__ == check)
    assert not list(function(broken()))
    found = broken(**changes)
    if check == "d23":
        found.panels[0].kind = "graph"
    assert list(function(found))


def test_keys() -> None:
    """The panels that alerts, runbooks and people link to are there."""
    found = {board.name: {panel.key for row in board.rows for panel in row.panels} for board in BOARDS}
    assert set(found) == set(KEYS)
    assert {name: set(keys.split()) - found[name] for name, keys in KEYS.items()} == {name: set() for name in KEYS}


def test_declared() -> None:
    """Kinds and needs are known ones, keys are there once each, columns are filled by a query or a label."""
    for board in BOARDS:
        panels = [panel for row in board.rows for panel in row.panels]
        assert len({panel.key for panel in panels}) == len(panels)
        for panel in panels:
            assert panel.kind in panel_types.KINDS, panel.key
            assert panel.needs in panel_types.NEEDS, panel.key
            letters = {each.source for each in panel.columns if len(each.source) == 1}
            assert letters <= set("ABCDEFGHIJKLMNOP"[: len(panel.targets)]), panel.key


def test_alerts_and_panels_agree() -> None:
    """Each alert's panel is there and links to its runbook; each panel's alert is there, and its threshold is drawn."""
    alerts = alerting.offered(SITE)
    for board in BOARDS:
        drawn = {panel["id"]: panel for panel in json.loads(drawing.draw(board, SITE))["panels"]}
        for row in board.rows:
            assert {panel.alert for panel in row.panels if panel.alert} <= {alert.name for alert in alerts}
        for alert in alerts:
            if alert.panel[0] == board.name:
                links = [link["url"] for link in drawn[alerting.panel_id(alert.panel[1])]["links"]]
                assert links.count(f"{SITE.runbook_url}/{alert.name}.md") == 1


def asked(expr: str) -> set[str]:
    """Returns the series that an expression asks for, those behind recorded series included."""
    recorded = [rule for group in alerting.recording_groups(SITE) for rule in group["rules"]]
    found: set[str] = set()
    left = [expr]
    while left:
        for name in {selector.name for selector in promql.selectors(left.pop())} - found:
            found.add(name)
            left += [rule["expr"] for rule in recorded if rule["record"] == name]
    return found


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_an_alert_s_panel_shows_what_the_alert_asks_for(board: Board) -> None:
    """Panel and alert share a series, or what it is recorded from; an alert on a finding shows its subject."""
    found = seen(board, SITE)
    panels = {panel.id: panel for panel in found.panels}
    for alert in alerting.offered(SITE):
        if alert.panel[0] == board.name:
            queries = panels[alerting.panel_id(alert.panel[1])].queries
            shown = set().union(*(asked(found.filled(query.expr)) for query in queries))
            wanted = asked(alerting.expression(alert, SITE))
            assert wanted == {"jax_findings"} or wanted & shown, f"{alert.name} on {alert.panel}"


def test_thresholds_are_the_alerts() -> None:
    """The line in a panel is the threshold of its alert, in the colour of its severity, as the site has chosen it."""
    zero = Threshold(value=0, unit="count", why="None.")
    alert = next(each for each in rules.alerts() if next(iter(each.thresholds.values()), zero).unit == "ratio")
    name, threshold = next(iter(alert.thresholds.items()))
    panel = Panel(
        key="one", title="One", description="One of them.", kind="timeseries", unit="percentunit", alert=alert.name,
        targets=(Target(expr="up{@}"),),
    )  # fmt: skip
    board = Board(name="one", title="One", description="", rows=(Row(title="A row", panels=(panel,)),))
    for site, value in (
        (SITE, threshold.value),
        (Site(alerts={alert.name: AlertChoice(thresholds={name: threshold.value / 2})}), threshold.value / 2),
    ):
        for good, colors in (("low", ["green", "orange"]), ("high", ["orange", "green"])):
            changed = dataclasses.replace(
                board, rows=(Row(title="A row", panels=(dataclasses.replace(panel, good=good),)),)
            )
            raw = json.loads(drawing.draw(changed, site))
            steps = raw["panels"][1]["fieldConfig"]["defaults"]["thresholds"]["steps"]
            wanted = {"critical": "red", "warning": "orange", "info": "yellow"}[alert.severity]
            colors = [wanted if each == "orange" else each for each in colors]
            assert steps == [{"color": colors[0], "value": None}, {"color": colors[1], "value": value}]


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_budget(board: Board) -> None:
    """No panel asks for more series than can be drawn, at 1,024 devices in 128 processes with 50 functions each."""
    found = seen(board, SITE)
    for panel in found.panels:
        total = sum(dashboard_budget.series(found.filled(query.expr), found.known) for query in panel.queries)
        most = dashboard_budget.MOST[panel.kind] * (len(panel.queries) if panel.kind == "table" else 1)
        assert total <= most, f"{board.name} {panel.title}: {total} series"


def test_budget_counts() -> None:
    """The estimate knows what an aggregation leaves, and what the worst twenty are."""
    count, known = dashboard_budget.series, rule_checks.known_series()
    assert count("jax_device_memory_in_use_bytes", known) == dashboard_budget.DEVICES
    assert count("sum by (instance) (jax_device_memory_in_use_bytes)", known) == dashboard_budget.PROCESSES
    assert count("topk(20, jax_device_memory_in_use_bytes)", known) == 20
    routes = known | {"x": Labels(frozenset({"job", "cold"}), frozenset({"job", "cold"}))}
    joined = 'sum(jax_requests_total{cold="true"}) or sum by (cold) (up * on (job) group_left (cold) x)'
    assert count(joined, routes) == 4


def test_committed_is_fresh() -> None:
    """The committed files are the generated ones, also those of another process with other hashes."""
    wanted = dashboards.files(SITE)
    assert {path: (ROOT / path).read_text(encoding="utf-8") for path in wanted} == wanted
    code = (
        "from jaxobs.ops.monitoring.generate import dashboards; from jaxobs.ops.monitoring.site import Site; "
        "print(hash('x'), sorted(dashboards.files(Site()).items()))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env={"PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.partition(" ")[2].strip() == str(sorted(wanted.items()))


def test_defects_of_the_sdk_are_kept_out() -> None:
    """Panels have numbers and places of their own, legends are shown, no stray settings of other kinds of variables."""
    classic = {board.name: json.loads(drawing.draw(board, SITE)) for board in BOARDS}
    for raw in classic.values():
        assert all(panel["id"] > 0 for panel in raw["panels"]), "rows have one as well"
        assert not any("auto" in each or "auto_count" in each for each in raw["templating"]["list"])
        assert raw["time"]["from"] == "now-6h" and raw["annotations"]["list"]
        assert all("current" in each for each in raw["templating"]["list"] if each["type"] != "datasource")
        configs = [panel["fieldConfig"]["defaults"] for panel in raw["panels"] if panel["type"] != "row"]
        assert all(each.get("custom", True) for each in configs), "none is empty"
    for board in BOARDS:
        spec = json.loads(drawing.draw(board, SITES["v2"]))["spec"]
        configs = [each["spec"]["vizConfig"] for each in spec["elements"].values()]
        assert all(type(each["group"]) is type(each["version"]) is str and each["version"] for each in configs)
        for variable in spec["variables"]:
            if variable["kind"] == "QueryVariable":
                assert "query" in variable["spec"]["query"]["spec"]
            else:
                assert variable["spec"]["refresh"] == "onDashboardLoad"
    twice = [drawing.draw(BOARDS[0], SITE) for _ in range(2)]
    assert twice[0] == twice[1]


def test_formats_agree() -> None:
    """Both formats have the same panels with the same queries, but for the price."""
    for board in BOARDS:
        first, second = seen(board, SITE), seen(board, SITES["v2"])
        price = {"$price": "1"}
        pairs = zip(*(sorted(each.panels, key=lambda panel: panel.id) for each in (first, second)), strict=True)
        for old, new in pairs:
            assert (old.id, old.title, old.unit, dict(old.position), old.options) == (
                new.id, new.title, new.unit, dict(new.position), new.options,
            )  # fmt: skip
            exprs = [each.expr.replace("$price", price["$price"]) for each in old.queries]
            assert exprs == [each.expr for each in new.queries]


def test_site() -> None:
    """Jobs, further labels, functions, prices and addresses of a site are in its dashboards."""
    site = dataclasses.replace(SITES["chosen"], runbook_url="https://wiki.example.org", scrape_interval="1m")
    raw = json.loads(drawing.draw(next(board for board in BOARDS if board.name == "executive"), site))
    variables = {each["name"]: each for each in raw["templating"]["list"]}
    assert variables["job"]["query"] == (
        'label_values(jax_build_info{pool="a", cluster=~"$cluster", namespace=~"$namespace", job=~"train-.*"}, job)'
    )
    assert variables["price"]["query"] == "1"
    costs = [panel for panel in raw["panels"] if panel["title"].startswith("Cost")]
    assert {panel["fieldConfig"]["defaults"]["unit"] for panel in costs} == {"currencyEUR"}
    asked = [target["expr"] for panel in raw["panels"] for target in panel.get("targets", [])]
    selectors = [found for expr in asked for found in re.findall(r"([\w:]+)(\{[^}]*\})", expr)]
    # What is recorded was chosen by the label before it was recorded, and may not have it.
    assert all(('pool="a"' in matchers) == (":" not in name) for name, matchers in selectors)
    assert len(selectors) >= len(asked)
    assert {panel["interval"] for panel in raw["panels"] if panel["type"] != "row"} == {"1m"}
    raw = json.loads(drawing.draw(next(board for board in BOARDS if board.name == "debug"), site))
    variables = {each["name"]: each for each in raw["templating"]["list"]}
    assert variables["function"]["allValue"] == "trainer.*"
    assert 'function=~"trainer.*"' in variables["function"]["query"]


def test_native_histograms() -> None:
    """With native histograms nothing asks for buckets, sums or counts, and quantiles are of the histogram itself."""
    text = "".join(drawing.draw(board, SITES["native"]) for board in BOARDS)
    assert "_bucket" not in text and "jax_step_seconds_sum" not in text
    assert "histogram_sum(sum by (cluster, namespace, job, instance, loop) (rate(jax_step_seconds{" in text


def test_layout() -> None:
    """Panels fill gaps from the top, and one that is too wide is refused."""

    def panel(key: str, width: int, height: int) -> Panel:
        return Panel(
            key=key, title=key, description="", kind="stat", unit="short", targets=(), width=width, height=height
        )

    panels = (panel("a", 12, 10), panel("b", 6, 5), panel("c", 6, 5), panel("d", 12, 5), panel("e", 24, 1))
    assert [place for _, place in layout.places(panels)] == [(0, 0), (12, 0), (18, 0), (12, 5), (0, 10)]
    assert layout.height(panels) == 11
    with pytest.raises(ValueError, match="`f` is 25 wide"):
        list(layout.places((panel("f", 25, 1),)))


LABELS = (Path(__file__).parent / "labels_of.txt").read_text().splitlines()
"""Expressions, and below each the labels that it leaves, or behind a `!` what its error says."""


@pytest.mark.parametrize(("expr", "found"), list(zip(LABELS[::2], LABELS[1::2], strict=True)))
def test_labels_of(expr: str, found: str) -> None:
    """The labels that an expression leaves; an error names one that cannot be there, and the expression."""
    labels, refusal, sentence = found.strip().partition("! ")
    if not refusal:
        assert (" ".join(sorted(labels_of(expr))) or "-") == labels
        return
    with pytest.raises(LabelError, match=sentence) as caught:
        labels_of(expr)
    assert expr in str(caught.value)


def test_recorded_labels() -> None:
    """A recorded series has the labels of its expression, and further rules can read it."""
    found = label_flow.recorded(
        [
            ("job:steps:rate5m", "sum by (job) (rate(jax_steps_total[5m]))", {"window": "5m"}),
            ("job:steps:max", "max by (window) (job:steps:rate5m)", {}),
        ]
    )
    assert {name: sorted(each.possible) for name, each in found.items()} == {
        "job:steps:rate5m": ["job", "window"],
        "job:steps:max": ["window"],
    }
    assert recordings.groups()


@pytest.mark.parametrize(("line", "named"), [("colour: red", "colour"), ("title: [1]", "title"), ("rows: {}", "rows")])
def test_a_wrong_field_of_a_dashboard_is_refused_by_name(
    line: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt field or a value of another type is an error that names the file and the field."""
    body = "title: T\ndescription: D\nrows: []\n"
    (tmp_path / "annotations.toml").write_text("every = []")
    (tmp_path / "wrong.yaml").write_text(re.sub(rf"(?m)^{named}:.*\n", "", body) + line + "\n")
    monkeypatch.setattr(boards.resources, "files", lambda package: tmp_path)
    boards.boards.cache_clear()
    with pytest.raises(ValueError, match=rf"(?s)wrong\.yaml: .*{named}"):
        boards.boards()
