"""The live page and the report for everyone: on phones and wide screens, by keyboard, with a screen reader."""

import json
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from helpers import requirements
from helpers.page_extremes import all_events, everything, hostile, hostile_events, many, many_events, poisoned
from helpers.page_facts import NOW, compilation, empty, finding, on_cpu
from helpers.page_fixtures import Opener, chrome, opened, serving, unfold
from playwright.sync_api import Browser, Page, expect

from jaxobs import cli
from jaxobs.facts.events import Event, as_event
from jaxobs.facts.process import Exit, Manifest
from jaxobs.facts.snapshot import Snapshot

__all__ = ["chrome", "opened"]  # fixtures that the tests take by name

MOST_NODES = 18_000
WIDTHS = (360, 768, 1280, 2560)
Made = tuple[Callable[[], Snapshot], Callable[[], Sequence[Event]]]
PROCESSES: dict[str, Made] = {
    "everything": (everything, all_events),
    "hostile": (hostile, hostile_events),
    "many": (many, many_events),
    "small": (on_cpu, list),
    "empty": (empty, list),
}

OUTSIDE = """() => {
  const width = document.documentElement.clientWidth, found = new Set();
  const around = node => (node.parentElement.closest('[id]') || {}).id;
  const say = (node, text) => found.add(`${node.tagName} #${node.id} .${node.className} in #${around(node)}: ${text}`);
  for (const node of document.querySelectorAll('body *')) {
    if (node.closest('.unseen, .skip, svg')) continue;
    const box = node.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const style = getComputedStyle(node);
    let clipped = false;
    for (let above = node.parentElement; above && above !== document.body; above = above.parentElement)
      clipped ||= getComputedStyle(above).overflowX !== 'visible';
    if (!clipped && (box.right > width + 0.5 || box.left < -0.5)) say(node, `reaches to ${Math.round(box.right)}`);
    const wider = node.scrollWidth > node.clientWidth + 1;
    if (wider && ['auto', 'scroll'].includes(style.overflowX)) say(node, `scrolls sideways to ${node.scrollWidth}`);
    const text = !node.childElementCount && node.textContent && style.overflowX === 'visible';
    if (wider && text && style.display !== 'inline') say(node, `its text needs ${node.scrollWidth}`);
  }
  return [...found];
}"""
"""Returns what lies outside of the window, and texts and tables that are wider than their place."""

UNCLIPPED = """() => document.head.append(Object.assign(document.createElement('style'), { textContent: `
  .scroll, #accounts, .told-lines { overflow: visible !important; max-height: none !important; }
  .top, th { position: static !important; }` }))"""
"""axe judges no contrast of what is scrolled out of sight."""


def violations(page: Page) -> list[str]:
    """Returns what axe-core has against the page: WCAG 2.2 up to AA, and its best practices."""
    page.evaluate(UNCLIPPED)
    page.evaluate(requirements.axe())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert len(found["passes"]) > 10
    broken = [(rule["id"], node) for rule in found["violations"] for node in rule["nodes"]]
    return [f"{rule}: {node['target']} {node['failureSummary']}" for rule, node in broken]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["everything", "hostile", "many"])
def test_nothing_overflows(opened: Opener, kind: str, width: int) -> None:
    """Unfolded, no part is wider than the window, no text wider than its cell, and no table scrolls sideways."""
    snapshot, events = PROCESSES[kind]
    with serving(snapshot(), events()) as server:
        page = opened(server, viewport={"width": width, "height": 900})
        expect(page.locator("#recent > li").first).to_be_attached()
        unfold(page)
        assert page.evaluate(OUTSIDE) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width


HOSTILE = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>\'"`&amp;'


def test_hostile_names_are_only_text(opened: Opener) -> None:
    """Names of functions, arguments, hosts, devices, arrays, causes and captures are shown and never run."""
    with serving(poisoned(everything(), HOSTILE), [poisoned(each, HOSTILE) for each in all_events()]) as server:
        page = opened(server)
        expect(page.locator("#recent .fn").first).to_have_text(HOSTILE)
        unfold(page)
        page.locator("#accounts button").first.click()
        page.locator("figure.device svg").first.hover()
        page.fill("#filter", HOSTILE)
        expect(page.locator("#actions")).to_contain_text(HOSTILE)
        for panel in ("#oom-title", "#groups-rows", "#findings-list", "#accelerators", "#inputs", "#watched", "#facts"):
            expect(page.locator(panel)).to_contain_text(HOSTILE)
        assert page.evaluate("document.images.length + document.querySelectorAll('script').length") == 2
        assert page.evaluate("window.pwned") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind,width", [("everything", 1280), ("everything", 360), ("small", 768), ("empty", 1280)])
def test_axe_has_nothing_against_the_page(opened: Opener, kind: str, width: int, scheme: str) -> None:
    """In light and dark, on a desk and a phone, unfolded."""
    snapshot, events = PROCESSES[kind]
    with serving(snapshot(), events()) as server:
        page = opened(server, viewport={"width": width, "height": 900}, color_scheme=scheme)
        unfold(page)
        assert violations(page) == []


def test_axe_would_find_something(opened: Opener) -> None:
    """The check can fail."""
    with serving(everything()) as server:
        page = opened(server)
        page.evaluate("document.querySelector('#theme').replaceChildren()")
        page.evaluate("document.querySelector('#theme').removeAttribute('aria-label')")
        assert [each.partition(":")[0] for each in violations(page)] == ["button-name"]


