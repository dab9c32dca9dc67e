"""The live page shows served requests: the steady state and the cold starts apart, and what made them cold."""

from __future__ import annotations

from dataclasses import replace

from helpers.page_facts import empty, on_cpu
from helpers.page_fixtures import Opener, chrome, opened, serving, text
from helpers.page_request_facts import ENGINES, GENERATE, HOSTILE, PREDICT, REASON, UNSEEN
from playwright.sync_api import expect

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name


def test_routes_are_told_with_warm_and_cold_apart(opened: Opener) -> None:
    """A row a route, the busiest first: rate, errors, percentiles, share of cold ones, queue and batch."""
    with serving(replace(on_cpu(), routes=(UNSEEN, PREDICT), requests_in_flight=3), []) as server:
        page = opened(server)
        rows = page.locator("#requests-rows > tr")
        assert rows.evaluate_all("all => all.map(each => each.dataset.route)") == ["/predict", HOSTILE]
        cells = rows.nth(0).locator("td").all_inner_texts()
        assert cells == [
            "42", "1,002", "7 · <1 %", "4.1 ms", "21 ms", "3 · <1 %", "840 ms", "1.2 s", "2", "25 ms", "75 %"
        ]  # fmt: skip
        # Nobody saw whether these were cold: that is not zero.
        assert rows.nth(1).locator("td").all_inner_texts()[4:6] == ["—", "—"]
        expect(page.locator("#requests-flight")).to_have_text("3 in flight")
        assert page.title() != "pwned"


def test_a_cold_request_is_told_with_what_compiled_in_it(opened: Opener) -> None:
    """A cold request has its compilations with cause and sentence; loaded ones are marked, the rest is counted."""
    with serving(replace(on_cpu(), routes=(PREDICT,)), []) as server:
        page = opened(server)
        shown = text(page, "#requests-cold-list > li")
        for part in ("/predict", "840 ms", "error", "shape", "classify", REASON.replace("`", ""), "from the cache"):
            assert part in shown
        assert "and 1 more compilation" in shown


def test_without_requests_there_is_no_panel_and_it_comes_with_the_first(opened: Opener) -> None:
    """A training run is not bothered with it."""
    with serving(empty(), []) as server:
        page = opened(server)
        expect(page.locator("#requests")).to_be_hidden()
        server.snapshot = replace(empty(), routes=(replace(PREDICT, latest_cold=()),))
        expect(page.locator("#requests")).to_be_visible()
        expect(page.locator("#requests-cold")).to_be_hidden()


def test_on_a_phone_the_page_does_not_run_out_to_the_side(opened: Opener) -> None:
    """The table scrolls by itself."""
    with serving(replace(on_cpu(), routes=(UNSEEN, PREDICT)), []) as server:
        page = opened(server)
        page.set_viewport_size({"width": 375, "height": 800})
        expect(page.locator("#requests")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_generated_text_has_a_table_of_its_own(opened: Opener) -> None:
    """First token, each one after it, tokens, why it ended; the queue and the cache of the engines; else nothing."""
    with serving(replace(on_cpu(), routes=(PREDICT, GENERATE), requests_in_flight=3, engines=ENGINES), []) as server:
        page = opened(server)
        rows = page.locator("#generation-rows > tr")
        assert rows.evaluate_all("all => all.map(each => each.dataset.route)") == ["/generate"]
        assert rows.nth(0).locator("td").all_inner_texts() == [
            "180 ms", "900 ms", "13 ms", "31 ms", "1,425", "18,400", "41,000", "stop 80 · length 8 · tool calls 2"
        ]  # fmt: skip
        expect(page.locator("#requests-flight")).to_have_text("3 in flight · 3 waiting · KV cache 86 %")
        server.snapshot = replace(on_cpu(), routes=(PREDICT,))
        expect(page.locator("#generation")).to_be_hidden()
