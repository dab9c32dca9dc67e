"""The live page shows where the time went: one bar, its parts by category, and what a run lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.page_facts import rich
from helpers.page_fixtures import Opener, chrome, opened, serving
from playwright.sync_api import Page, expect

from jaxobs.facts.wall import TIME_CATEGORIES, RunState, TimeState

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name

SECONDS = dict.fromkeys(TIME_CATEGORIES, 0.0) | {"init": 60.0, "step": 600.0, "compile": 300.0, "input_wait": 40.0}
ALONE = TimeState(
    seconds=SECONDS, counted=SECONDS, category="input_wait", wall_seconds=1000.0, started=0.0, steps=600,
    goodput=0.6,
    lost={"compile": 300.0, "init": 60.0, "input_wait": 40.0},
)  # fmt: skip
RUN = RunState(
    id="nightly-7", attempt=2, since=0.0, wall_seconds=2000.0, seconds=SECONDS | {"step": 1400.0}, down_seconds=200.0,
    redone_seconds=400.0, redone_steps=400, unsaved_seconds=12.0, unsaved_steps=12, goodput=0.5,
)  # fmt: skip


def parts(page: Page) -> dict[str, str]:
    """The figures below the bar, by category."""
    found: dict[str, str] = page.locator("#wall-legend > li").evaluate_all(
        "all => Object.fromEntries(all.map(each => [each.dataset.category, each.innerText.replaceAll('\\n', ' ')]))"
    )
    return found


def test_the_bar_is_the_whole_time(opened: Opener) -> None:
    """Steps first, then what took most; categories without a second are left out, and the parts fill the bar."""
    with serving(replace(rich(), wall=ALONE), []) as server:
        page = opened(server)
        expect(page.locator("#wall-goodput")).to_have_text("goodput 60 %")
        found = parts(page)
        assert list(found) == ["step", "compile", "init", "input_wait"]
        assert " ".join(found["compile"].split()) == "compile 5 min 00 s 30 %"
        widths = page.locator("#wall-bar > i").evaluate_all("all => all.map(each => parseFloat(each.style.width))")
        assert widths == pytest.approx([60.0, 30.0, 6.0, 4.0])
        expect(page.locator("#wall-told")).to_contain_text("now: input wait")
        server.snapshot = replace(rich(), wall=None)
        expect(page.locator("#wall")).to_be_hidden(timeout=10_000)


def test_a_run_shows_what_it_lost(opened: Opener) -> None:
    """Steps made again are no steps; the time in which no process ran is a part, and the next loss is told."""
    lost = {"redone": 400.0, "compile": 300.0, "down": 200.0, "init": 60.0, "input_wait": 40.0}
    with serving(replace(rich(), wall=replace(ALONE, lost=lost, run=RUN)), []) as server:
        page = opened(server)
        expect(page.locator("#wall-goodput")).to_have_text("goodput 50 %")
        found = {name: " ".join(text.split()) for name, text in parts(page).items()}
        assert found["step"] == "step 16 min 40 s 50 %"
        assert found["redone"] == "repeated steps 6 min 40 s 20 %"
        assert found["down"] == "no process running 3 min 20 s 10 %"
        expect(page.locator("#wall-told")).to_contain_text("12 steps (12.0 s) since the last checkpoint")
        server.snapshot = replace(rich(), wall=replace(ALONE, run=replace(RUN, redone_seconds=None, redone_steps=None)))
        expect(page.locator("#wall-told")).to_contain_text("no checkpoint seen", timeout=10_000)
