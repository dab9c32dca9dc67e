"""Loops of steps as a person sees them: the page's panel and the lines of `jaxobs top`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.page_facts import NOW, events, rich
from helpers.page_fixtures import Opener, chrome, opened, serving, text
from helpers.page_input_facts import TRAIN
from playwright.sync_api import expect

from jaxobs.facts.loops import LoopState
from jaxobs.views.terminal import Connection, Overview, Surface, lay_out
from jaxobs.views.terminal.lines import as_text, cells

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name

FOUND = LoopState(
    name="eval.<img src=x onerror=alert(1)>", found=True, steps=200, ended=NOW - 60, recent=(0.002,),
    mean_seconds=0.002, steps_per_second=500.0, mfu_unknown="The peak of `cpu` is not known.",
)  # fmt: skip


def test_the_page_shows_each_loop_with_its_rates_and_recent_times(opened: Opener) -> None:
    """Hidden where there is none; figures follow the process; what is not known is a dash with the reason."""
    with serving(rich(), events()) as server:
        page = opened(server)
        expect(page.locator("#loops")).to_be_hidden()
        server.snapshot = replace(rich(), loops=(TRAIN, FOUND))
        rows = page.locator("#loops-rows tr")
        expect(rows).to_have_count(2)
        assert text(page, "#loops-rows tr:first-child th") == "train 3 slow"
        assert [" ".join(each.split()) for each in rows.first.locator("td.num").all_inner_texts()] == [
            "41,233", "3.21", "310 ms p99 950 ms", "205", "48.6 %",
        ]  # fmt: skip
        points = rows.first.locator("polyline").get_attribute("points")
        assert points is not None and len(points.split()) == 5
        heights = [float(point.split(",")[1]) for point in points.split()]
        assert min(heights) == heights[3] == 1.0
        assert [" ".join(each.split()) for each in rows.nth(1).locator("td.num").all_inner_texts()] == [
            "200",
            "500",
            "2.0 ms mean",
            "—",
            "—",
        ]
        assert rows.nth(1).locator("td.num").nth(4).get_attribute("title") == FOUND.mfu_unknown
        expect(rows.nth(1).locator(".badge")).to_have_text("found")
        uncertain = replace(TRAIN, steps=41_240, mfu=None, mfu_range=(0.00372, 0.0517), mfu_unknown="Which runs?")
        server.snapshot = replace(rich(), loops=(uncertain,))
        expect(rows.first.locator("td.num").first).to_have_text("41,240")
        expect(rows.first.locator("td.num").nth(4)).to_have_text("0.37–5.2 %")
        assert rows.first.locator("td.num").nth(4).get_attribute("title") == "Which runs?"
        expect(rows).to_have_count(1)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_the_terminal_has_a_line_for_each_loop(width: int) -> None:
    """As many figures as fit; none at all where there is no loop."""
    view = Overview(snapshot=replace(rich(), loops=(FOUND, TRAIN)), connection=Connection(url="u"))
    lines = as_text(lay_out(view, Surface(width=width))).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(" Steps "))
    train, found = lines[at + 1], lines[at + 2]
    assert train.startswith(" train  41,233 steps") and found.lstrip().startswith("eval.<img")
    assert all(cells(line) <= width for line in lines)
    if width == 160:
        assert "3.21 per second · p50 310 ms, p99 950 ms · 205 items per second · MFU 48.6 % · 3 slow" in train
        assert "mean 2 ms" in found and found.endswith("found")
        uncertain = replace(TRAIN, mfu=None, mfu_range=(0.00372, 0.0517))
        told = as_text(lay_out(replace(view, snapshot=replace(rich(), loops=(uncertain,))), Surface(width=width)))
        assert "MFU 0.37 to 5.2 %" in told
    assert " Steps " not in as_text(lay_out(replace(view, snapshot=rich()), Surface(width=width)))
