"""Every query of dashboards and runbooks, asked of a real Prometheus that scrapes real programs and evaluates rules."""

import time
from collections.abc import Iterator

import pytest
from helpers import grafana_panels
from helpers.grafana_panels import Drawn, Given
from helpers.requirements import program

from jaxobs.ops.monitoring import alerting, boards, promql
from jaxobs.ops.monitoring.site import Site
from tools import panel_data

pytestmark = pytest.mark.slow

SECONDS = 30.0
NOT_THERE = {"trouble", "hours"}
"""Needs of panels that are not made here on purpose; all else is there."""
TROUBLE = {
    "oncall/errors", "oncall/findings", "oncall/verdict", "debug/verdict", "debug/errors", "debug/host",
    "devices/xid_errors", "devices/throttled",
}  # fmt: skip
"""Panels that show something here, for these troubles are made."""


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[str, float]]:
    """The address of Prometheus, once two programs have run for half a minute, and the time then."""
    program("prometheus")
    program("prometheus-node-exporter")
    with (
        panel_data.programs(2, SECONDS + 30) as addresses,
        panel_data.devices() as made_up,
        panel_data.host() as host,
        panel_data.Prometheus({"program": addresses, "made-up": made_up, "host": host}) as prometheus,
    ):
        time.sleep(SECONDS)
        failing = [
            f"{rule['name']}: {rule['lastError']}"
            for group in panel_data.get(prometheus.url, "rules")["groups"]
            for rule in group["rules"]
            if rule.get("lastError")
        ]
        assert not failing
        yield prometheus.url, time.time()


@pytest.fixture(scope="module")
def found(stage: tuple[str, float]) -> list[tuple[str, panel_data.Answer]]:
    """All answers to the queries of dashboards."""
    url, now = stage
    span = panel_data.Span(now - SECONDS, now, 2.0)
    return [
        (board.name, answer)
        for board in boards.boards()
        for job in ("program", "made-up")
        for answer in panel_data.answers(board, url, span, job)
    ]


def test_no_query_fails(found: list[tuple[str, panel_data.Answer]]) -> None:
    """Prometheus takes every query as it stands in the dashboards."""
    errors = [f"{board}/{each.panel.key}: {each.error}\n{each.expr}" for board, each in found if each.error]
    assert not errors, "\n".join(errors)
    assert len(found) > 100


def test_every_panel_shows_something(found: list[tuple[str, panel_data.Answer]]) -> None:
    """Nothing is empty but what needs a fault, and says so; GPUs and TPUs are made-up ones here."""
    shown = {f"{board}/{each.panel.key}" for board, each in found if each.series}
    wanted = {f"{board}/{each.panel.key}" for board, each in found if each.panel.needs not in NOT_THERE}
    assert (wanted | TROUBLE) - shown == set()


def test_each_query_of_vllm_shows_something(found: list[tuple[str, panel_data.Answer]]) -> None:
    """A made-up server exports series under the names of vLLM."""
    asked = [each for _, each in found if "vllm:" in each.expr and 'job=~"made-up"' in each.expr]
    assert [each.expr for each in asked if not each.series] == [] and asked


def test_marks_are_true(found: list[tuple[str, panel_data.Answer]]) -> None:
    """A panel that is marked as needing a device shows nothing of programs that have none."""
    marked = {
        f"{board}/{each.panel.key}"
        for board, each in found
        if each.series and each.panel.needs in ("gpu", "tpu", "accelerator") and 'job=~"program"' in each.expr
    }
    assert marked == set()


QUIET = {
    "jax_nonfinite_total", "jax_out_of_memory_total", "jax_findings", "jax_run_lost_seconds", "accelerator_up",
    "jax_persistent_cache_unsaved_total", "jaxobs_dropped_series_total", "jaxobs_agent_webhooks_refused_total",
    "jaxobs_event_log_left_bytes",
}  # fmt: skip
"""Series that nothing here has, or not for sure: no fault is made, everything is cached, and no driver is asked."""


