"""Actions over HTTP: absent by default, for who knows the token only, and what each answer says."""

import contextlib
import dataclasses
import http.client
import json
import logging
import socket
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest

import jaxobs
from jaxobs.actions.capturing import runner
from jaxobs.base.config import Settings
from jaxobs.facts.events import plain
from jaxobs.state import store
from jaxobs.web import server
from jaxobs.web.server import Handle

pytestmark = pytest.mark.usefixtures("fresh")

TOKEN = "open sesame, \N{GREEK SMALL LETTER PI}"
AUTHORIZATION = f"Bearer {TOKEN}".encode().decode("latin-1")
Answer = tuple[http.client.HTTPResponse, Any]


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Handle]:
    known = store.current()
    before = known.settings
    runner._runners.pop(known, None)
    known.configure(Settings(actions=True, action_token=TOKEN, capture_directory=str(tmp_path), capture_interval=0.0))
    handle = server.serve(known, 0, "127.0.0.1")
    yield handle
    handle.close()
    runner.of(known).end(10)
    runner._runners.pop(known, None)
    known.configure(before)


def ask(handle: Handle, name: str, body: bytes | str = b"", method: str = "POST", **headers: Any) -> Answer:
    """Sends a request with the token, unless another or None is given; underscores in names stand for hyphens.

    Args:
      name: of the action, or a path.
    """
    path = name if name.startswith("/") else f"/api/v1/actions/{name}"
    given = {"Authorization": AUTHORIZATION} | {key.replace("_", "-"): each for key, each in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", handle.port, timeout=120)
    with contextlib.closing(connection):
        connection.request(method, path, body, {key: each for key, each in given.items() if each is not None})
        response = connection.getresponse()
        text = response.read()
        return response, json.loads(text) if text.startswith(b"{") else text


def configure(**changes: Any) -> None:
    store.current().configure(dataclasses.replace(store.current().settings, **changes))


def test_memory(endpoint: Handle) -> None:
    kept = jnp.ones(3)
    response, answer = ask(endpoint, "memory")
    assert (response.status, answer["result"]) == (200, "done"), answer
    assert Path(answer["path"]).stat().st_size < answer["bytes"]
    [event] = store.current().events(kind="action")[0]
    assert plain(event)["origin"] == "http"
    del kept


def test_profile(endpoint: Handle, tmp_path: Path) -> None:
    step = jaxobs.jit(lambda x: x + 1, name="train.step")
    step(1.0)
    response, answer = ask(endpoint, "profile", '{"steps": 2, "function": "train.step"}')
    assert (response.status, answer["result"]) == (202, "under way"), answer
    assert not Path(answer["path"]).exists()
    response, busy = ask(endpoint, "memory")
    assert response.status == 409
    assert f"{answer['name']} is in progress" in busy["error"]
    step(1.0)
    step(1.0)
    runner.of(store.current()).end(10)
    _, events = ask(endpoint, answer["events"], method="GET")
    done = [each for each in events["events"] if each["path"] == answer["path"]]
    assert [each["result"] for each in done] == ["done"]
    assert list(Path(answer["path"]).rglob("*.xplane.pb"))


@pytest.mark.parametrize(
    "settings", [{}, {"actions": True}, {"action_token": "x"}, {"actions": True, "action_token": ""}]
)
def test_absent_unless_allowed_and_a_token_is_set(endpoint: Handle, settings: dict[str, Any], tmp_path: Path) -> None:
    """As a path that was never there, whatever is sent; and the captures stay undone."""
    assert (Settings().actions, Settings().action_token) == (False, None)
    configure(**{"actions": False, "action_token": None, **settings})
    for authorization in (AUTHORIZATION, "Bearer ", "Bearer x", None):
        for method in ("POST", "GET", "PUT"):
            response, answer = ask(endpoint, "memory", method=method, Authorization=authorization)
            assert response.status == 404
            assert answer["error"].startswith("No such path")
            assert ask(endpoint, "nope", method=method, Authorization=authorization)[0].status == 404
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"actions": True}, "`action_token` is not set"), ({"action_token": "sesame"}, "`actions` is off"), ({}, None)],
)
def test_half_of_the_settings_is_told(
    settings: dict[str, Any], sentence: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    own = store.Store(Settings(**settings))
    with caplog.at_level(logging.WARNING, "jaxobs"):
        for _ in range(2):
            server.serve(own, 0, "127.0.0.1").close()
    told = [each.getMessage() for each in caplog.records]
    assert [sentence in each for each in told if sentence] == ([True] if sentence else [])
    assert len(told) == (sentence is not None)


def test_without_the_token_and_with_another(endpoint: Handle, tmp_path: Path) -> None:
    jnp.ones(3)
    for authorization in (None, "", "Basic abc", TOKEN.encode().decode("latin-1")):
        response, answer = ask(endpoint, "memory", Authorization=authorization)
        assert (response.status, response.headers["WWW-Authenticate"]) == (401, 'Bearer realm="jaxobs"')
        assert "Authorization: Bearer" in answer["error"]
    for token in ("", "x", AUTHORIZATION[7:-1], AUTHORIZATION[7:] + "x", AUTHORIZATION[7:].upper()):
        assert ask(endpoint, "memory", Authorization=f"Bearer {token}")[0].status in (401, 403)
        assert ask(endpoint, "nope", Authorization=f"Bearer {token}")[0].status in (401, 403)
    assert ask(endpoint, "memory", Authorization=f"Bearer {AUTHORIZATION[7:]}x")[0].status == 403
    assert list(tmp_path.iterdir()) == []
    assert ask(endpoint, "memory", Authorization="bearer  " + AUTHORIZATION[7:])[0].status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://elsewhere.example"}, 403), ({"Origin": "null"}, 403), ({"Origin": ""}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403), ({"Host": "evil.example"}, 403),
        ({"Origin": "http://evil.example", "Host": "evil.example"}, 403), ({"Origin": "own"}, 200), ({}, 200),
    ],
)  # fmt: skip
def test_no_page_of_another_site_gets_at_it(endpoint: Handle, headers: dict[str, str], status: int) -> None:
    jnp.ones(3)
    own = endpoint.url.rstrip("/")
    response, _ = ask(endpoint, "memory", **{name: own if each == "own" else each for name, each in headers.items()})
    assert response.status == status


