"""The live page shows where the devices' time goes: a bar by kind of operation, idle time by reason, operations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.made_by_hand import profile_sample
from helpers.page_facts import rich
from helpers.page_fixtures import Opener, chrome, opened, serving
from helpers.page_profile_facts import PROFILE
from playwright.sync_api import Page, expect

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name


def parts(page: Page) -> dict[str, str]:
    """The figures below the bar."""
    found: dict[str, str] = page.locator("#profile-legend > li").evaluate_all(
        "all => Object.fromEntries(all.map(each => [each.dataset.part, each.innerText.replaceAll('\\n', ' ')]))"
    )
    return found


def test_the_bar_is_the_devices_time(opened: Opener) -> None:
    """The bar has what devices computed, then what kept them idle; two devices for 0.1 s each, half of it busy."""
    sample = replace(PROFILE, latest=(profile_sample(),))
    with serving(replace(rich(), profile=sample), []) as server:
        page = opened(server)
        expect(page.locator("#profile-busy")).to_have_text("50 % busy")
        found = parts(page)
        assert list(found) == ["matmul", "collective", "idle: input"]
        assert found["matmul"].split()[-2:] == ["40", "%"] and found["idle: input"].split()[-2:] == ["50", "%"]
        widths = page.locator("#profile-bar > i").evaluate_all("all => all.map(each => parseFloat(each.style.width))")
        assert widths == pytest.approx([40.0, 10.0, 50.0])
        expect(page.locator("#profile-told")).to_contain_text("1 sample")
        expect(page.locator("#profile-told")).to_contain_text("5 %")
        server.snapshot = replace(rich(), profile=None)
        expect(page.locator("#profile")).to_be_hidden(timeout=10_000)


def test_the_largest_operations_are_listed_over_all_samples(opened: Opener) -> None:
    """Operations have their line, their kind, and their share of the same whole as the bar's."""
    with serving(replace(rich(), profile=PROFILE), []) as server:
        page = opened(server)
        rows = page.locator("#profile-rows > tr")
        expect(rows).to_have_count(8)
        first = " ".join(rows.first.inner_text().split())
        assert first == "jit(step)/layer0/matmul train.step 45 % matmul compute train.py:12"
        assert parts(page)["matmul"].split()[-2:] == ["45", "%"]
        colours = page.locator("#profile-bar > i").evaluate_all("all => all.map(each => each.style.background)")
        assert all(each.startswith("var(--") for each in colours) and len(colours) == 12
