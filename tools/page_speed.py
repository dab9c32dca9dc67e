"""Measures the live page in headless Chromium on a process with many functions and compilations.

python -m tools.page_speed                                  500 functions, 5,000 compilations
python -m tools.page_speed --functions 2000 --slower 4      with a processor that is so many times slower

The process is a store that is filled by hand and goes on compiling while the page is looked at; the page, the server
and the requests are the real ones. Figures, no verdict: no test asserts a time.
"""

from __future__ import annotations

import argparse
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from jaxobs.base.config import Settings
from jaxobs.facts.compilations import CAUSES, Change, Compilation
from jaxobs.facts.memory import DeviceMemory, DeviceState
from jaxobs.state.store import Store
from jaxobs.web import server
from tools.pictures.pages import browser

A_SECOND = 5
"""Compilations while the page is looked at: as many as a storm brings."""

WATCH = """() => {
  const seen = window.seen = { long: [], frames: [], first: null, last: performance.now() };
  new PerformanceObserver(list => list.getEntries().forEach(each => seen.long.push(each.duration)))
    .observe({ type: 'longtask', buffered: true });
  const frame = at => { seen.frames.push(at - seen.last); seen.last = at; requestAnimationFrame(frame); };
  requestAnimationFrame(at => { seen.last = at; requestAnimationFrame(frame); });
  const waiting = setInterval(() => {
    if (!document.querySelector('#table tbody')) return;
    seen.first = performance.now();
    clearInterval(waiting);
  }, 4);
}"""
AFRESH = "() => { seen.long.length = 0; seen.frames.length = 0; performance.clearResourceTimings(); }"
TAKEN = """() => ({ long: [...seen.long], frames: [...seen.frames],
  bytes: performance.getEntriesByType('resource').reduce((sum, each) => sum + each.transferSize, 0),
  requests: performance.getEntriesByType('resource').length })"""
TYPED = """() => new Promise(done => {
  const field = document.querySelector('#filter'), began = performance.now();
  field.value = 'layer_1';
  field.dispatchEvent(new Event('input'));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
})"""


def main() -> None:
    """Fills a store, serves it, looks at it, and prints what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=500, metavar="N")
    parser.add_argument("--compilations", type=int, default=5000, metavar="N")
    parser.add_argument("--seconds", type=float, default=15, help="how long to look (default: %(default)g)")
    parser.add_argument("--slower", type=float, default=1, help="slows the processor down for the page alone")
    args = parser.parse_args()
    store = filled(args.functions, args.compilations)
    with compiling(store, args.functions, args.compilations) as url, browser() as chromium:
        page = chromium.new_page(viewport={"width": 1440, "height": 1000})
        session = page.context.new_cdp_session(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": args.slower})
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.add_init_script(f"({WATCH})()")
        look(page, session, url, args.seconds)


def look(page: Any, session: Any, url: str, seconds: float) -> None:
    """Opens, watches, scrolls and filters."""
    page.goto(url)
    page.wait_for_selector("#recent > li")
    opened = page.evaluate(TAKEN)
    print(f"first functions shown        {page.evaluate('seen.first'):8.0f} ms")
    print(f"longest task while opening   {max(opened['long'], default=0):8.0f} ms")
    print(f"brought while opening        {opened['bytes'] / 1e3:8.0f} kB")
    print(f"elements of the page         {page.evaluate('document.querySelectorAll(`*`).length'):8,}")
    for what, act in (("watched", lambda: page.wait_for_timeout(1000 * seconds)), ("scrolled", lambda: scroll(page))):
        page.wait_for_timeout(1500)
        page.evaluate(AFRESH)
        busy, began = processor(session), time.monotonic()
        act()
        busy, lasted = processor(session) - busy, time.monotonic() - began
        told(what, page.evaluate(TAKEN))
        print(f"{what}, the page is busy".ljust(28), f"{100 * busy / lasted:8.0f} % of a core")
    print(f"from a key to the rows       {page.evaluate(TYPED):8.0f} ms")


def processor(session: Any) -> float:
    """Seconds of the processor that the page's main thread has used."""
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def told(what: str, taken: dict[str, Any]) -> None:
    """Frames and tasks of one way to look."""
    frames, long = sorted(taken["frames"]) or [0.0], taken["long"]
    print(f"{what}, median frame".ljust(28), f"{frames[len(frames) // 2]:8.0f} ms")
    print(f"{what}, 99 % of frames".ljust(28), f"{frames[int(len(frames) * 0.99)]:8.0f} ms")
    print(f"{what}, longest frame".ljust(28), f"{frames[-1]:8.0f} ms")
    print(f"{what}, tasks over 50 ms".ljust(28), f"{len(long):8}, longest {max(long, default=0):.0f} ms")
    if taken["requests"]:
        print(f"{what}, one answer".ljust(28), f"{taken['bytes'] / taken['requests'] / 1e3:8.1f} kB")


def scroll(page: Any) -> None:
    """Down and up again through the whole page, the functions and the compilations."""
    for place in (None, "#functions", "#recent-scroll"):
        if place:
            page.locator(place).scroll_into_view_if_needed()
            page.locator(place).hover()
        for by in (*[400] * 20, *[-400] * 20):
            page.mouse.wheel(0, by)
            page.wait_for_timeout(16)


@contextlib.contextmanager
def compiling(store: Store, functions: int, done: int) -> Iterator[str]:
    """The address of the store while it goes on compiling."""
    handle, over = server.serve(store, 0, "127.0.0.1"), threading.Event()

    def go_on() -> None:
        number = done
        while not over.wait(1 / A_SECOND):
            number += 1
            store.record(compilation(number, functions))
            if number % A_SECOND == 0:
                set_memory(store, number)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield handle.url
    finally:
        over.set()
        thread.join()
        handle.close()


def filled(functions: int, compilations: int) -> Store:
    """A store in which so many functions have compiled so often."""
    store = Store(Settings(max_functions=functions + 1, max_events=max(compilations, Settings().max_events)))
    for number in range(compilations):
        store.record(compilation(number, functions))
    for number in range(100):
        set_memory(store, number)
    return store


def compilation(number: int, functions: int) -> Compilation:
    """Returns a made-up compilation with a text of its own."""
    before, after = (f"float32[{32 + (number + n) % 97},128]" for n in (0, 1))
    return Compilation(
        time=time.time(), function=f"project.models.encoder.layer_{number % functions}.Attention.__call__",
        cause=CAUSES[number // functions % len(CAUSES)], cache=("miss", "hit")[number % 2],
        reason=f"`batch['image']` {before} -> {after}. Pad it to one size.",
        changes=(Change("batch['image']", "shape", before, after),),
        phases={"trace": 0.1, "lower": 0.04, "compile": 0.5 + number % 13 / 7},
        call_site=f"/home/someone/project/train.py:{number % 300}", fingerprint=f"{number:012x}", flops=1e9 + number,
    )  # fmt: skip


def set_memory(store: Store, number: int) -> None:
    """A sample of each of eight devices."""
    for index in range(8):
        used = 2**35 + number * 2**20 + index * 2**28
        memory = DeviceMemory(
            time=time.time(), device=f"gpu:{index}", in_use_bytes=used, peak_bytes=used, limit_bytes=80 * 2**30,
            live_arrays=900, live_array_bytes=used * 9 // 10, high_water_bytes=used,
        )  # fmt: skip
        device = DeviceState(device=f"gpu:{index}", id=index, platform="gpu", device_kind="H100", process_index=0)
        store.set_device(device, store.record(memory))


if __name__ == "__main__":
    main()
