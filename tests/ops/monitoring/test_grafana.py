"""The dashboards in Grafana's eyes, without a server: its types for each major version, and its own field options.

What it does with real answers is in `test_boards_live.py`.
"""

import copy
import functools
import json
from typing import Any

import pytest
from helpers import grafana_panels, grafana_types
from helpers.grafana_panels import Given

from jaxobs.ops.monitoring import boards, drawing
from jaxobs.ops.monitoring.site import Site

pytestmark = [pytest.mark.linters, pytest.mark.settled, pytest.mark.timeout(1200)]

QUERIES = {"expr", "step", "tagKeys", "textFormat", "titleFormat", "useValueForTime"}
"""Prometheus' own fields of an annotation's query, which the type of all data sources leaves out."""
ALWAYS = {f"dashboard: {name}" for name in (*QUERIES, "definition")}
"""`definition` is what Grafana itself writes for a query variable when it saves one."""
UNKNOWN = {
    "10.4": {
        "bargauge options: legend", "dashboard: allowCustomValue", "dashboard: placement",
        "heatmap options: selectionMode", "stat options: percentChangeColorMode", "state-timeline options: perPage",
    },
    "11.6": {"dashboard: placement"},
    "12.4": {"table options: footer"},
    "13.2": {"table options: footer"},
}  # fmt: skip
"""Options that a version does not have and ignores: newer ways to show the same; a table's footer, off, has moved."""


@functools.cache
def classic() -> dict[str, Any]:
    """The classic JSON of each dashboard."""
    return {board.name: json.loads(drawing.draw(board, Site())) for board in boards.boards()}


@functools.cache
def manifests() -> dict[str, Any]:
    """The spec of each dashboard's manifest."""
    return {board.name: json.loads(drawing.draw(board, Site(dashboards="v2")))["spec"] for board in boards.boards()}


@pytest.mark.parametrize("version", grafana_types.VERSIONS)
def test_types(version: str) -> None:
    """Options, dashboards and manifests have no value that the version refuses, and no name but those above."""
    found = grafana_types.compare(version, classic(), manifests())
    assert found.said == []
    assert set(found.unknown) == ALWAYS | UNKNOWN[version]
    assert found.compared > 200


VALUES: dict[str, tuple[str, tuple[str, ...], Any]] = {
    "a choice": ("timeseries", ("options", "legend", "displayMode"), "lines"),
    "a choice of the field": ("timeseries", ("fieldConfig", "defaults", "custom", "drawStyle"), "line chart"),
    "a type": ("table", ("options", "showHeader"), "yes"),
    "a type of the panel": ("stat", ("transparent",), "yes"),
}
NAMES: dict[str, tuple[str, tuple[str, ...], Any]] = {
    "stat options: colourMode": ("stat", ("options", "colourMode"), "value"),
    "timeseries custom: filling": ("timeseries", ("fieldConfig", "defaults", "custom", "filling"), 10),
    "dashboard: heading": ("stat", ("heading",), "Goodput"),
}


def with_mistake(kind: str, path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A dashboard of one panel, with a mistake."""
    panel = copy.deepcopy(next(each for each in classic()["executive"]["panels"] if each["type"] == kind))
    place = panel
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return {**classic()["executive"], "panels": [panel]}


def test_types_find_mistakes() -> None:
    """A value that is not allowed, a name that there is not: in options, in the field's own, in the panel."""
    faulty = {name: with_mistake(*mistake) for name, mistake in {**VALUES, **NAMES}.items()}
    found = grafana_types.compare("13.2", faulty)
    for name in VALUES:
        assert any(each.startswith((f"{name}/", f"{name} (")) for each in found.said), name
    assert set(found.unknown) - ALWAYS - UNKNOWN["13.2"] == set(NAMES)


SERIES = [
    {"metric": {"job": "a", "instance": "a:1", "cause": "shape"}, "values": [[0, "1"], [60, "2000"]]},
    {"metric": {"job": "a", "instance": "a:2", "cause": "dtype"}, "values": [[0, "0"], [60, "3"]]},
]


def panels() -> list[tuple[str, dict[str, Any]]]:
    """Every panel with its name."""
    return [
        (f"{name}/{panel['title']}", panel)
        for name, board in classic().items() for panel in board["panels"] if panel["type"] != "row"
    ]  # fmt: skip


def attainable(panel: dict[str, Any]) -> list[dict[str, Any]]:
    """Answers in which each label of a legend has, one after the other, the names that overrides ask for."""
    names = [each["matcher"]["options"] for each in panel["fieldConfig"]["overrides"]]
    found = []
    for target in panel["targets"]:
        labels = [part.split("}}")[0].strip() for part in target["legendFormat"].split("{{")[1:]]
        series = [{"metric": dict.fromkeys(labels, name), "value": [0, "1"], "values": [[0, "1"]]} for name in names]
        found.append({"refId": target["refId"], "result": series or SERIES})
    return found


def test_grafana_knows_everything_that_panels_name() -> None:
    """Units, colour modes, calculations, transformations, matchers, properties: all are in its registries."""
    drawn = grafana_panels.draw(Given(name, panel, []) for name, panel in panels())
    assert [each.error for each in drawn if each.error] == []
    assert {each.name: each.unknown for each in drawn if each.unknown} == {}


def test_every_override_of_a_line_can_match() -> None:
    """The override's name is one that the legend can have; tables are looked at with real answers."""
    lines = [(name, panel) for name, panel in panels() if panel["type"] != "table"]
    drawn = grafana_panels.draw(Given(name, panel, attainable(panel)) for name, panel in lines)
    assert {each.name: each.idle for each in drawn if each.idle} == {}
    assert sum(len(panel["fieldConfig"]["overrides"]) for _, panel in lines) > 20


FAULTS: dict[str, tuple[str, Any]] = {
    "unit": ("unit", "secs"),
    "color mode": ("color", {"mode": "rainbow"}),
    "property": ("colour", "red"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_grafana_does_not_know_is_found(fault: str) -> None:
    """In an override as in the defaults."""
    key, value = FAULTS[fault]
    panel = copy.deepcopy(dict(panels())["debug/Compilations by function"])
    panel["fieldConfig"]["overrides"][0]["properties"].append({"id": key, "value": value})
    (drawn,) = grafana_panels.draw([Given("faulty", panel, [])])
    assert any(each.startswith(fault) for each in drawn.unknown)


def test_an_override_that_matches_nothing_is_found() -> None:
    """An override of a series that was renamed is idle."""
    lines = ((name, panel) for name, panel in panels() if panel["type"] != "table")
    name, panel = next((name, panel) for name, panel in lines if panel["fieldConfig"]["overrides"])
    faulty = copy.deepcopy(panel)
    answers = attainable(panel)
    faulty["fieldConfig"]["overrides"][0]["matcher"]["options"] = "gone"
    (drawn,) = grafana_panels.draw([Given(name, faulty, answers)])
    assert drawn.idle == ["gone"]
