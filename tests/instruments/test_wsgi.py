"""The WSGI middleware: every request counted once and rightly, and all that passes left as it is."""

from __future__ import annotations

import io
import threading
import time
import urllib.request
import wsgiref.util
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.validate import validator

import pytest
from helpers.requirements import package
from helpers.route_states import compiled, first_tokens, outcomes, routes

import jaxobs
from jaxobs.instruments import route_names

StartResponse = Callable[..., Any]
Environ = dict[str, Any]

pytestmark = pytest.mark.usefixtures("installed")


def environ(path: str = "/predict") -> Environ:
    made: Environ = {"PATH_INFO": path}
    wsgiref.util.setup_testing_defaults(made)
    return made


def started(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Callable[[bytes], object]:
    """A server's `start_response`."""
    return io.BytesIO().write


def answering(body: Iterable[bytes]) -> Callable[[Environ, StartResponse], Iterable[bytes]]:
    """An application that answers so."""

    def app(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
        return body

    return app


class Body:
    """An answer in parts, that notes whether it was closed."""

    def __init__(self, *parts: bytes) -> None:
        self.parts, self.closed = parts, 0

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.parts)

    def close(self) -> None:
        self.closed += 1


def test_all_that_passes_is_as_it_was() -> None:
    given: list[tuple[object, ...]] = []
    write = io.BytesIO().write
    error = (ValueError, ValueError(), None)
    whole = [b"a", b"b"]
    own = environ()

    def server(*args: object) -> Callable[[bytes], object]:
        given.append(args)
        return write

    def app(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        assert environ is own
        assert start_response("200 OK", [("a", "b")]) is write
        start_response("503 Busy", [], error)
        return whole

    assert jaxobs.wsgi(app)(own, server) is whole
    assert given == [("200 OK", [("a", "b")]), ("503 Busy", [], error)]
    assert outcomes() == {"error": 1}
    ((http,),) = [each.http for each in jaxobs.snapshot().routes]
    assert (http.method, http.scheme, http.status) == ("GET", "http", 503)


def test_a_stream_lasts_until_it_is_exhausted_and_is_closed_once() -> None:
    def app(environ: Environ, start_response: StartResponse) -> Iterator[bytes]:
        start_response("404 Not Found", [])
        for part in (b"a", b"b"):
            time.sleep(0.02)
            compiled()
            yield part

    body: Any = jaxobs.wsgi(app, route=lambda environ: "stream")(environ(), started)
    assert routes() == {}
    assert jaxobs.snapshot().requests_in_flight == 1
    assert next(body) == b"a"
    compiled()  # on the server's behalf, between two parts
    assert list(body) == [b"b"]
    body.close()
    assert routes()["stream"].requests == {"true": {"client_error": 1}}
    (told,) = routes()["stream"].latest_cold
    assert told.compilations == 2 and told.seconds >= 0.04
    assert jaxobs.snapshot().requests_in_flight == 0


def test_an_answer_that_is_not_exhausted_was_given_up() -> None:
    answer = Body(b"a", b"b")
    body: Any = jaxobs.wsgi(answering(answer))(environ(), started)
    assert next(body) == b"a"
    body.close()
    assert answer.closed == 1 and outcomes() == {"cancelled": 1}
    whole: Any = jaxobs.wsgi(answering(answer))(environ(), started)
    assert b"".join(whole) == b"ab"
    whole.close()
    assert answer.closed == 2 and outcomes() == {"cancelled": 1, "ok": 1}


def test_an_exception_passes_and_is_an_error() -> None:
    error = ZeroDivisionError("user's own")

    def raises(*_: object) -> Any:
        raise error

    def later() -> Iterator[bytes]:
        yield b"a"
        raise error

    closing = Body(b"a")
    closing.close = raises  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError) as caught:
        jaxobs.wsgi(raises)(environ(), started)
    assert caught.value is error and error.__context__ is None
    with pytest.raises(ZeroDivisionError):
        list(jaxobs.wsgi(answering(later()))(environ(), started))
    assert outcomes() == {"error": 2}
    body: Any = jaxobs.wsgi(answering(closing))(environ(), started)
    list(body)
    with pytest.raises(ZeroDivisionError):
        body.close()
    assert outcomes() == {"error": 2, "ok": 1} and jaxobs.snapshot().requests_in_flight == 0


def test_what_a_server_sends_in_its_own_way_stays_what_it_is() -> None:
    own = environ() | {"wsgi.file_wrapper": wsgiref.util.FileWrapper}
    file = wsgiref.util.FileWrapper(io.BytesIO(b"file"))
    assert jaxobs.wsgi(answering(file))(own, started) is file

    class Sized(Body):
        def __len__(self) -> int:
            return len(self.parts)

    body: Any = jaxobs.wsgi(answering(Sized(b"a")))(own, started)
    assert len(body) == 1 and list(body) == [b"a"]
    assert outcomes() == {"ok": 2}


def test_however_many_middlewares_count_a_request_once() -> None:
    def app(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        compiled()
        start_response("200 OK", [])
        return [b""]

    app.state = "its own"  # type: ignore[attr-defined]
    wrapped = jaxobs.wsgi(jaxobs.wsgi(app))
    wrapped(environ("/items/17"), started)
    assert routes()["/items/{number}"].requests == {"true": {"ok": 1}}
    assert wrapped.state == "its own"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_under_a_server_that_checks_the_protocol() -> None:
    class Quiet(WSGIRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    wrapped = validator(jaxobs.wsgi(validator(answering(Body(b"a", b"b")))))
    with make_server("127.0.0.1", 0, wrapped, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            for _ in range(3):
                with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/v1/7", timeout=120) as answer:
                    assert answer.read() == b"ab"
        finally:
            server.shutdown()
            thread.join()
    assert outcomes("/v1/{number}") == {"ok": 3}


def test_flask_as_it_is() -> None:
    flask = package("flask")
    app = flask.Flask("served")

    @app.get("/models/<name>")
    def model(name: str) -> str:
        compiled()
        return name

    app.wsgi_app = jaxobs.wsgi(app.wsgi_app)
    client = app.test_client()
    assert client.get("/models/bert").text == "bert"
    assert b"Not Found" in client.get("/nowhere").data
    assert {name: each.requests for name, each in routes().items()} == {
        "/models/<name>": {"true": {"ok": 1}},
        route_names.UNMATCHED: {"false": {"client_error": 1}},
    }


def test_the_first_part_of_a_stream_is_its_first_token() -> None:
    def streaming(*parts: bytes, headers: list[tuple[str, str]] | None = None, status: str = "200 OK") -> Any:
        def app(environ: Environ, start_response: StartResponse) -> Iterator[bytes]:
            start_response(status, headers or [])
            for part in parts:
                time.sleep(0.02)
                jaxobs.request.current().tokens(output=1)
                yield part

        return jaxobs.wsgi(app)

    events = [("Content-Type", "text/event-stream")]
    for app in (
        streaming(b"a"), streaming(b"a", b"b", headers=[("content-type", "text/html")]),
        streaming(b"a", b"b", headers=[("Content-Length", "2")]), streaming(b"a", b"b", status="500 No"),
    ):  # fmt: skip
        list(app(environ(), started))
    assert first_tokens() == 0 and routes()["/predict"].output_tokens == 7
    for number, app in enumerate((streaming(b"a", b"b"), streaming(b": hello\n\n", b"data: a\n\n", headers=events))):
        list(app(environ(), started))
        assert first_tokens() == number + 1
    found = routes()["/predict"]
    assert found.first_token_seconds is not None and found.first_token_seconds.sum >= 3 * 0.02
    body: Any = streaming(b"a", b"b", b"c")(environ(), started)
    assert [next(body), next(body)] == [b"a", b"b"]
    body.close()
    assert first_tokens() == 3 and outcomes()["cancelled"] == 1


def test_flask_streams_count_under_their_rule_at_once() -> None:
    """A generator that runs after Flask has forgotten the rule, with the handler's request in hand."""
    flask = package("flask")
    app = flask.Flask("served")

    @app.get("/models/<name>")
    def model(name: str) -> Any:
        served = jaxobs.request.current()

        def parts() -> Iterator[str]:
            for part in "ab":
                served.tokens(output=1)
                live.append({each.route: each.output_tokens for each in jaxobs.snapshot().routes})
                yield part

        return flask.Response(parts(), mimetype="text/plain")

    live: list[dict[str, int]] = []
    app.wsgi_app = jaxobs.wsgi(app.wsgi_app)
    assert app.test_client().get("/models/bert").text == "ab"
    assert live == [{"/models/<name>": 1}, {"/models/<name>": 2}]
    assert first_tokens("/models/<name>") == 1
