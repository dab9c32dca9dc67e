"""The ASGI middleware: every HTTP request counted once and rightly, and all that passes left as it is."""

from __future__ import annotations

import asyncio
import copy
import functools
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest
from helpers.requirements import package
from helpers.route_states import first_tokens, outcomes, routes

import jaxobs
from jaxobs.base import guard
from jaxobs.instruments import route_names
from jaxobs.state.routes import MOST_HTTP

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]

pytestmark = pytest.mark.usefixtures("installed")


class Client:
    """A server's side of one connection, that notes what it is sent and hands on what it is told."""

    def __init__(self, path: str = "/predict", **scope: Any) -> None:
        self.scope: dict[str, Any] = {
            "type": "http", "path": path, "method": "GET", "headers": [(b"host", b"here")], "query_string": b"",
            **scope,
        }  # fmt: skip
        self.sent: list[Message] = []
        self.coming: list[Message] = [{"type": "http.request", "body": b"x", "more_body": False}]
        self.broken = False

    async def receive(self) -> Message:
        return self.coming.pop(0) if self.coming else {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.broken:
            raise OSError("the client has gone")
        self.sent.append(message)

    def call(self, app: Any) -> Client:
        asyncio.run(app(self.scope, self.receive, self.send))
        return self


def playing(*steps: Any) -> Any:
    """An application that sends messages, sleeps for seconds, calls functions, raises errors, and waits at `GONE`."""

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        for step in steps:
            if isinstance(step, dict):
                await send(step)
            elif isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, Exception):
                raise step
            elif step is GONE:
                while (await receive())["type"] != "http.disconnect":
                    pass
            else:
                step()

    return app


GONE = object()
"""The client has gone."""


def start(status: int = 200, headers: object = (), **more: object) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers, **more}


