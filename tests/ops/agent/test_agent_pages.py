"""Reports as pages: who may read them, which are listed, and that what they quote stays text."""

import pathlib
import re
import tomllib
from html.parser import HTMLParser
from typing import Any

import pytest
from helpers.written_reports import made
from starlette.testclient import TestClient

from jaxobs.ops.agent import notifications
from jaxobs.ops.agent.investigating import Where
from jaxobs.ops.agent.serving import application
from jaxobs.ops.agent.store import Store
from jaxobs.ops.agent.working import Agent

CASES = tomllib.loads(pathlib.Path(__file__).with_name("agent_pages.toml").read_text())["case"]
EVIL = "<img src=x onerror=alert(1)> [x](javascript:alert(1)) <script>"
TRAIN, SERVE, HOSTILE = (f"2026013{day}-090000-{name}" for day, name in
                         ((0, "train-aaaaaa"), (1, "serve-bbbbbb"), (1, "evil-cccccc")))  # fmt: skip


class Seen(HTMLParser):
    """Elements of a page, and the values of attributes by name, as a browser takes them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.attributes = set[str](), dict[str, set[str]]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")


@pytest.fixture
def agent(tmp_path: pathlib.Path) -> Agent:
    """An agent that is not started, with three reports and an incident that has none."""
    agent = Agent(Store(str(tmp_path)), Where(prometheus="http://127.0.0.1:9"))
    agent.accept(notifications.parse(b'{"alerts": [{"labels": {"job": "train", "namespace": "ml"}}]}'))
    (waiting,) = agent.incidents()
    agent.accept(notifications.parse(b'{"alerts": [{"labels": {"job": "new"}}]}'))
    agent._board.open[waiting.whose().key].id = TRAIN
    ml = {"name": "train", "labels": {"job": "train", "namespace": "ml"}}
    evil = {"headline": EVIL, "what_happened": EVIL, "do_now": [EVIL], "collect": [EVIL], "known": [
        {"thread": "javascript:alert(1)", "what": EVIL, "cure": EVIL}]}  # fmt: skip
    for name, opened, more in (
        (TRAIN, "2026-01-30T09:00:00.5Z", {"state": "open", "subject": ml, "do_now": ["`ls` [a](https://example.org/a)"],
                                           "timeline": [{"time": "2026-01-30T09:00:00Z", "what": EVIL}]}),
        (SERVE, "2026-01-31T09:00:00Z", {"subject": {"name": "serve", "labels": {"job": "serve"}}}),
        (HOSTILE, "2026-01-31T09:00:00Z", {**evil, "subject": {"name": EVIL, "labels": {"job": EVIL}}}),
    ):  # fmt: skip
        agent.store.write_report(made(1, id=name, opened_at=opened, **more))
    return agent


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["path"])
def test_a_page_shows_what_the_report_has(agent: Agent, case: dict[str, Any]) -> None:
    answer = TestClient(application(agent)).get(case["path"].format(train=TRAIN, evil=HOSTILE))
    assert answer.status_code == case.get("status", 200), answer.text
    assert answer.headers["content-type"] == case.get("kind", "text/html; charset=utf-8")
    assert "default-src 'none'" in (policy := answer.headers["content-security-policy"]) and "script" not in policy
    body = answer.text.partition("</style>")[2] or answer.text
    assert [each for each in case.get("holds", []) if each not in body] == []
    assert [each for each in case.get("lacks", []) if each in body] == []
    places = [body.index(each) for each in case.get("order", [])]
    assert places == sorted(places)
    if "html" in answer.headers["content-type"]:
        seen = Seen()
        seen.feed(body)
        assert not seen.tags & {"script", "img", "style", "link", "iframe", "object", "meta", "base"}
        named = {"class", "href", "rel", "id", "type", "name", "value", "placeholder", "aria-label", "method", "action"}
        assert seen.attributes.keys() <= named
        assert all(re.match(r"https://|#|\.", each) for each in seen.attributes.get("href", set()))


def test_reports_are_for_those_with_the_token(agent: Agent) -> None:
    for read_token, is_shown, shown, status in (
        ("", True, None, 200), ("", False, None, 403), ("s3cret", True, None, 401),
        ("s3cret", False, ("me", "no"), 401), ("s3cret", False, ("anyone", "s3cret"), 200),
        ("s3cret", False, "Bearer s3cret", 200),
    ):  # fmt: skip
        client = TestClient(application(agent, read_token=read_token, is_shown=is_shown))
        given: Any = {"headers": {"Authorization": shown}} if isinstance(shown, str) else {"auth": shown}
        for path in ("/", f"/incidents/{TRAIN}", f"/incidents/{TRAIN}.json", "/incidents/nothing"):
            found = client.get(path, **given)
            assert found.status_code == (404 if path.endswith("nothing") and status == 200 else status)
            assert ("Basic" in found.headers.get("www-authenticate", "")) == (status == 401)
    assert client.get("/healthz").status_code == 503 and client.get("/metrics").status_code == 200
