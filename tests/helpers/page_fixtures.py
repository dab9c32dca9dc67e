"""A server of the live page on facts made by hand, and the browser that looks at it."""

from __future__ import annotations

import os
import pathlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from helpers import answering
from jaxobs.facts.events import Event, as_event, plain
from jaxobs.facts.snapshot import Snapshot
from jaxobs.findings.verdict import judged
from jaxobs.web.page import header, render

CHROMIUM = "/usr/bin/chromium"
Opener = Callable[..., Page]

expect.set_options(timeout=20_000)
"""On a machine that does much else at once; what is there is seen at once."""


class PageServer:
    """Serves the page with the snapshot and the events of the moment; can stop and come back on its port."""

    def __init__(self, snapshot: Snapshot, events: Sequence[Event]) -> None:
        self.snapshot, self.events, self.dropped, self.port = snapshot, list(events), 0, 0
        self.broken, self.delay, self.over = False, 0.0, False
        self.asked = self.busy = self.busiest = self.snapshots = 0
        self._open = ExitStack()
        self.start()

    def start(self) -> None:
        """Listens, on the port of last time if there was one."""
        policy = {"Content_Security_Policy": header()[1], "Cache_Control": "no-store"}
        self.url = self._open.enter_context(answering.serving(self._answer, self.port, **policy)) + "/"
        self.port = urlsplit(self.url).port or 0

    def stop(self) -> None:
        """Closes the port, as a process that ends does."""
        self._open.close()

    def _answer(self, request: answering.Request) -> object:
        parts = urlsplit(request)
        if parts.path == "/":
            return render()
        if self.broken:
            return 500
        self.asked += 1
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        time.sleep(self.delay)
        self.busy -= 1
        if parts.path == "/api/v1/snapshot":
            self.snapshots += 1
            return plain(judged(self.snapshot))
        if parts.path == "/api/v1/events":
            query = parse_qs(parts.query)
            since, kind = int(query["since"][0]), query["kind"][0]
            fresh = [as_event(each) for each in self.events if each.sequence > since and each.kind == kind]
            newest = max((each.sequence for each in self.events), default=0)
            dropped, self.dropped = self.dropped, 0  # a process tells once that events are gone
            return {"events": fresh, "next": newest, "dropped": dropped}
        return None


@contextmanager
def serving(snapshot: Snapshot, events: Sequence[Event] = ()) -> Iterator[PageServer]:
    """A `PageServer` that is closed afterwards."""
    server = PageServer(snapshot, events)
    try:
        yield server
    finally:
        server.over = True
        server.stop()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, headless. Without it the test is skipped, but fails where `CI` is set."""
    if not pathlib.Path(CHROMIUM).exists():
        missing = f"{CHROMIUM} is missing. Install Debian's package: apt-get install chromium"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    flags = [f"--disable-{each}" for each in ("gpu", "background-networking", "component-update", "sync")]
    flags += ["--no-sandbox", "--no-first-run", "--disable-default-apps"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def opened(chrome: Browser) -> Iterator[Opener]:
    """Opens a server's page; afterwards nothing may have gone wrong in it, or left for another host."""
    contexts, complaints, allowed = [], [], []
    asked, ours = set(), set()

    def complained(server: PageServer, said: ConsoleMessage) -> None:
        # What the page asks while or after the test closes its server fails in several ways: no fault of the page.
        over = server.over and "net::ERR_" in said.text
        if said.type in ("error", "warning") and not over:
            complaints.append(said.text)

    def open_page(
        server: PageServer, *, script: str = "", may_fail: str = "", ready: bool = True, at: float | None = None,
        **options: Any,
    ) -> Page:  # fmt: skip
        options = {"viewport": {"width": 1440, "height": 1000}, "timezone_id": "UTC"} | options
        context = chrome.new_context(**options)
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complained(server, said))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.add(urlsplit(request.url)[:2]))
        ours.add(("http", f"127.0.0.1:{server.port}"))
        if may_fail:
            allowed.append(may_fail)
        if script:
            page.add_init_script(script)
        if at is not None:
            page.clock.set_fixed_time(at * 1000)
        page.goto(server.url)
        if ready:
            expect(page.locator("#live")).to_have_attribute("data-state", "live")
        return page

    yield open_page
    for context in contexts:
        context.close()
    left = [said for said in complaints if not any(each in said for each in allowed)]
    assert left == [], left
    assert {each for each in asked if each[0] != "data"} == ours


def text(page: Page, selector: str) -> str:
    """Returns what a reader sees, with runs of white space as one space."""
    return re.sub(r"\s+", " ", page.locator(selector).first.inner_text()).strip()


SEEN = pathlib.Path(__file__).with_name("page_seen.js").read_text(encoding="utf-8")
"""Returns the lines of an element."""


def seen(page: Page, selector: str = "main > *") -> str:
    """Returns what these elements show: a line for each row, item or chart; `[part width]` of bars, `{hint}`."""
    texts: list[str] = []
    for element in page.locator(selector).all():
        if element.is_visible():
            texts += [f"--- {element.get_attribute('id') or element.get_attribute('class')}", *element.evaluate(SEEN)]
    return "\n".join(texts)


def unfold(page: Page) -> None:
    """Opens all that can be opened."""
    page.evaluate("document.querySelectorAll('main details').forEach(each => { each.open = true; })")
    for selector in ("#findings-more", "#groups-more", "tbody .toggle[aria-expanded=false]"):
        page.evaluate("all => document.querySelectorAll(all).forEach(each => each.hidden || each.click())", selector)


def in_seconds(shown: str) -> float:
    """The seconds that a text such as `1 min 05 s` or `340 ms` stands for."""
    units = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([\d.]+) (µs|ms|s|min|h|d)\b", shown))


def row(page: Page, name: str) -> Any:
    """The row of the function with this name."""
    return page.locator("#table tbody").filter(has=page.locator(f'.fn[title="{name}"]'))


def order(page: Page) -> list[str]:
    """The names of the functions, from the top."""
    names: list[str] = page.locator("#table .fn").evaluate_all("nodes => nodes.map(node => node.title)")
    return names