@pytest.mark.parametrize(
    ("name", "body", "sentence"),
    [
        ("profile", '{"steps": "many"}', "`steps` is 'many', which is not a valid integer"),
        ("profile?steps=0", "", "`steps` is '0', but must be from 1 to 1000"),
        ("profile", '{"seconds": NaN}', "`seconds` is nan, but must be from 0.01 to 600"),
        ("profile", '{"function": "nobody"}', "`function` is 'nobody', which is not instrumented"),
        ("memory", '{"steps": 3}', "`memory` has no parameter `steps`"),
        ("profile?steps=2", '{"steps": 2}', "`steps` is given in both the query and the body"),
        ("profile", "[5]", "must be a JSON object"), ("profile", "{steps: 5}", "must be a JSON object"),
        ("profile", b"\xff\xfe", "must be a JSON object"), ("profile", '{"a":' + "[" * 2000, "must be a JSON object"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_fit(endpoint: Handle, name: str, body: bytes | str, sentence: str) -> None:
    response, answer = ask(endpoint, name, body)
    assert response.status == 400
    assert sentence in answer["error"]


def test_parameters_as_curl_sends_them(endpoint: Handle) -> None:
    jnp.ones(3)
    form = "application/x-www-form-urlencoded"
    for name, body in (
        ("profile", "steps=1&seconds=60"), ("profile", '{"seconds": 60}'), ("profile?seconds=60", ""),
    ):  # fmt: skip
        response, answer = ask(endpoint, name, body, Content_Type=form)
        assert response.status == 202, answer
        runner.of(store.current()).end(10)


def test_bounds_of_a_request(endpoint: Handle) -> None:
    assert ask(endpoint, "memory", b" " * 4096)[0].status in (200, 409)
    for size in (4097, 60_000):
        assert ask(endpoint, "memory", b" " * size)[0].status == 413
    for method in ("GET", "PUT", "DELETE"):
        response, _ = ask(endpoint, "memory", method=method)
        assert (response.status, response.headers["Allow"]) == (405, "POST")
    response, answer = ask(endpoint, "heap")
    assert (response.status, answer["error"]) == (404, "No such action: 'heap'. Known actions: memory, profile.")
    for header in ("Transfer-Encoding: chunked", "Content-Length: -5", "Content-Length: 1e3"):
        with socket.create_connection(("127.0.0.1", endpoint.port), timeout=120) as raw:
            raw.sendall(f"POST /api/v1/actions/memory HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n".encode())
            assert raw.recv(4096).startswith(b"HTTP/1.0 411 ")


def test_too_often(endpoint: Handle) -> None:
    jnp.ones(3)
    configure(capture_interval=50.0)
    assert ask(endpoint, "memory")[0].status == 200
    response, answer = ask(endpoint, "memory")
    assert (response.status, response.headers["Retry-After"]) == (429, "50")
    assert "`capture_interval` is 50 s" in answer["error"]


def test_the_token_is_told_nowhere(endpoint: Handle, caplog: pytest.LogCaptureFixture) -> None:
    jnp.ones(3)
    told: list[str] = []
    for headers in ({}, {"Authorization": None}, {"Authorization": "Bearer x"}):
        for name, body in (("memory", ""), ("nope", ""), ("profile", '{"seconds": -1}')):
            response, answer = ask(endpoint, name, body, **headers)
            told += [str(answer), str(response.headers)]
    for path in ("/", "/metrics", "/api/v1/snapshot", "/api/v1/events"):
        told.append(str(ask(endpoint, path, method="GET")[1]))
    text = "\n".join([*told, caplog.text, repr(store.current().settings), repr(endpoint)])
    assert "memory" in text
    assert "sesame" not in text
    assert urllib.parse.quote(TOKEN) not in text
