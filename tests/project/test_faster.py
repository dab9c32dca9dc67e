"""The rules on a faster clock: which numbers of an expression are time, and which are not."""

import json
import pathlib
import subprocess

import pytest
from helpers.requirements import program

from jaxobs.ops.monitoring import alerting
from jaxobs.ops.monitoring.deploying import prometheus
from jaxobs.ops.monitoring.site import Site
from tools import faster

EXPRESSIONS = pathlib.Path(__file__).with_name("faster_expressions.txt").read_text().splitlines()
"""Expressions, each with what becomes of it when a minute is a second in the next line."""


@pytest.mark.parametrize(
    ("text", "factor", "expected"),
    [("30m", 60, "30s"), ("1h30m", 60, "90s"), ("30s", 60, "500ms"), ("5m", 7, "42858ms"), ("1s500ms", 1, "1500ms")],
)
def test_durations(text: str, factor: int, expected: str) -> None:
    """To the millisecond, upwards: a range is not to lose a sample."""
    assert faster.duration(text, factor) == expected


@pytest.mark.parametrize(("expr", "expected"), [*zip(EXPRESSIONS[::2], EXPRESSIONS[1::2], strict=True)])
def test_expressions(expr: str, expected: str) -> None:
    """Ranges, offsets, resolutions and ages are; labels, names, counts and what programs measure are not."""
    assert faster.expression(expr, 60) == expected.strip()


def test_what_is_not_understood() -> None:
    """A limit that stays as it is would make a test wait for an hour, or pass for nothing."""
    with pytest.raises(ValueError, match="Which of these are seconds by the clock"):
        faster.expression("3600 < time() - a", 60)
    with pytest.raises(ValueError, match="'10' is no duration"):
        faster.duration("10", 60)


def test_all_rules(tmp_path: pathlib.Path) -> None:
    groups = alerting.groups(Site())
    found = [faster.group(each, 60) for each in groups]
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"groups": found}))
    checked = subprocess.run([program("promtool"), "check", "rules", str(path)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    rules = [
        (was, now) for a, b in zip(groups, found, strict=True) for was, now in zip(a["rules"], b["rules"], strict=True)
    ]
    for was, now in rules:
        for name in ("for", "keep_firing_for"):
            if name in was:
                assert faster.milliseconds(now[name]) == faster.milliseconds(was[name]) / 60
    assert sum(was["expr"] != now["expr"] for was, now in rules) > 100


def test_alertmanager() -> None:
    given = prometheus.alertmanager(Site(agent_url=""))
    found = faster.alertmanager(given, 60, "http://127.0.0.1:1")
    assert (found["route"]["group_wait"], found["route"]["routes"][1]["repeat_interval"]) == ("500ms", "60s")
    assert found["inhibit_rules"] == given["inhibit_rules"]
    assert [each["webhook_configs"][0]["url"] for each in found["receivers"]] == [
        f"http://127.0.0.1:1/{name}" for name in ("pager", "tickets", "nowhere")
    ]
    assert given == prometheus.alertmanager(Site(agent_url=""))
