"""The live page for every reader: in light and dark, on a phone, on paper, by keyboard, without motion."""

import re

import pytest
from helpers.contrast import CONTRAST
from helpers.page_facts import compilation, events, lookups, rich
from helpers.page_fixtures import Opener, chrome, opened, order, serving
from playwright.sync_api import expect

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name

TEXTS = (
    "#program", "#where li", "#versions li", "#live-text", "#theme", ".tile h2", ".tile .big", ".tile .sub span",
    ".open .phase", ".open .num", "th button", ".fn .prefix", ".fn .rest", "td.num", ".why td", ".chip span",
    ".chip b", ".badge", ".legend li", ".count", ".row time", ".cost", ".reason", ".changes th", ".changes del",
    ".changes mark", ".changes ins mark", ".missed", ".missed .badge", ".more-facts summary", ".part", ".kind",
    ".subject", ".summary", ".advice strong", ".figures span", ".links a", ".evidence li", ".sizes figcaption span",
    "svg .tick", "td small", "td small.slow", "#cache-directory", "#cache-unsaved strong", ".detail-text", ".site",
    "figcaption .num", "figcaption .quiet", "dt", "dd", "footer a",
)  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(opened: Opener, scheme: str) -> None:
    """Contrast of at least 4.5 to 1 for all kinds of text, in the theme that the system asks for."""
    with serving(rich(), [*events(), *lookups()]) as server:
        page = opened(server, color_scheme=scheme)
        page.locator("#findings details").evaluate_all("all => all.forEach(each => { each.open = true; })")
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        ratios = page.evaluate(CONTRAST, list(TEXTS))
        assert set(ratios) == set(TEXTS)
        assert {selector: ratio for selector, ratio in ratios.items() if ratio < 4.5} == {}


def test_the_theme_can_be_chosen_and_is_remembered(opened: Opener) -> None:
    """System, light, dark, in turn; the choice holds after a reload."""
    with serving(rich()) as server:
        page = opened(server, color_scheme="light")
        page.click("#theme")
        page.click("#theme")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.reload()
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        expect(page.locator("#theme-text")).to_have_text("dark")


def test_the_page_works_where_storage_is_forbidden(opened: Opener) -> None:
    """A browser that refuses localStorage loses the memory of the theme and nothing else."""
    forbid = """Object.defineProperty(window, 'localStorage', {
        get() { throw new DOMException('denied', 'SecurityError'); },
    });"""
    with serving(rich()) as server:
        page = opened(server, script=forbid, color_scheme="dark")
        page.click("#theme")
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        assert len(order(page)) == 25


def test_motion_stops_for_those_who_ask(opened: Opener) -> None:
    with serving(rich(), events()) as server:
        for wish, runs in (("reduce", False), ("no-preference", True)):
            page = opened(server, reduced_motion=wish)
            server.events.append(compilation(50 + runs, "late.step"))
            expect(page.locator("#recent > li.fresh")).to_have_count(1)
            assert (page.evaluate("document.getAnimations().length") > 0) == runs


def test_a_print_shows_all_rows_on_white(opened: Opener) -> None:
    """On paper nothing is scrolled away, and the dark theme is left behind."""
    with serving(rich(), events()) as server:
        page = opened(server, color_scheme="dark")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        hidden = page.evaluate(
            "[...document.querySelectorAll('.scroll')].map(box => box.scrollHeight - box.clientHeight)"
        )
        assert max(hidden) <= 0


def test_controls_have_names_for_those_who_do_not_see(opened: Opener) -> None:
    """Buttons, fields, charts and regions are named; the table is one, with its headers."""
    with serving(rich(), events()) as server:
        page = opened(server)
        assert (
            page.get_by_role("button").evaluate_all(
                "nodes => nodes.filter(node => !(node.getAttribute('aria-label') || node.textContent.trim())).length"
            )
            == 0
        )
        for role, name in (
            ("searchbox", "Filter functions by name or cause"),
            ("region", "Functions 25"),
            ("region", "Recent compilations 7"),
            ("region", "Findings 4"),
            ("region", "Persistent cache"),
            ("region", "Cache requests by function"),
            ("checkbox", re.compile("show eager")),
        ):
            expect(page.get_by_role(role, name=name)).to_have_count(1)  # type: ignore[arg-type]
        expect(page.get_by_role("table").first.get_by_role("columnheader")).to_have_count(7)
        expect(page.get_by_role("img", name=re.compile("Memory of gpu:2 over time"))).to_have_count(1)
