"""The live page shows where memory went: the account of each device, what holds it, the report of a call that died."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from helpers.contrast import CONTRAST
from helpers.page_facts import GIB, NOW, PID, events, process, rich
from helpers.page_fixtures import Opener, chrome, opened, row, seen, serving, text
from helpers.page_memory_facts import (
    FINDING_OVER,
    LEAK,
    capture,
    died,
    full,
    full_gpu,
    group,
    groups,
    many,
    out_of_memory,
    samples,
    without_allocator,
)
from playwright.sync_api import Page, expect

from jaxobs.facts.memory import headroom

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name


def test_a_device_is_chosen_by_keyboard(opened: Opener, whole: Callable[[str, str], None]) -> None:
    """The device's figures take the place of the fullest one's; its bar is as wide as what is in use of the limit."""
    with serving(full()) as server:
        page = opened(server, at=NOW)
        button = page.locator("#accounts li[data-device='gpu:3'] button")
        button.focus()
        page.keyboard.press("Enter")
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#accounts button[aria-pressed=true]")).to_have_count(1)
        whole("gpu:3", seen(page, "#account-facts"))
        memory, bar = server.snapshot.devices[3].memory, button.locator(".bar")
        used = bar.locator("i").evaluate_all("all => all.reduce((sum, i) => sum + i.getBoundingClientRect().width, 0)")
        drawn = bar.bounding_box()
        assert drawn and memory and memory.in_use_bytes and memory.limit_bytes
        assert used / drawn["width"] == pytest.approx(memory.in_use_bytes / memory.limit_bytes, abs=0.02)


def heights(page: Page, device: str, kind: str) -> dict[float, float]:
    """Upper edge of an area by x, in pixels over the floor."""
    path = page.locator(f"figure[data-device='{device}'] path.area.{kind}").first.get_attribute("d") or ""
    points = [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]
    floor = points[-1][1]
    return {x: floor - y for x, y in points[:-2]}


def test_the_stack_over_time_reaches_up_to_what_is_in_use(opened: Opener) -> None:
    """Arrays, code over them, the rest up to the line in use; code from the events, where the history has none."""
    base = full()
    device = replace(full_gpu(0, groups()), history=())
    memory = device.memory
    assert memory and memory.in_use_bytes and memory.live_array_bytes
    told = [
        replace(memory, time=NOW - 100 + 10 * step, sequence=step + 1, pid=PID, in_use_bytes=40 * GIB,
                live_array_bytes=(10 + 2 * step) * GIB, code_bytes=5 * GIB)
        for step in range(5)
    ]  # fmt: skip
    history = tuple((each.time + 1, 40 * GIB, each.live_array_bytes) for each in told)
    with serving(replace(base, devices=(replace(device, history=history),)), told) as server:
        page = opened(server)
        expect(page.locator("path.line.high")).to_have_attribute("d", re.compile("L"))
        arrays, code, gap = (heights(page, "gpu:0", kind) for kind in ("arrays", "code", "gap"))
        line = page.locator("path.line.used").get_attribute("d") or ""
        used = {float(x): float(y) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", line)}
        assert list(arrays) == list(code) == list(gap) == list(used)
        assert len(arrays) == 11
        (first, *_) = gap
        scale = gap[first] / 40
        assert arrays[first] == pytest.approx(10 * scale, abs=0.2)
        assert code[first] - arrays[first] == pytest.approx(5 * scale, abs=0.2)
        assert gap[first] - code[first] == pytest.approx(25 * scale, abs=0.2)
        floor = page.locator("svg.chart line.grid").first.evaluate("line => +line.getAttribute('y1')")
        for x, y in used.items():
            assert floor - y == pytest.approx(gap[x], abs=0.15)
        page.locator("figure[data-device='gpu:0'] svg").focus()
        page.keyboard.press("ArrowLeft")
        shown_there = text(page, "#tip")
        for part in ("code 412 MiB", "temporaries and rest 9.0 GiB", "high water", "limit 79.6 GiB"):
            assert part in shown_there
        expect(page.locator("line.peak")).to_have_count(1)
        expect(page.locator("line.limit")).to_have_count(1)


def test_events_bring_what_is_older_than_the_snapshots_history(opened: Opener) -> None:
    """Samples of an hour before come in front of the curve, once, and none of another process stays."""
    base = full()
    device = base.devices[0]
    snapshot = replace(base, devices=(device,))
    with serving(snapshot, samples(device, 20)) as server:
        page = opened(server)
        line = page.locator("path.line.used")
        expect(page.locator("path.line.high").first).to_have_attribute("d", re.compile("L"))
        before = heights(page, "gpu:0", "arrays")
        assert min(before) == pytest.approx(54, abs=0.2)
        oldest = max(y for x, y in before.items() if x < 60)
        newest = list(before.values())[-1]
        assert oldest / newest == pytest.approx(0.5, abs=0.02)
        server.events = []
        server.snapshot = replace(without_allocator(), process=process(pid=PID + 1, started=NOW - 3))
        expect(page.locator("#notice")).to_contain_text(f"pid {PID + 1}")
        expect(page.locator("figure.device")).to_have_count(8)
        expect(line).to_have_count(8)
        expect(page.locator("path.area.gap")).to_have_count(0)


def test_groups_lead_to_their_leak(opened: Opener) -> None:
    """The largest ones have colours of their own; the one that leaks leads to its finding."""
    with serving(full()) as server:
        page = opened(server)
        rows = page.locator("#groups-rows tr")
        expect(rows).to_have_count(8)
        page.get_by_role("button", name="show 2 more").click()
        expect(rows).to_have_count(10)
        colours = page.locator("#groups-rows .swatch").evaluate_all("all => all.map(i => i.style.background)")
        assert len(set(colours[:6])) == 6 and set(colours[6:]) == {"var(--memory-live)"}
        rows.locator(".marks").get_by_role("button", name="array leak").click()
        expect(page.locator("#findings-list > li[data-kind=array_leak]:not(.over)")).to_be_focused()


def test_a_group_keeps_its_colour_when_another_overtakes_it(opened: Opener) -> None:
    mine = "#groups-rows tr:has-text('152064') .swatch"
    with serving(full()) as server:
        page = opened(server)
        colour = page.locator(mine).get_attribute("style")
        grown = tuple(
            group(each.shape, each.sharding, 9 * GIB, 1) if each.shape[0] == 152064 else each for each in groups()
        )
        server.snapshot = replace(server.snapshot, array_groups=grown)
        expect(page.locator("#groups-rows tr").first).to_contain_text("152064")
        assert page.locator(mine).get_attribute("style") == colour


@pytest.mark.parametrize("width,scheme", [(1440, "light"), (360, "dark")])
def test_sixty_four_devices_stay_apart_with_the_fullest_first(opened: Opener, width: int, scheme: str) -> None:
    """Each has its bar and its chart, the fullest leads, the order can be changed, and nothing is cut off sideways."""
    with serving(many()) as server:
        page = opened(server, viewport={"width": width, "height": 900}, color_scheme=scheme)
        names = "all => all.map(each => each.dataset.device)"
        shares = page.locator("#accounts .quiet").all_inner_texts()
        assert len(shares) == 64
        numbers = [int(each.split()[0]) for each in shares]
        assert numbers == sorted(numbers, reverse=True)
        fullest = max(server.snapshot.devices, key=lambda each: each.memory.in_use_bytes if each.memory else 0)  # type: ignore[return-value,arg-type]
        assert page.locator("#accounts li").evaluate_all(names)[0] == fullest.device
        assert page.locator("#charts figure").evaluate_all(names) == page.locator("#accounts li").evaluate_all(names)
        page.get_by_role("button", name="order: fullest first").click()
        assert page.locator("#accounts li").evaluate_all(names) == [f"gpu:{index}" for index in range(64)]
        expect(page.locator("#accounts .most strong")).to_have_text(fullest.device)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        drawn = page.locator("#accounts li[data-device='gpu:63'] .bar").bounding_box()
        assert drawn and drawn["width"] > 60


def test_a_call_that_died_of_memory_is_told_first_while_the_process_lives(opened: Opener) -> None:
    """The panel appears without a reload, above all but the verdict; the function's row counts its calls."""
    with serving(full(), events()) as server:
        page = opened(server)
        server.snapshot = died()
        expect(page.locator("#oom")).to_be_visible()
        panels = page.locator("main > :not([hidden])")
        assert [panels.nth(place).get_attribute("id") for place in (0, 1)] == ["verdict", "oom"]
        expect(page.locator("#oom-status")).to_contain_text("Out of memory: maxtext.train.eval_step, 9.0 GiB wanted.")
        row(page, "maxtext.train.eval_step").locator(".toggle").click()
        expect(row(page, "maxtext.train.eval_step").locator(".detail")).to_contain_text(
            "2 calls on gpu:0, 1 call on gpu:3"
        )


