"""Reports of requests on the text that they generate: true figures from any thread, none from what is no figure."""

from __future__ import annotations

import asyncio
import enum
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest
from helpers.route_states import exposed, first_tokens, routes
from helpers.threads import OFTEN, at_once, elsewhere

import jaxobs
from jaxobs.base import guard
from jaxobs.facts.functions import Histogram
from jaxobs.facts.requests import RouteState
from jaxobs.session import lifecycle
from jaxobs.state import store
from jaxobs.state.routes import MOST_ENGINES, MOST_ROUTES

PART = 0.03
"""Seconds that something takes here at least."""

pytestmark = pytest.mark.usefixtures("installed")


def route(name: str = "generate") -> RouteState:
    return routes()[name]


def metric(name: str, **labels: str) -> float | None:
    return exposed(f"jax_request_{name}", route="generate", **labels)


def once(histogram: Histogram | None) -> float:
    """The only value that a histogram has."""
    assert histogram is not None and sum(histogram.counts) == 1
    return histogram.sum


def notes() -> list[str]:
    return [note for note in jaxobs.snapshot().observer.notes if "valid are" in note]


def test_a_generation_is_timed_and_counted() -> None:
    """First token, each one after it, tokens in both directions, why it ended: as a stopwatch has them."""
    began = time.perf_counter()
    with jaxobs.request("generate") as scope:
        scope.queued(0.25)
        scope.tokens(input=12)
        time.sleep(PART)
        scope.first_token()
        first = time.perf_counter() - began
        for _ in range(4):
            time.sleep(PART)
            scope.first_token()  # later ones change nothing
            scope.tokens(output=1)
        scope.tokens(output=1)
        scope.finish_reason("length")
    took = time.perf_counter() - began

    found = route()
    told = once(found.first_token_seconds)
    assert PART <= told <= first
    assert PART <= once(found.output_token_seconds) <= (took - told) / 4
    between = found.inter_token_seconds
    assert between is not None and sum(between.counts) == 4 and 3 * PART <= between.sum <= took - told
    assert (found.input_tokens, found.output_tokens, found.finish_reasons) == (12, 5, {"length": 1})
    assert (found.queued, found.queue_seconds) == (1, 0.25)
    assert found.first_token is not None and found.first_token.p50 == told
    (record,) = found.slowest
    assert (record.input_tokens, record.output_tokens, record.finish_reason) == (12, 5, "length")
    assert record.first_token_seconds == told

    assert metric("first_token_seconds_count") == metric("output_token_seconds_count") == 1
    assert metric("tokens_total", direction="input") == 12
    assert metric("tokens_total", direction="output") == 5
    assert metric("finish_reasons_total", reason="length") == 1
    assert (metric("queue_seconds_bucket", le="0.25"), metric("queue_seconds_bucket", le="0.1")) == (1, 0)


def test_a_request_that_reports_nothing_has_no_series_of_it() -> None:
    with jaxobs.request("generate"):
        pass
    for name in ("first_token_seconds", "output_token_seconds", "inter_token_seconds", "queue_seconds", "batch_size"):
        assert metric(f"{name}_count") is None
    assert metric("tokens_total", direction="output") is None
    found = route()
    assert found.first_token is found.output_token is found.output_tokens_per_second is None
    assert found.slowest[0].output_tokens is None


def test_tokens_are_counted_while_the_request_runs() -> None:
    with jaxobs.request("generate") as scope:
        scope.tokens(output=3)
        assert metric("tokens_total", direction="output") == 3
        scope.tokens(output=np.int32(2))  # type: ignore[arg-type]
        assert route().output_tokens == 5 and route().total == 0
    assert metric("tokens_total", direction="output") == 5


def test_the_time_for_each_token_needs_two_of_them_and_the_first() -> None:
    with jaxobs.request("generate") as scope:
        scope.tokens(output=3)  # told before the first token: counted all the same
        scope.first_token()
    with jaxobs.request("generate") as scope:
        scope.first_token()
        scope.tokens(output=1)
    with jaxobs.request("generate") as scope:
        scope.tokens(output=50)
    found = route()
    assert found.output_tokens == 54 and found.inter_token_seconds is None
    assert first_tokens("generate") == 2 and once(found.output_token_seconds) >= 0


