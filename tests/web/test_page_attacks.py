"""Attacks on page, report and profile: names that would be markup, scripts that get in all the same, other sites."""

import json
import pathlib
from collections.abc import Callable, Iterator

import pytest
from helpers import answering
from helpers import endpoints as endpoint
from helpers.made_by_hand import compilation, full_store
from helpers.page_extremes import all_events, everything, poisoned
from helpers.page_fixtures import chrome, serving
from helpers.waiting import until
from helpers.xplanes import event, host, operation
from helpers.xplanes import write as write_trace
from playwright.sync_api import Browser, Page, expect

from jaxobs import cli
from jaxobs.base.config import Settings
from jaxobs.facts.events import as_event
from jaxobs.profiles import reading
from jaxobs.views.profile.page import page as profile_page

__all__ = ["chrome"]  # a fixture that the tests take by name

US = 1000.0
NAMES = {
    "script": "</script><script>window.hit = 1</script>",
    "style": "</style><style>body { display: none }</style><img src=x onerror='window.hit = 2'>",
    "handler": "\" onmouseover=\"window.hit = 3\" onfocus='window.hit = 3' autofocus x='",
    "address": "javascript:window.hit=4//\" href=\"javascript:window.hit=4\"",
    "css": "red;} body{background:url(http://127.0.0.1:1/css);x:expression(window.hit=5)",
    "svg": "<svg onload='window.hit = 6'><a xlink:href='javascript:window.hit=6'>x</a></svg>",
    "title": "--></title></textarea></noscript><iframe srcdoc='<script>parent.hit=7</script>'></iframe>",
    "entity": "&lt;script&gt;window.hit = 8&lt;/script&gt;&#60;img src=x onerror=window.hit=8&#62;",
    "template": "${window.hit = 9}{{constructor.constructor('window.hit = 9')()}}",
}  # fmt: skip
INJECTED = """() => {
  const holder = document.createElement('div');
  document.body.append(holder);
  holder.innerHTML = '<img src="data:image/gif;base64,x" onerror="window.hit = 10"><svg onload="window.hit = 11"></svg>'
    + '<a id="bad" href="javascript:window.hit = 12">x</a><iframe srcdoc="<script>parent.hit = 13</script>"></iframe>';
  for (const text of ['window.hit = 14']) {
    const script = document.createElement('script');
    script.textContent = text;
    holder.append(script);
  }
  const linked = document.createElement('script');
  linked.src = 'data:text/javascript,window.hit = 15';
  holder.append(linked);
  const base = document.createElement('base');
  base.href = 'http://127.0.0.1:1/';
  document.head.append(base);
  document.getElementById('bad').click();
  return document.baseURI;
}"""
"""Puts into the document what an injection would: no script of it may run, and no address may change."""

Shown = Callable[[str], Page]


@pytest.fixture(params=["page", "report", "profile"])
def shown(request: pytest.FixtureRequest, tmp_path: pathlib.Path, chrome: Browser) -> Iterator[Shown]:
    """Opens a document of each kind in which every name is a given text."""
    opened: list[Page] = []
    servers = []

    def show(name: str) -> Page:
        browser_page = chrome.new_page()
        opened.append(browser_page)
        if request.param == "page":
            server = serving(poisoned(everything(), name), [poisoned(each, name) for each in all_events()])
            servers.append(server)
            browser_page.goto(server.__enter__().url)
            expect(browser_page.locator("#recent .fn").first).to_have_text(name)
            return browser_page
        document = tmp_path / "document.html"
        if request.param == "report":
            made = compilation(name, reason=name, call_site=name, cause="shape", pid=7, sequence=1)
            (tmp_path / "events.jsonl").write_text(json.dumps(as_event(made)) + "\n", encoding="utf-8")
            assert cli.main(["report", str(tmp_path / "events.jsonl"), "--out", str(document)]) == 0
        else:
            worker = [operation(name, 0, 5 * US, module=f"jit_{name}"), operation("dot.1", 6 * US, 9 * US)]
            trace = write_trace(tmp_path, host(python=[event(name, 0, US)], worker=worker))
            document.write_bytes(b"".join(profile_page(reading.read(trace), name)))
        browser_page.goto(document.as_uri())
        return browser_page

    yield show
    for page in opened:
        page.close()
    for server in servers:
        server.__exit__(None, None, None)


@pytest.mark.parametrize("kind", NAMES)
def test_names_that_would_be_markup_are_shown_and_never_run(shown: Shown, kind: str) -> None:
    page = shown(NAMES[kind])
    assert NAMES[kind].partition("\n")[0][:20] in page.content().replace("&lt;", "<").replace("&gt;", ">").replace(
        "&amp;", "&"
    ).replace("&quot;", '"')
    page.mouse.move(300, 300)
    page.keyboard.press("Tab")
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.querySelectorAll('img, iframe, object, embed, base, [onerror]').length") == 0
    bad = "each => each.href.baseVal ?? each.href"
    links = page.evaluate(f"[...document.querySelectorAll('a, area, link')].map({bad})")
    assert not [each for each in links if str(each).lower().startswith("javascript:")]
    assert page.evaluate("getComputedStyle(document.body).display") != "none"


def test_a_script_that_gets_in_does_not_run(shown: Shown) -> None:
    """The policy knows the document's own scripts by their hashes: inline, linked, of events and addresses."""
    page = shown("plain")
    before = page.evaluate("document.baseURI")
    assert page.evaluate(INJECTED) == before
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None


SITE = """<!doctype html><script>
window.got = [];
const url = '%s', memory = 'api/v1/actions/memory';
for (const path of ['metrics', 'api/v1/snapshot', 'api/v1/events', ''])
  fetch(url + path, { credentials: 'include' }).then((a) => got.push('read ' + a.status), () => got.push('no'));
for (const type of ['text/plain', 'application/x-www-form-urlencoded'])
  fetch(url + memory, { method: 'POST', mode: 'no-cors', body: '{}', headers: { 'Content-Type': type } })
    .then(() => got.push('no'), () => got.push('no'));
fetch(url + memory, { method: 'POST', body: '{}', headers: { Authorization: 'Bearer act' } })
  .then(() => got.push('posted'), () => got.push('no'));
const script = document.createElement('script');
script.src = url + 'api/v1/snapshot';
script.onload = () => got.push('ran'); script.onerror = () => got.push('no');
document.documentElement.append(script);
</script><body><iframe id="frame" src="%s"></iframe></body>"""


def test_another_site_reads_nothing_and_starts_nothing(chrome: Browser) -> None:
    """A page elsewhere asks the endpoint: by fetch, with forms' types, with the token, as a script and in a frame."""
    store = full_store()
    store.configure(Settings(actions=True, action_token="act"))
    with endpoint.serving(store) as handle:
        _, newest, _ = store.events()
        with answering.serving(lambda request: (SITE % (handle.url, handle.url)).encode()) as elsewhere:
            page = chrome.new_page()
            page.goto(elsewhere)
            until(lambda: page.evaluate("got.length") == 8)
            assert set(page.evaluate("got")) == {"no"}
            frame = page.frames[1]
            assert frame.url.startswith("chrome-error:"), "it lets itself be framed by nobody"
            page.close()
        assert store.events(since=newest, kind="action")[0] == []
