"""The live page shows who waits for whom, and which watched values are not finite."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.page_facts import NOW, empty, rich
from helpers.page_fixtures import Opener, chrome, opened, serving, text
from helpers.page_input_facts import AHEAD, FAST, HOSTILE, SLOW, WALL, WATCHED
from helpers.waiting import until
from playwright.sync_api import expect

import jaxobs
from jaxobs.facts.findings import Finding

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name


def batches(seconds: float) -> Iterator[Any]:
    """Random numbers in the place of images, each after so long."""
    random = np.random.default_rng(0)
    for _ in range(60):
        time.sleep(seconds)
        yield {"image": random.normal(size=(32, 64)).astype(np.float32)}


@pytest.mark.usefixtures("fresh")
def test_a_real_program_is_told_as_its_snapshot_has_it(opened: Opener) -> None:
    """A slow loader of random numbers, a loss that turns NaN: verdict, wait, look, and the first call."""
    step = jax.jit(lambda w, batch: (w, (batch["image"] @ w).sum()))
    w = jnp.ones((64, 4))
    for number, batch in enumerate(jaxobs.data(batches(0.01), "train")):
        w, loss = step(w, batch)
        jaxobs.watch(loss=float(loss) if number < 40 else float("nan"), steady=1.0)
    jaxobs.install()  # its last sample looks at what is left
    until(lambda: all(each.checked >= 60 for each in jaxobs.snapshot().watched))
    snapshot = jaxobs.snapshot()
    (state,) = snapshot.inputs
    assert state.verdict == "input"
    with serving(snapshot, []) as server:
        page = opened(server)
        shown = text(page, '[data-input="train"]')
        assert "input-bound" in shown and "60 batches" in shown
        widths = page.locator('[data-input="train"] .bar > i').evaluate_all(
            "all => all.map(each => [each.dataset.part, parseFloat(each.style.width)])"
        )
        assert [name for name, _ in widths] == ["waited for input", "all else"]
        assert widths[0][1] == pytest.approx(100 * (state.share or 0), abs=0.1)
        assert text(page, "#watched-count") == "2, 1 not finite"
        rows = page.locator("#watched-rows > tr")
        assert [" ".join(each.split()) for each in rows.all_inner_texts()] == [
            "loss not finite 60 20 40 —", "steady finite 60 0 — —"
        ]  # fmt: skip


def test_each_kind_of_input_and_of_value_is_told_as_what_it_is(opened: Opener) -> None:
    """Input-bound, keeping up, on another thread; finite, not finite, finite again, never looked at; hostile names."""
    with serving(empty(), []) as server:
        page = opened(server)
        expect(page.locator("#inputs")).to_be_hidden()
        expect(page.locator("#watched")).to_be_hidden()
        server.snapshot = replace(rich(), inputs=(SLOW, FAST, AHEAD), watched=WATCHED)
        items = page.locator("#inputs-list > li")
        expect(items).to_have_count(3)
        assert items.locator(".named .badge").all_inner_texts() == [
            "input-bound", "input keeps up", "on another thread",
        ]  # fmt: skip
        assert "80 % of a batch" in text(page, '[data-input="train"]')
        assert AHEAD.summary in items.nth(2).inner_text()
        rows = [" ".join(each.split()) for each in page.locator("#watched-rows > tr").all_inner_texts()]
        assert rows == [
            "loss not finite 1,290 of 1,300 98 202 10 deleted",
            f"{HOSTILE} finite 30 2 — —",
            "ratio finite 300 0 — —",
            "grads not checked yet 0 of 300 0 — 300 too large",
        ]
        assert page.title() != "pwned"
        server.snapshot = replace(rich(), inputs=(replace(SLOW, verdict="mixed"),))
        expect(items.locator(".named .badge")).to_have_text(["both cost"])
        expect(page.locator("#watched")).to_be_hidden()


def test_a_finding_about_an_input_counts_batches_and_one_about_processes_no_samples(opened: Opener) -> None:
    """The line below a finding says what was counted; nothing about compilations if there are none."""
    of_input = Finding(
        time=NOW, id="i", finding="input_bound", function="<unknown>", subject="train", summary="It waits.",
        advice="Load ahead.", count=300, seconds=45.0, since=NOW - 60, data={"input": "train"},
    )  # fmt: skip
    of_fleet = Finding(
        time=NOW, id="f", finding="straggler", function="train", subject="process 2", summary="It is slow.",
        advice="Look at that host.", count=500, since=NOW - 60, data={"process": 2, "host": "node-7"},
    )  # fmt: skip
    with serving(replace(rich(), findings=(of_input, of_fleet)), []) as server:
        page = opened(server)
        shown = text(page, '[data-finding="i"]')
        assert "300 batches" in shown and "45.0 s waited" in shown and "<unknown>" not in shown
        shown = text(page, '[data-finding="f"]')
        assert "process 2" in shown and "sample" not in shown and "compilation" not in shown


def test_on_a_phone_the_page_does_not_run_out_to_the_side(opened: Opener) -> None:
    """The page does not overflow by names of any length, in the dark either."""
    long = replace(SLOW, name="n" * 200)
    wide = replace(WATCHED[1], name="w" * 200)
    snapshot = replace(rich(), inputs=(long, FAST), watched=(wide, *WATCHED), wall=WALL)
    with serving(snapshot, []) as server:
        page = opened(server, viewport={"width": 375, "height": 800}, color_scheme="dark")
        expect(page.locator("#watched")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
