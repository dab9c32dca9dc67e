"""Every query of every dashboard, asked of a real Prometheus that scrapes real programs and evaluates the rules."""

from __future__ import annotations

import pathlib
import sys
import time
from collections.abc import Iterator

import pytest
from requirements import program

from jaxobs import boards

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from tools import panel_data

pytestmark = pytest.mark.slow

SECONDS = 30.0
NOT_THERE = {"trouble"}
"""What panels need that is not made here on purpose; all else is there."""
TROUBLE = {"oncall/errors", "oncall/findings", "debug/errors", "debug/host", "devices/xid_errors", "devices/throttled"}
"""Panels that show something here, for these troubles are made."""


@pytest.fixture(scope="module")
def found() -> Iterator[list[tuple[str, panel_data.Answer]]]:
    """All answers, once two programs have run for half a minute."""
    program("prometheus")
    with (
        panel_data.programs(2, SECONDS + 30) as addresses,
        panel_data.devices() as made_up,
        panel_data.Prometheus({"program": addresses, "made-up": made_up}) as prometheus,
    ):
        time.sleep(SECONDS)
        now = time.time()
        span = panel_data.Span(now - SECONDS, now, 2.0)
        failing = [
            f"{rule['name']}: {rule['lastError']}"
            for group in panel_data.get(prometheus.url, "rules")["groups"]
            for rule in group["rules"]
            if rule.get("lastError")
        ]
        assert not failing
        yield [
            (board.name, answer)
            for board in boards.boards()
            for job in ("program", "made-up")
            for answer in panel_data.answers(board, prometheus.url, span, job)
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


def test_marks_are_true(found: list[tuple[str, panel_data.Answer]]) -> None:
    """What is marked as needing a device shows nothing of programs that have none."""
    marked = {
        f"{board}/{each.panel.key}"
        for board, each in found
        if each.series and each.panel.needs in ("gpu", "tpu", "accelerator") and 'job=~"program"' in each.expr
    }
    assert marked == set()