class Odd:
    """A number of the program's own."""

    def __int__(self) -> int:
        raise RuntimeError("user's own")


@pytest.mark.parametrize(
    "wrong",
    [-1, 1.5, float("nan"), float("inf"), "5", [1], 10**400, object(), Odd()],
    ids=lambda wrong: type(wrong).__name__,
)
def test_what_is_no_number_of_tokens_is_left_out_with_a_note(wrong: Any) -> None:
    with jaxobs.request("generate") as scope:
        scope.tokens(input=wrong, output=7)
        scope.tokens(input=None, output=wrong)  # type: ignore[arg-type]
    assert (route().input_tokens, route().output_tokens) == (0, 7)
    assert len(notes()) == 2 and "request" not in guard.internal_errors()


def test_reasons_are_a_closed_set() -> None:
    class Reason(enum.Enum):
        LIMIT = "length"

    for reason in ("stop", "EOS", "max_tokens", Reason.LIMIT, "tool_use", "my own words", "x" * 10_000, None):
        with jaxobs.request("generate") as scope:
            scope.finish_reason("abort")
            scope.finish_reason(reason)  # type: ignore[arg-type]
            for seconds in (float("nan"), -1.0):
                scope.queued(seconds)
    assert route().finish_reasons == {"stop": 2, "length": 2, "tool_calls": 1, "other": 3}
    assert route().queued == 0


def test_other_threads_report_too_and_no_token_is_lost() -> None:
    def work(_: int) -> None:
        for _ in range(500):
            scope.tokens(input=2, output=1)
            scope.first_token()

    with jaxobs.request("generate") as scope:
        at_once(16, work, interval=OFTEN)
    assert (route().input_tokens, route().output_tokens) == (16_000, 8_000)
    assert once(route().output_token_seconds) == pytest.approx(
        (route().slowest[0].seconds - once(route().first_token_seconds)) / (8_000 - 1)
    )


def test_what_is_reported_before_the_start_or_after_the_end_counts_nowhere() -> None:
    scope = jaxobs.request("generate")
    scope.first_token()
    scope.tokens(output=5)
    with scope:
        pass
    scope.tokens(output=5)
    scope.queued(3.0)
    scope.finish_reason("stop")
    with scope:
        scope.tokens(output=1)
    found = route()
    assert (found.output_tokens, found.finish_reasons, found.queued, found.first_token_seconds) == (1, {}, 0, None)


def test_nested_requests_report_for_themselves() -> None:
    with jaxobs.request("http") as outer:
        assert jaxobs.request.current() is outer
        with jaxobs.request("generate") as inner:
            assert jaxobs.request.current() is inner
            inner.first_token()
            inner.tokens(output=4)
            with inner as again:
                again.tokens(output=2)
    assert route().output_tokens == 6 and route().total == 2
    assert route("http").output_tokens == 0 and route("http").first_token_seconds is None
    nobody = jaxobs.request.current()
    nobody.first_token()
    nobody.tokens(output=4)
    nobody.finish_reason("stop")
    assert {each.route for each in jaxobs.snapshot().routes} == {"http", "generate"}


def test_each_call_of_a_decorated_function_reports_by_current() -> None:
    def report() -> None:
        jaxobs.request.current().first_token()
        jaxobs.request.current().tokens(output=2)

    @jaxobs.request("generate")
    def whole() -> None:
        report()

    @jaxobs.request("generate")
    async def awaited() -> None:
        await asyncio.sleep(0)
        report()

    @jaxobs.request("generate")
    def streamed() -> Iterator[int]:
        report()
        yield 1
        yield 2

    @jaxobs.request("generate")
    async def streamed_too() -> AsyncIterator[int]:
        report()
        yield 1
        yield 2

    async def serve() -> None:
        await asyncio.gather(awaited(), awaited())
        assert [each async for each in streamed_too()] == [1, 2]
        early = streamed_too()
        await anext(early)
        await early.aclose()  # type: ignore[attr-defined]

    whole()
    asyncio.run(serve())
    assert list(streamed()) == [1, 2]
    closed = streamed()
    next(closed)
    closed.close()
    found = route()
    assert found.requests == {"false": {"ok": 5, "cancelled": 2}} and found.output_tokens == 14
    # One that was given up has had its first token; how long it took for the others is not known.
    assert first_tokens("generate") == 7
    assert found.output_token_seconds is not None and sum(found.output_token_seconds.counts) == 5