@pytest.mark.parametrize("scheme,width", [("light", 1280), ("dark", 360)])
def test_axe_has_nothing_against_a_report(
    chrome: Browser, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], scheme: str, width: int
) -> None:
    """A report, which has a timeline and an end besides, is accessible too, and overflows nowhere."""
    facts = everything()
    assert facts.last_out_of_memory is not None
    told: list[Event] = [
        Manifest(time=NOW - 700, pid=facts.process.pid, sequence=0, versions={"jax": "0.10.2"}, program="train.py"),
        *all_events(),
        *(replace(each, pid=facts.process.pid, sequence=3_000 + n) for n, each in enumerate(facts.findings)),
        replace(facts.last_out_of_memory, pid=facts.process.pid, sequence=4_000),
        Exit(time=NOW, pid=facts.process.pid, sequence=4_001, reason="exception", detail="XlaRuntimeError", code=1),
    ]
    log = tmp_path / "events.jsonl"
    log.write_text("".join(json.dumps(as_event(each)) + "\n" for each in told), encoding="utf-8")
    assert cli.main(["report", str(log)]) == 0
    capsys.readouterr()
    context = chrome.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto((tmp_path / "events.html").as_uri())
    expect(page.locator("#live")).to_have_attribute("data-state", "recorded")
    unfold(page)
    outside = page.evaluate(OUTSIDE)
    against = violations(page)
    context.close()
    assert (outside, against) == ([], [])


FOCUSED = """() => {
  const node = document.activeElement, box = node.getBoundingClientRect(), style = getComputedStyle(node);
  const head = document.querySelector('.top').getBoundingClientRect();
  const below = Boolean(node.closest('.top, .skip')) || box.bottom > head.bottom;
  const label = node.labels && node.labels[0] ? node.labels[0].textContent : '';
  return {
    tag: node.tagName, id: node.id,
    text: (node.getAttribute('aria-label') || node.title || node.textContent || label).trim().slice(0, 60),
    ring: parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== 'none',
    seen: below && box.top < innerHeight && box.bottom > 0,
  };
}"""


@pytest.mark.parametrize("key", ["Tab", "Shift+Tab"])
def test_every_control_is_reached_by_keyboard_and_shows_it(opened: Opener, key: str) -> None:
    """Through the whole page, forwards and backwards: each stop has a ring and a name, and lies in sight."""
    with serving(on_cpu(), [compilation(number, "digits.step") for number in range(1, 5)]) as server:
        page = opened(server)
        expect(page.locator("#recent > li")).to_have_count(4)
        stops: list[dict[str, Any]] = []
        for _ in range(200):
            page.keyboard.press(key)
            stop = page.evaluate(FOCUSED)
            if stop["tag"] == "BODY":
                break
            stops.append(stop)
        assert [each for each in stops if not (each["ring"] and each["seen"] and each["text"])] == []
        ids = {each["id"] for each in stops}
        wanted = page.locator("main :is(button, input, select, a[href], summary):visible").count()
        assert {"theme", "filter", "functions", "recent-scroll"} <= ids
        assert sum(each["tag"] in ("BUTTON", "INPUT", "SELECT", "A", "SUMMARY") for each in stops) >= wanted


def test_a_screen_reader_hears_of_news_and_not_of_figures(opened: Opener) -> None:
    """Live regions speak when a finding comes or goes; they are silent while its figures grow and steps go on."""
    watch = """() => {
      window.spoken = [];
      const note = records => records.forEach(each => window.spoken.push(each.target.textContent));
      for (const region of document.querySelectorAll('[role=status], [role=alert], [aria-live]:not([aria-live=off])'))
        new MutationObserver(note).observe(region, { subtree: true, childList: true, characterData: true });
    }"""
    leak = finding("array_leak", "train.step", id="leak", summary="Arrays grow by 1.0 GiB an hour.", seconds=0.0)
    base = replace(everything(), findings=(leak,))
    with serving(base, all_events()) as server:
        page = opened(server)
        expect(page.locator("#findings-status")).to_have_text("1 finding. Arrays grow by 1.0 GiB an hour.")
        page.evaluate(watch)
        grown = replace(leak, summary="Arrays grow by 1.1 GiB an hour.", count=leak.count + 3)
        loops = tuple(replace(each, steps=each.steps + 100) for each in base.loops)
        server.snapshot = replace(base, findings=(grown,), loops=loops, time=NOW + 9)
        server.events.append(compilation(5_000, "late.step"))
        expect(page.locator("#findings-list .summary").first).to_contain_text("1.1 GiB")
        expect(page.locator("#recent > li").first).to_have_attribute("data-sequence", "5000")
        assert page.evaluate("window.spoken") == []
        server.snapshot = replace(base, findings=(grown, replace(leak, id="second", function="other")))
        expect(page.locator("#findings-status")).to_contain_text("2 findings.")


def test_hundreds_of_functions_stay_bounded(opened: Opener) -> None:
    """500 functions, 5,000 compilations: a hundred rows until more are asked for; sorting and filtering know all."""
    with serving(many(), many_events()) as server:
        page = opened(server)
        expect(page.locator("#recent > li")).to_have_count(200)
        rows, more = page.locator("#table > tbody"), page.locator("#functions-more")
        expect(rows).to_have_count(100)
        expect(page.locator("#cache-functions > tr")).to_have_count(50)
        expect(page.locator("#cache-rest")).to_contain_text("and 450 more functions")
        assert page.evaluate("document.querySelectorAll('*').length") < MOST_NODES
        expect(more).to_have_text("show 100 more of 500")
        more.click()
        expect(rows).to_have_count(200)
        page.fill("#filter", "Layer499.")
        expect(rows).to_have_count(1)
        expect(more).to_be_hidden()
        page.fill("#filter", "")
        expect(rows).to_have_count(200)
        page.get_by_role("button", name="Function", exact=True).click()
        assert page.locator("#table > tbody").first.get_attribute("data-function") == min(
            each.name for each in server.snapshot.functions
        )