def test_a_report_that_was_hidden_stays_so_until_another_comes(opened: Opener) -> None:
    """A closed panel leaves one line, also after an update; the next error opens the panel again."""
    with serving(died()) as server:
        page = opened(server)
        page.click("#oom-toggle")
        expect(page.locator("#oom-body")).to_be_hidden()
        expect(page.locator("#oom-toggle")).to_have_attribute("aria-expanded", "false")
        server.snapshot = replace(server.snapshot, time=NOW + 60)
        expect(page.locator("#oom-ago")).to_contain_text("3 min")
        expect(page.locator("#oom-body")).to_be_hidden()
        bare = out_of_memory(
            (), sequence=99, time=NOW + 61, function="m.other", causes=(), report=None, seconds=None, device=None
        )
        server.snapshot = replace(server.snapshot, last_out_of_memory=bare)
        expect(page.locator("#oom-body")).to_be_visible()
        expect(page.locator("#oom-body")).to_contain_text("Too many such errors")


def test_a_finding_that_is_over_is_shown_quietly(opened: Opener) -> None:
    """Last and without colour; it stands no more."""
    kinds = "all => all.map(each => each.dataset.kind)"
    with serving(replace(full(), findings=(LEAK, *rich().findings[:1]))) as server:
        page = opened(server)
        cards, count = page.locator("#findings-list > li"), page.locator("#findings-count")
        expect(count).to_have_text("2")
        assert cards.evaluate_all(kinds) == ["array_leak", "two_shardings_at_start"]
        server.snapshot = replace(server.snapshot, findings=(FINDING_OVER, *rich().findings[:1]))
        expect(count).to_have_text("1, 1 over")
        assert cards.evaluate_all(kinds) == ["two_shardings_at_start", "array_leak"]
        expect(cards.last).to_have_class(re.compile("over"))
        expect(page.locator("#findings-status")).to_contain_text("1 finding. `train_step`")
        server.snapshot = replace(server.snapshot, findings=(FINDING_OVER,))
        expect(page.locator("#findings")).to_have_class(re.compile("quieted"))
        expect(page.locator("#findings-status")).to_be_empty()