def body(part: bytes, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": part, "more_body": more}


def answering(status: int = 200, before: Callable[[], Any] = dict) -> Any:
    return playing(before, start(status), body(b"done"))


def streaming(
    *parts: bytes, headers: object = (), status: int = 200, pause: float = 0.0, after: Callable[[bytes], Any] = bool
) -> Any:
    """An application that streams these parts, each after a pause and before a call, and closes with an empty one."""
    each = [step for part in parts for step in (pause, body(part, more=True), functools.partial(after, part))]
    return playing(start(status, headers), *each, body(b""))


def test_all_messages_pass_as_they_are() -> None:
    seen: list[object] = []
    whole = start(headers=[(b"a", b"b")], own=object())
    answer = [whole, body(b"1", more=True), {"type": "http.response.debug", "info": {}}, body(b"2")]

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        seen.extend((scope, await receive()))
        await playing(*answer)(scope, receive, send)

    client = Client()
    request = client.coming[0]
    before = copy.deepcopy(client.scope)
    client.call(jaxobs.asgi(app))
    assert seen[0] is client.scope and seen[1] is request and client.scope == before
    assert all(sent is told for sent, told in zip(client.sent, answer, strict=True))
    assert outcomes() == {"ok": 1} and guard.internal_errors().keys().isdisjoint({"asgi", "asgi.route"})


def test_the_status_tells_the_outcome() -> None:
    for app in (playing(), *(answering(status) for status in (200, 302, 404, 422, 500, 503, 7))):
        Client().call(jaxobs.asgi(app, route=lambda scope: "r"))
    assert outcomes("r") == {"ok": 3, "client_error": 2, "error": 3}
    (route,) = jaxobs.snapshot().routes
    found = {(each.method, each.scheme, each.status): sum(each.seconds.counts) for each in route.http}
    scope = Client().scope["method"], "http"
    assert found == {(*scope, status): 1 + (status == 0) for status in (0, 200, 302, 404, 422, 500, 503)}


def test_methods_of_strangers_make_few_series() -> None:
    """A client may send what it likes, and the application have many statuses."""
    for number in range(100):
        client = Client()
        client.scope |= {"method": f"M{number}", "scheme": "https" if number % 2 else "gopher"}
        client.call(jaxobs.asgi(answering(200 + number), route=lambda scope: "r"))
    (route,) = jaxobs.snapshot().routes
    assert {each.method for each in route.http} == {"_OTHER"} and "gopher" not in {each.scheme for each in route.http}
    assert len(route.http) <= MOST_HTTP + 5 and sum(sum(each.seconds.counts) for each in route.http) == 100


def test_an_exception_passes_and_is_an_error() -> None:
    error = ZeroDivisionError("user's own")
    with pytest.raises(ZeroDivisionError) as caught:
        Client().call(jaxobs.asgi(playing(start(), error)))
    assert caught.value is error and error.__context__ is None

    async def cancelled() -> None:
        client = Client()
        task = asyncio.create_task(jaxobs.asgi(playing(3600.0))(client.scope, client.receive, client.send))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert outcomes() == {"error": 1, "cancelled": 1}
    assert jaxobs.snapshot().requests_in_flight == 0


def test_a_client_that_goes_before_the_end_is_no_error_of_ours() -> None:
    """Told by a message, or by the server's send; after the end it does not matter.

    Starlette's `BaseHTTPMiddleware` closes the stream of a client that has gone. An answer whose length the client
    knows was whole.
    """
    rest = (body(b"ab", more=True), GONE, body(b""))
    for path, app in {
        "/gone": playing(start(), GONE),
        "/stream": playing(start(headers=STREAM), *rest),
        "/after": playing(start(), body(b"done"), GONE),
        "/sized": playing(start(headers=[(b"content-length", b"2")]), *rest),
    }.items():
        Client(path).call(jaxobs.asgi(app))
        assert outcomes(path) == {"cancelled" if path in ("/gone", "/stream") else "ok": 1}
    client = Client()
    client.broken = True
    with pytest.raises(OSError, match="the client has gone"):
        client.call(jaxobs.asgi(answering()))
    assert outcomes() == {"cancelled": 1}


@pytest.mark.parametrize(
    "messages",
    [
        [{"type": "http.response.body", "more_body": True}, {"type": "http.response.body"}],
        [{"type": "http.response.zerocopysend", "file": 0, "more_body": False}],
        [{"type": "http.response.pathsend", "path": "/x"}],
        [{"type": "http.response.body"}, {"type": "http.response.trailers", "headers": []}],
    ],
    ids=["body", "zerocopysend", "pathsend", "trailers"],
)
def test_a_request_lasts_until_the_last_part_is_sent(messages: list[Message]) -> None:
    open_at: list[tuple[int | None, float]] = []

    def look() -> None:
        open_at.append((jaxobs.snapshot().requests_in_flight, time.perf_counter()))

    trailers = messages[-1]["type"] == "http.response.trailers"
    parts = [step for message in messages for step in (look, 0.02, message)]
    began = time.perf_counter()
    Client().call(jaxobs.asgi(playing(look, start(trailers=trailers), *parts, look, 0.2)))
    (slowest,) = routes()["/predict"].slowest
    assert [each for each, _ in open_at] == [1] * (1 + len(messages)) + [0]
    assert 0.02 * len(messages) <= slowest.seconds <= open_at[-1][1] - began and slowest.outcome == "ok"


def test_what_is_no_http_request_passes_by() -> None:
    seen: list[tuple[object, ...]] = []

    async def app(*args: object) -> None:
        seen.append(args)

    for kind in ("lifespan", "websocket"):
        given: list[Any] = [{"type": kind}, object(), object()]
        asyncio.run(jaxobs.asgi(app)(*given))
        assert all(found is each for found, each in zip(seen[-1], given, strict=True))
    assert jaxobs.snapshot().routes == ()


def test_however_many_middlewares_count_a_request_once() -> None:
    inner = jaxobs.asgi(answering())

    async def copying(scope: Message, receive: Receive, send: Send) -> None:
        await inner({**scope, "path": "/mounted"}, receive, send)

    Client().call(jaxobs.asgi(copying))
    assert set(routes()) == {"/predict"}

    async def asking(scope: Message, receive: Receive, send: Send) -> None:
        other = Client("/other")
        await inner(other.scope, other.receive, other.send)
        await answering()(scope, receive, send)

    Client("/asking").call(jaxobs.asgi(asking))
    assert routes()["/other"].total == routes()["/asking"].total == 1


def test_attributes_are_those_of_the_application_and_a_broken_name_breaks_nothing() -> None:
    guard.raise_internal_errors(False)
    app = answering()
    app.state = "its own"
    wrapped = jaxobs.asgi(app, route=lambda scope: scope["nothing"])
    assert wrapped.state == copy.copy(wrapped).state == "its own" and not hasattr(wrapped, "missing")
    Client("/items/17").call(wrapped)
    assert outcomes("/items/{number}") == {"ok": 1} and guard.internal_errors()["asgi.route"] == 1


def test_paths_of_strangers_make_no_series() -> None:
    for path, name in {
        "/": "/",
        "": "/",
        "/v1/items/17/x": "/v1/items/{number}/x",
        "/v1/3.5": "/v1/{number}",
        "/runs/0b5cbc2e-9f0d-4c1b-8a53-61f3c6f6a001": "/runs/{id}",
        "/blobs/9b74c9897bac770ffc029102a200c5de": "/blobs/{id}",
        "/v1/chat/completions": "/v1/chat/completions",
        "/internationalization": "/internationalization",
    }.items():
        assert route_names.of_asgi({}, path or "/", "", 200) == name
    assert route_names.of_asgi({}, "/wp-login.php", "", 404) == route_names.UNMATCHED
    Client("/" + "a" * 5000).call(jaxobs.asgi(answering()))
    assert max(len(each) for each in routes()) <= 200


def test_frameworks_tell_their_template() -> None:
    class Route:
        path_format = "/models/{name}"

    route = {"route": Route()}
    mounted = {"path_params": {"tenant": "acme", "name": "bert"}}
    for scope, path, root, template in (
        (route, "/models/bert", "", "/models/{name}"),
        (route | {"root_path": "/api"}, "/api/models/bert", "", "/api/models/{name}"),
        (route | {"root_path": "/api"}, "/models/bert", "", "/models/{name}"),
        (route | {"root_path": "/p/acme"} | mounted, "/p/acme/models/bert", "/p", "/{tenant}/models/{name}"),
        ({"path_params": {"name": "bert", "file": "a/b"}}, "/models/bert/files/a/b", "", "/models/{name}/files/{file}"),
        ({"path_template": "/x/{y}"}, "/x/1", "", "/x/{y}"),
    ):
        assert route_names.of_asgi(scope, path, root, 200) == template
    assert route_names.of_asgi(route, "/models/bert", "", 404) == "/models/{name}"


def test_fastapi_and_starlette_as_they_are() -> None:
    fastapi = package("fastapi")
    from fastapi.responses import StreamingResponse

    jax = pytest.importorskip("jax")
    fun = jax.jit(lambda x: x + 1)

    def made(wrapped: bool) -> Any:
        """An application with the middleware around or within it."""
        app, below = fastapi.FastAPI(), fastapi.FastAPI()

        @app.get("/models/{name}")
        def model(name: str, size: int = 3) -> float:
            return float(fun(jax.numpy.ones(size))[0])

        @app.get("/stream")
        async def stream() -> StreamingResponse:
            return StreamingResponse(iter([b"1", b"2"]))

        @app.get("/broken")
        def broken() -> None:
            raise ZeroDivisionError

        @below.get("/items/{item}")
        async def items(item: int) -> int:
            return item

        app.mount("/below", below)
        if wrapped:
            return jaxobs.asgi(app)
        app.add_middleware(jaxobs.asgi)
        return app

    def status(app: Any, path: str, query: bytes = b"") -> int:
        return int(Client(path, query_string=query, http_version="1.1", root_path="").call(app).sent[0]["status"])

    for wrapped in (True, False):
        app = made(wrapped)
        paths = ["/models/bert", "/models/gpt", "/stream", "/below/items/7", "/nowhere/at/all"]
        assert [status(app, path) for path in paths] == [200, 200, 200, 200, 404]
        assert status(app, "/models/bert", b"size=x") == 422
        with pytest.raises(ZeroDivisionError):
            Client("/broken").call(app)
    assert {name: each.total for name, each in routes().items()} == {
        "/models/{name}": 6, "/stream": 2, "/below/items/{item}": 2, route_names.UNMATCHED: 2, "/broken": 2
    }  # fmt: skip
    found = routes()["/models/{name}"]
    assert found.requests == {"true": {"ok": 1}, "false": {"ok": 3, "client_error": 2}}, found.latest_cold
    assert routes()["/broken"].requests == {"false": {"error": 2}}
    assert jaxobs.snapshot().requests_in_flight == 0


def token(part: bytes) -> None:
    """Reports as a handler does after each part."""
    jaxobs.request.current().tokens(output=1)


def test_the_first_part_of_a_stream_is_its_first_token() -> None:
    """As a stopwatch in the client has it; and with the tokens that the handler reports, the time for each of them."""
    pause = 0.02
    arrived: list[float] = []

    class Timed(Client):
        async def send(self, message: Message) -> None:
            await super().send(message)
            arrived.append(time.perf_counter())

    began = time.perf_counter()
    Timed().call(jaxobs.asgi(streaming(b"a", b"b", b"c", pause=pause, after=token)))
    found = routes()["/predict"]
    first, each = found.first_token_seconds, found.output_token_seconds
    assert first is not None and each is not None and sum(first.counts) == sum(each.counts) == 1
    assert pause <= first.sum and arrived[1] - arrived[0] <= first.sum  # the first message has the headers
    assert pause <= each.sum <= (time.perf_counter() - began - first.sum) / 2
    assert found.output_tokens == 3


def test_what_is_no_stream_of_text_has_no_first_token() -> None:
    html, octets = [(b"content-type", b"text/html")], [(b"Content-Type", b"application/octet-stream")]
    sized = [(b"content-type", b"application/json"), (b"Content-Length", b"2")]
    apps = [
        answering(), streaming(b"a", b"b", headers=html), streaming(b"a", b"b", headers=octets),
        streaming(b"{", b"}", headers=sized), streaming(b"a"), streaming(), streaming(b"", b""),
        streaming(b"a", b"b", status=500), streaming(b"a", b"b", status=404),
        streaming(b": ping\n\n", b"data: [DONE]\n\n", headers=STREAM), streaming(b"a", b"b", headers=iter(STREAM)),
    ]  # fmt: skip
    for app in apps:
        client = Client().call(jaxobs.asgi(app, route=lambda scope: "/predict"))
    assert list(client.sent[0]["headers"]) == STREAM
    assert first_tokens() == 0 and routes()["/predict"].total == len(apps)


def test_streams_of_text_are_known_by_their_type() -> None:
    apps = [
        streaming(b": ping\n\n", b"data: a\n\n", headers=STREAM),
        streaming(b"event: token\ndata: a\n\n", b"data: [DONE]\n\n", headers=STREAM),
        streaming(b"{}\n", b"{}\n", headers=[(b"content-type", b"application/x-ndjson")]),
        streaming(b"a", b"b", headers=((b"Content-Type", b"text/plain"),)),
        streaming(b"a", b"b"),
    ]
    for number, app in enumerate(apps):
        Client().call(jaxobs.asgi(app))
        assert first_tokens() == number + 1


def test_what_the_program_says_of_its_first_token_counts() -> None:
    """Earlier or later than the first part: it knows better, and it may be an answer that is whole."""

    def second(part: bytes) -> None:
        if part == b"b":
            jaxobs.request.current().first_token()

    whole = answering(before=lambda: jaxobs.request.current().first_token())
    Client("/later").call(jaxobs.asgi(streaming(b"role", b"b", pause=0.02, after=second)))
    Client("/whole").call(jaxobs.asgi(whole))
    found = routes()["/later"].first_token_seconds
    assert found is not None and found.sum >= 0.04
    assert first_tokens("/whole") == 1


def test_a_stream_that_breaks_off_ends_once() -> None:
    def fails(part: bytes) -> None:
        token(part)
        if part == b"b":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Client("/fails").call(jaxobs.asgi(streaming(b"a", b"b", after=fails)))

    class Gone(Client):
        async def send(self, message: Message) -> None:
            self.broken = len(self.sent) == 3
            await super().send(message)

    with pytest.raises(OSError, match="the client has gone"):
        Gone("/gone").call(jaxobs.asgi(streaming(b"a", b"b", b"c")))
    assert (outcomes("/fails"), outcomes("/gone")) == ({"error": 1}, {"cancelled": 1})
    assert routes()["/fails"].output_tokens == 2 and routes()["/gone"].output_token_seconds is None
    assert (first_tokens("/fails"), first_tokens("/gone")) == (0, 1)
    assert jaxobs.snapshot().requests_in_flight == 0


def test_tokens_and_their_request_have_one_route() -> None:
    Client().call(jaxobs.asgi(answering(404, before=lambda: jaxobs.request.current().tokens(output=3))))
    (found,) = jaxobs.snapshot().routes
    assert (found.route, found.total, found.output_tokens) == ("/predict", 1, 3)


def test_tokens_are_counted_under_the_route_at_once() -> None:
    """By the framework's template while the handler runs; where the program names it, at the end; never twice."""
    fastapi = package("fastapi")
    from fastapi.responses import StreamingResponse

    app, live = fastapi.FastAPI(), []

    @app.get("/models/{name}")
    def model(name: str) -> Any:
        served = jaxobs.request.current()
        served.tokens(input=3)

        def parts() -> Any:
            for part in ("a", "b"):
                jaxobs.request.current().tokens(output=1)
                live.append({each.route: each.output_tokens for each in jaxobs.snapshot().routes})
                yield part

        return StreamingResponse(parts(), media_type="text/plain")

    def ask(wrapped: Any) -> None:
        asgi = {"version": "3.0", "spec_version": "2.4"}
        Client("/models/bert", http_version="1.1", root_path="", asgi=asgi).call(wrapped)

    ask(jaxobs.asgi(app))
    assert live == [{"/models/{name}": 1}, {"/models/{name}": 2}]
    ask(jaxobs.asgi(app, route=lambda scope: "named"))
    assert live[2:] == [{"/models/{name}": 2}] * 2
    found = routes()
    assert {name: (each.input_tokens, each.output_tokens) for name, each in found.items()} == {
        "/models/{name}": (3, 2), "named": (3, 2)
    }  # fmt: skip
    assert first_tokens("/models/{name}") == first_tokens("named") == 1