def test_how_fast_a_request_failed_is_no_latency() -> None:
    with pytest.raises(KeyError), jaxobs.request("generate") as scope:
        scope.first_token()
        scope.tokens(output=3)
        scope.finish_reason("error")
        raise KeyError
    found = route()
    assert found.first_token_seconds is None and found.output_token_seconds is None
    assert found.output_tokens == 3 and found.finish_reasons == {"error": 1}


def test_the_state_may_be_forgotten_while_tokens_come() -> None:
    with jaxobs.request("generate") as scope:
        scope.tokens(output=3)
        store.current().reset()
        scope.tokens(output=3)
    assert jaxobs.snapshot().routes == ()


def test_batches_are_told_by_their_size() -> None:
    for used in (1, 3, 3, 30):
        with jaxobs.request("generate", batch=(used, 32)):
            pass
    assert metric("batch_size_bucket", le="1.0") == 1
    assert metric("batch_size_bucket", le="4.0") == 3
    assert metric("batch_size_sum") == 37
    assert (route().batches, route().batch_used, route().batch_size) == (4, 37, 128)


def test_many_generating_routes_stay_within_the_bound_on_series() -> None:
    from jaxobs.exporters.forms.exposition import MOST_SERIES, Renderer

    for number in range(MOST_ROUTES + 5):
        for cold in (False, True):
            with jaxobs.request(f"/{number}", queue_seconds=0.1, batch=(1, 2)) as scope:
                scope.tokens(input=1, output=2)
                scope.first_token()
                scope.finish_reason(("stop", "length")[cold])
    text = Renderer(store.current()).render().decode()
    series = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(series) <= MOST_SERIES
    assert 'jax_request_tokens_total{route="<other>",direction="output"} 20' in text.replace(".0\n", "\n")
    assert 'jaxobs_dropped_series_total{reason="routes"}' in text


def test_an_engine_reports_its_queue_and_its_cache() -> None:
    def figures() -> list[float | None]:
        requests = [exposed("jax_engine_requests", engine="engine", state=each) for each in ("running", "waiting")]
        return [*requests, exposed("jax_engine_kv_cache_ratio", engine="engine")]

    assert figures() == [None, None, None]
    jaxobs.engine(running=3, waiting=2)
    assert figures() == [3, 2, None]
    jaxobs.engine(kv_cache=np.float32(0.5), waiting=0)  # type: ignore[arg-type]
    assert figures() == [3, 0, 0.5] and notes() == []
    wrongs: tuple[dict[str, Any], ...] = (
        {"running": -1}, {"waiting": float("nan")}, {"kv_cache": 1.5}, {"kv_cache": "full"}, {"running": 2.5}
    )  # fmt: skip
    for wrong in wrongs:
        jaxobs.engine(**wrong)
    assert figures() == [3, 0, 0.5] and len(notes()) == 5
    for number in range(MOST_ENGINES + 3):
        jaxobs.engine(f"decode {number}", running=1)
    assert len(jaxobs.snapshot().engines) == MOST_ENGINES
    assert jaxobs.snapshot().observer.dropped["engines"] == 4


def test_what_an_engine_computes_is_no_step() -> None:
    """A server that is idle at night has no goodput to lose; and its thread is in no request."""
    import jax

    decode = jax.jit(lambda x: x + 1)

    def run(reports: bool) -> None:
        for _ in range(60):
            if reports:
                jaxobs.engine(running=1)
                with jaxobs.request("generate"):
                    pass
                jaxobs.request.current().tokens(output=1)
            np.asarray(decode(np.ones(3, np.float32)))
            time.sleep(0.005)

    def loops(reports: bool) -> int:
        elsewhere(lambda: run(reports))
        store.current().tick()
        for source in lifecycle._session.sources:  # type: ignore[union-attr]
            source.sample()
        return len(jaxobs.snapshot().loops)

    assert loops(reports=True) == 0
    assert route().output_tokens == 0 and route().total == 60
    assert loops(reports=False) == 1  # what the first line would find otherwise