TEXTS = (
    "#oom h2", "#oom h2 .quiet", "#oom-times", "#oom-ago", "#oom-toggle", ".figures-row dt", ".figures-row dd",
    ".causes-list .kind", ".causes-list .summary", ".causes-list .advice strong", ".causes-list li li",
    ".where", ".where code", ".opened summary", ".told-lines", ".plain thead th", ".plain td",
    ".plain tbody th", ".over .kind", ".over .summary", ".over .advice strong", "#memory-told li",
    "#accounts strong", "#accounts .used", "#accounts .quiet", "#account-facts dt", "#account-facts dd",
    "#account-facts h3 .quiet", ".shape", ".sharding", ".sites", ".groups td", ".groups small", ".named .part",
    ".programs td", ".programs .slow", "#actions li", "#accelerators td", "#accelerators small",
    ".badge.slowed", ".badge.lost", ".who .other", "#accelerators .down th",
)  # fmt: skip


@pytest.mark.parametrize("width,scheme", [(1440, "light"), (768, "dark"), (360, "light")])
def test_memory_can_be_read_everywhere(opened: Opener, width: int, scheme: str) -> None:
    """Contrast of at least 4.5 to 1, nothing wider than the window, and a name for each control and each region."""
    tight = full_gpu(3, groups(), extra=42 * GIB)
    devices = tuple(tight if each.device == "gpu:3" else each for each in died().devices)
    snapshot = replace(died(), devices=devices, headroom=headroom(devices))
    with serving(snapshot, [*events(), capture(2000)]) as server:
        page = opened(server, viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.evaluate("document.querySelectorAll('main details').forEach(each => { each.open = true; })")
        page.get_by_role("button", name=re.compile("^show [0-9]+ more")).first.click()
        expect(page.locator("#actions")).to_be_visible()
        expect(page.locator("#accounts [data-device='gpu:3']")).to_have_attribute("data-state", "bad")
        ratios = page.evaluate(CONTRAST, list(TEXTS))
        assert set(ratios) == set(TEXTS)
        assert {selector: ratio for selector, ratio in ratios.items() if ratio < 4.5} == {}
        assert page.evaluate("document.documentElement.scrollWidth") == width
        wide = """[...document.querySelectorAll('#devices .scroll, #accelerators .scroll')]
            .map(box => box.scrollWidth - box.clientWidth)"""
        assert max(page.evaluate(wide)) <= 0
        nameless = """[...document.querySelectorAll(':is(#oom, #devices, #accelerators) :is(button, [role])')]
            .filter(each => !(each.getAttribute('aria-label') || each.textContent.trim() || each.hidden)).length"""
        assert page.evaluate(nameless) == 0
        ids: list[str] = page.locator("[id]").evaluate_all("all => all.map(each => each.id)")
        assert len(ids) == len(set(ids))
