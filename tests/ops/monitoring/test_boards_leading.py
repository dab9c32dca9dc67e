"""How dashboards lead on: colours by objectives, links, marks, sentences of findings, words where nothing is."""

import dataclasses
import json
from typing import Any

import pytest

from jaxobs.findings import all_kinds
from jaxobs.ops.monitoring import alerting, boards, drawing
from jaxobs.ops.monitoring.panel_types import Board
from jaxobs.ops.monitoring.site import ObjectiveChoice, Site

SITE = Site()
BOARDS = boards.boards()


def panel_of(board: str, key: str, site: Site = SITE) -> dict[str, Any]:
    """Returns a panel in the classic format."""
    raw = json.loads(drawing.draw(next(each for each in BOARDS if each.name == board), site))
    found: dict[str, Any] = next(each for each in raw["panels"] if each["id"] == alerting.panel_id(key))
    return found


def limits(board: str, key: str, site: Site = SITE) -> list[tuple[str, float | None]]:
    """Returns the colours of a panel, each with the value from which on it is shown."""
    steps = panel_of(board, key, site)["fieldConfig"]["defaults"]["thresholds"]["steps"]
    return [(each["color"], each["value"]) for each in steps]


def test_no_figure_that_misses_its_objective_is_green() -> None:
    """Beside an overspent budget, goodput is yellow from the alert's threshold to the target that the site set."""
    assert limits("executive", "goodput") == [("orange", None), ("yellow", 0.5), ("green", 0.9)]
    strict = Site(objectives={"goodput": ObjectiveChoice(target=0.95)})
    assert limits("executive", "goodput", strict)[-1] == ("green", 0.95)
    assert limits("serving", "failing_now") == [("green", None), ("yellow", 0.01)]
    assert limits("oncall", "request_errors") == [("green", None), ("yellow", 0.01), ("orange", 0.05)]
    assert limits("oncall", "cold_share") == [("green", None), ("orange", 0.01)], "the alert's is as strict"
    assert limits("executive", "error_budget") == [("red", None), ("green", 0)]
    columns = panel_of("executive", "slo_state")["fieldConfig"]["overrides"]
    left = next(each["properties"] for each in columns if each["matcher"]["options"] == "Budget left")
    steps = next(each["value"]["steps"] for each in left if each["id"] == "thresholds")
    assert [(each["color"], each["value"]) for each in steps] == [("red", None), ("green", 0)]


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_dashboard_leads_on(board: Board) -> None:
    """To runbooks, to the agent if people reach it, and from each process to its page; marks are on all of them."""
    site = Site(reports_url="https://agent.example.org")
    for raw in (json.loads(drawing.draw(board, dataclasses.replace(site, dashboards=form))) for form in ("v1", "v2")):
        text, spec = json.dumps(raw), raw.get("spec", raw)
        assert [each["url"] for each in spec["links"][1:]] == [
            f"{site.runbook_url}/README.md",
            "https://agent.example.org/?cluster=${cluster:percentencode}&namespace=${namespace:percentencode}"
            "&job=${job:percentencode}",
        ]
        assert "http://${__field.labels.instance}/" in text or board.name == "executive"
        found = spec["annotations"]["list"] if raw is spec else [each["spec"] for each in spec["annotations"]]
        marks = [each["name"] for each in found]
        assert {"Deployments", "Versions", "Alerts", "Process starts"} <= {*marks}


def test_what_a_panel_without_data_says() -> None:
    """A night without requests is no fault, nor is a program without a cache."""
    assert panel_of("serving", "latency")["fieldConfig"]["defaults"]["noValue"] == "No traffic"
    assert panel_of("serving", "traffic_now")["fieldConfig"]["defaults"]["noValue"] == "No traffic"
    assert panel_of("oncall", "cache_hit_ratio")["fieldConfig"]["defaults"]["noValue"] == "No persistent cache"
    assert panel_of("oncall", "errors")["fieldConfig"]["defaults"]["noValue"] == "No call raised."


def test_rows_repeat_for_each_job() -> None:
    """In both formats, with the job in the title."""
    board = next(each for each in BOARDS if each.name == "serving")
    rows = {row["title"]: row for row in json.loads(drawing.draw(board, SITE))["panels"] if row["type"] == "row"}
    assert rows["What callers wait for: $job"]["repeat"] == "job" and "repeat" not in rows["Requests"]
    layout_ = json.loads(drawing.draw(board, Site(dashboards="v2")))["spec"]["layout"]["spec"]["rows"]
    assert [each["spec"]["repeat"] for each in layout_ if each["spec"].get("repeat")] == [
        {"mode": "variable", "value": "job"}
    ]


def test_a_verdict_is_a_sentence_with_its_line() -> None:
    """Each type of finding is shown as what it is; a click leads to the live page."""
    columns = {
        each["matcher"]["options"]: {prop["id"]: prop["value"] for prop in each["properties"]}
        for each in panel_of("oncall", "verdict")["fieldConfig"]["overrides"]
    }
    (shown,) = columns["Worst finding"]["mappings"]
    assert shown["options"]["input_bound"]["text"].endswith(".")
    assert {*shown["options"]} >= {kind.NAME for kind in all_kinds.every()}
    assert "http://${__value.raw}/" in [each["url"] for each in columns["Process"]["links"]]
    assert "Line" in columns