def test_the_queries_of_runbooks_are_answered(stage: tuple[str, float]) -> None:
    """Prometheus takes each as it stands on the page, and has the series that it asks for."""
    url, now = stage
    site = Site()
    recorded = {rule["record"] for group in alerting.recording_groups(site) for rule in group["rules"]}
    queries = [
        (alert.name, site.filled(step.query, alerting.thresholds(alert, site)))
        for alert in alerting.offered(site) for step in alert.runbook.diagnosis if step.query
    ]  # fmt: skip
    wrong, series = [], {}
    for name, query in queries:
        try:
            panel_data.get(url, "query", query=query, time=now)
        except ValueError as error:
            wrong.append(f"{name}: {error}\n{query}")
        series |= {selector.name: name for selector in promql.selectors(query)}
    assert not wrong, "\n".join(wrong)
    looks = {name: f"last_over_time({name}[1m])" for name in series.keys() - recorded - QUIET}
    missing = [
        f"{name} in {series[name]}"
        for name, query in looks.items() if not panel_data.get(url, "query", query=query, time=now)["result"]
    ]  # fmt: skip
    assert missing == [] and len(queries) > 100


@pytest.fixture(scope="module")
def drawn(found: list[tuple[str, panel_data.Answer]]) -> list[tuple[Given, Drawn]]:
    """Every panel with an answer, as Grafana's own code makes it ready to be drawn; programs and devices apart."""
    given = []
    for board in boards.boards():
        for panel in panel_data.drawn(board)["panels"]:
            for job in ("program", "made-up"):
                answers = [
                    {"refId": each.letter, "result": list(each.series)}
                    for name, each in found
                    if name == board.name and alerting.panel_id(each.panel.key) == panel["id"]
                    and f'job=~"{job}"' in each.expr
                ]  # fmt: skip
                if any(each["result"] for each in answers):
                    given.append(Given(f"{board.name}/{panel['title']} ({job})", panel, answers))
    return list(zip(given, grafana_panels.draw(given), strict=True))


def test_grafana_draws_what_there_is(drawn: list[tuple[Given, Drawn]]) -> None:
    """Grafana's transformations and field options fail nowhere, and each field has a text for each of its values."""
    assert [each.error for _, each in drawn if each.error] == []
    assert len(drawn) > 80
    for given, each in drawn:
        assert each.frames, given.name
        for frame in each.frames:
            for field in frame:
                assert not [text for text in field.texts if "undefined" in text or "Invalid" in text], given.name


def test_tables_have_the_columns_that_they_declare(drawn: list[tuple[Given, Drawn]]) -> None:
    """Each under its own title, none left with the data source's name, no row twice; links lead somewhere."""
    shown: dict[str, set[str]] = {}
    for given, each in drawn:
        if given.panel["type"] != "table":
            continue
        title = given.name.rpartition(" (")[0]
        (frame,) = each.frames
        names = [field.name for field in frame]
        options = given.panel["transformations"][-1]["options"]
        in_order = sorted(options["indexByName"], key=options["indexByName"].get)
        assert [options["renameByName"][column] for column in in_order if column not in each.missing] == names, title
        assert len(names) > 1 and len(set(names)) == len(names), title
        rows = list(zip(*(field.texts for field in frame if field.type == "string"), strict=True))
        assert len(set(rows)) == len(rows), f"{title}: {rows}"
        shown.setdefault(title, set()).update(names)
    wanted = {
        title: set(given.panel["transformations"][-1]["options"]["renameByName"].values())
        for given, _ in drawn if given.panel["type"] == "table" for title in [given.name.rpartition(" (")[0]]
    }  # fmt: skip
    # A column is absent where no target has it: nobody tells these of a runtime, and they are in no cluster.
    absent = {column for title, columns in wanted.items() for column in columns - shown[title]}
    assert absent == {"Cluster", "Namespace", "Runtime"}
    assert len(shown) >= 6


def test_overrides_of_tables_match_a_column(drawn: list[tuple[Given, Drawn]]) -> None:
    """Each column has its unit: if the column is there, the override is at work."""
    tables = [(given, each) for given, each in drawn if given.panel["type"] == "table"]
    for given, each in tables:
        columns = {field.name: field for frame in each.frames for field in frame}
        assert not set(each.idle) & set(columns), given.name
        for override in given.panel["fieldConfig"]["overrides"]:
            column = columns.get(override["matcher"]["options"])
            for one in override["properties"]:
                if column is not None and one["id"] == "unit":
                    assert column.unit == one["value"], given.name
                if column is not None and one["id"] == "links":
                    assert column.links == [link["url"] for link in one["value"]], given.name
