"""Served requests: exactly those in which something compiled are cold, and every other figure is true as well."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
import urllib.error
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.route_states import compiled, exposed, outcomes, routes
from helpers.threads import at_once, elsewhere

import jaxobs
from jaxobs.base import guard
from jaxobs.facts.compilations import OTHER
from jaxobs.facts.requests import RecentRequests, RouteState
from jaxobs.instruments import requests
from jaxobs.state import store
from jaxobs.state.routes import MOST_COMPILED, MOST_ROUTES, MOST_TOLD, Route, Routes, covered, latency

pytestmark = pytest.mark.usefixtures("installed")


def model() -> Callable[[jax.Array], jax.Array]:
    """A function that is compiled anew for each test."""

    def double(x: jax.Array) -> jax.Array:
        return x * 2 + 1

    return jax.jit(double)


def answer(fun: Callable[[jax.Array], jax.Array], size: int) -> None:
    np.asarray(fun(np.ones(size, np.float32)))


def route(name: str = "predict") -> RouteState:
    return routes()[name]


def test_exactly_the_requests_in_which_something_compiled_are_cold() -> None:
    fun = model()
    for n in range(40):
        with jaxobs.request("predict"):
            answer(fun, 4 + n % 3)
    found = route()
    assert found.requests == {"true": {"ok": 3}, "false": {"ok": 37}}
    assert {cold: sum(h.counts) for cold, h in found.seconds.items()} == {"true": 3, "false": 37}
    assert found.cold is not None and found.warm is not None
    assert (found.cold.count, found.warm.count, found.waited) == (3, 37, 0)
    assert found.cold.longest >= max(each.compiled[0].seconds for each in found.latest_cold)
    assert [each.compiled[0].cause for each in found.latest_cold] == ["shape", "shape", "first_call"]
    newest = found.latest_cold[0]
    assert newest.compiled[0].function.endswith("model.<locals>.double") and "float32[6]" in newest.compiled[0].reason
    assert newest.compilations == len(newest.compiled) == 1
    assert 0 < newest.compiled[0].seconds <= newest.seconds and abs(newest.time - time.time()) < 60
    assert [each.cold for each in found.slowest] == ["false"] * MOST_TOLD
    assert found.slowest[0].seconds == found.warm.longest >= found.slowest[-1].seconds


def test_a_load_from_the_persistent_cache_and_a_single_operation_make_a_request_cold() -> None:
    with jaxobs.request("predict"):
        compiled(cache="hit")
    assert route().latest_cold[0].compiled[0].cache == "hit"
    jax.clear_caches()
    with jaxobs.request("predict") as scope:
        assert not scope.cold
        jnp.ones(5).sum()
        assert scope.cold
    assert scope.cold
    assert any("reduce_sum" in each.function for each in route().latest_cold[0].compiled)


def test_one_program_that_many_ask_for_at_once_makes_one_request_cold_and_the_others_wait() -> None:
    """Eight threads call a function that takes long to compile: one compiles, seven wait, later ones are fast."""

    @jax.jit
    def deep(x: jax.Array) -> jax.Array:
        for n in range(600):
            x = jnp.sin(x @ x) + n
        return x

    x = np.ones((8, 8), np.float32)

    def ask(_: int) -> None:
        with jaxobs.request("predict"):
            np.asarray(deep(x))

    at_once(8, ask)
    for each in range(10):
        ask(each)
    found = route()
    assert found.requests == {"true": {"ok": 1}, "false": {"ok": 17}}
    assert found.waited == 7 and found.warm is not None and found.warm.count == 10
    assert found.waited_seconds > 0
    assert sum(each.waited for each in found.slowest) == 7


def test_a_request_that_merely_passes_beside_a_compilation_did_not_wait() -> None:
    rows = Routes()
    row = rows.route("generate")

    def waited(began: float, ended: float) -> tuple[int, float]:
        row.waiting.append((ended, ended - began, "ok", "false", None, None, None, None, False, None))
        found = row.frozen()
        return found.waited, found.waited_seconds

    for n in range(20):
        waited(100.0 + n, 105.0 + n)
    rows.compiled(200.0, 204.0)
    assert waited(199.5, 204.5) == (0, 0.0)
    assert waited(199.5, 212.0) == (0, 0.0)  # most of it came after the compilation
    assert waited(190.0, 203.0) == (0, 0.0)  # it did not wait for the end of it
    rows.compiled(300.0, 309.0)
    assert waited(299.0, 312.0) == (1, pytest.approx(13.0))


def test_compilations_in_the_background_mark_no_request() -> None:
    with jaxobs.request("predict"):
        elsewhere(lambda: answer(model(), 3))
    assert route().count(cold="true") == 0


def test_interleaved_requests_of_one_event_loop_are_told_apart() -> None:
    fun = model()

    async def handle(name: str, size: int, *, worker: bool) -> None:
        async with jaxobs.request(name):
            await asyncio.sleep(0.01)
            if worker:
                await asyncio.to_thread(answer, fun, size)
            else:
                answer(fun, size)
            await asyncio.sleep(0.01)

    async def serve() -> None:
        # Sizes 3, 4 and 5 are new to the first request that has them; 3 comes again.
        await handle("first", 3, worker=False)
        await asyncio.gather(
            handle("again", 3, worker=False),
            handle("new", 4, worker=False),
            handle("worker", 5, worker=True),
            handle("again", 3, worker=True),
        )

    asyncio.run(serve())
    cold = {each.route: each.count(cold="true") for each in jaxobs.snapshot().routes}
    assert cold == {"first": 1, "again": 0, "new": 1, "worker": 1}


def test_what_compiles_after_the_end_is_no_part_of_the_request() -> None:
    async def serve() -> None:
        async def later() -> None:
            await asyncio.sleep(0.05)
            compiled()

        async with jaxobs.request("predict") as scope:
            task = asyncio.create_task(later())
        await task
        assert not scope.cold

    asyncio.run(serve())
    assert route().requests == {"false": {"ok": 1}}


def test_a_request_inside_another_makes_both_cold_and_is_in_flight_once() -> None:
    with jaxobs.request("http"):
        with jaxobs.request("model"):
            assert jaxobs.snapshot().requests_in_flight == 1
            compiled("g")
        with jaxobs.request("model"):
            pass
    assert jaxobs.snapshot().requests_in_flight == 0
    assert route("http").requests == {"true": {"ok": 1}}
    assert route("model").requests == {"true": {"ok": 1}, "false": {"ok": 1}}


def test_how_a_request_ends_is_counted_and_what_it_raises_goes_on_unchanged() -> None:
    error = KeyError("user's own")
    with pytest.raises(KeyError) as caught, jaxobs.request("predict"):
        raise error
    assert caught.value is error and error.__context__ is None and error.__cause__ is None
    with pytest.raises(asyncio.CancelledError), jaxobs.request("predict"):
        raise asyncio.CancelledError
    with jaxobs.request("predict") as scope:
        scope.outcome = "client_error"
    with jaxobs.request("predict") as scope:
        scope.outcome = "nonsense"
    assert outcomes("predict") == {"error": 1, "cancelled": 1, "client_error": 1, "ok": 1}


def test_a_route_has_the_exception_of_a_late_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text and the line are told, once a second at most. No code of the program makes the text."""
    now = [1000.0]
    monkeypatch.setattr(requests, "perf_counter", lambda: now[0])

    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

    def failure(error: Exception) -> tuple[str, str | None, str]:
        with contextlib.suppress(type(error)), jaxobs.request("predict"):
            raise error
        found = route("predict").failure
        assert found is not None and found.call_site is not None
        return found.error, found.message, found.call_site.partition(":")[0]

    said = f"('user', <{Hostile.__module__}.{Hostile.__qualname__} object>, 7)"
    assert failure(KeyError("user", Hostile(), 7)) == ("KeyError", said, __file__)
    assert failure(ValueError("too soon")) == ("KeyError", said, __file__)
    now[0] += 1.5
    refused = urllib.error.URLError(ConnectionRefusedError(111, "Connection refused"))
    assert failure(refused)[:2] == ("URLError", "<urlopen error [Errno 111] Connection refused>")
    now[0] += 1.5
    with jaxobs.request("predict") as scope:
        scope.outcome = "error"
    assert route("predict").failure is None, "it fails otherwise now"


def test_the_latest_requests_are_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last two minutes, or ten where these have too few, or all the time there is."""
    now = 1000.0
    clock = SimpleNamespace(perf_counter=lambda: now, time=lambda: now)
    monkeypatch.setattr("jaxobs.state.routes.time", clock)
    route = Route("predict", deque())

    def served(seconds: float, requests: int, outcome: str) -> RecentRequests | None:
        nonlocal now
        recent = None
        for _ in range(requests):
            now += seconds / requests
            route.waiting.append((now, 0.1, outcome, "false", None, None, None, None, False, None))
            recent = route.frozen().recent
        return recent

    assert served(20.0, 10, "error") == RecentRequests(seconds=20.0, total=10, failed=10)
    assert served(2000.0, 2000, "ok") == RecentRequests(seconds=120.0, total=120, failed=0)
    assert served(120.0, 60, "error") == RecentRequests(seconds=120.0, total=60, failed=60)
    assert served(600.0, 30, "ok") == RecentRequests(seconds=600.0, total=30, failed=0)
    assert served(9000.0, 9, "ok") == RecentRequests(seconds=11740.0, total=2109, failed=70)


def test_queue_and_batch_are_summed_where_they_are_told() -> None:
    for used in (3, 8):
        with jaxobs.request("predict", queue_seconds=0.25, batch=(used, 8)):
            pass
    with jaxobs.request("predict") as scope:
        scope.batch, scope.queue_seconds = (np.int32(1), np.int32(8)), np.float32(0.5)
    for wrong in ({"batch": 5}, {"batch": (9, 8)}, {"queue_seconds": "long"}, {"queue_seconds": float("nan")}):
        with jaxobs.request("predict", **wrong):  # type: ignore[arg-type]
            pass
    found = route()
    assert (found.queued, found.queue_seconds) == (3, 1.0)
    assert (found.batches, found.batch_used, found.batch_size) == (3, 12, 24)
    assert found.total == 7
    notes = [note for note in jaxobs.snapshot().observer.notes if "valid are seconds" in note]
    assert len(notes) == 4


def test_routes_are_bounded() -> None:
    for n in range(MOST_ROUTES + 5):
        with jaxobs.request(f"/{n}"):
            pass
    with jaxobs.request("/0"):
        pass
    found = {name: each.total for name, each in routes().items()}
    with jaxobs.request(0):  # type: ignore[arg-type]
        pass
    assert len(found) == MOST_ROUTES + 1 and found[OTHER] == 5 and found["/0"] == 2
    assert jaxobs.snapshot().observer.dropped["routes"] == 6  # with the one whose route is no text


def test_cold_requests_are_told_within_bounds() -> None:
    for n in range(MOST_TOLD + 3):
        with jaxobs.request("predict"):
            for each in range(1 + n):
                compiled(f"f{each}")
    found = route()
    assert len(found.latest_cold) == MOST_TOLD
    assert [each.compilations for each in found.latest_cold] == list(range(MOST_TOLD + 3, 3, -1))
    assert len(found.latest_cold[0].compiled) == MOST_COMPILED and found.latest_cold[0].compiled[0].function == "f0"


def test_without_installation_cold_is_unknown() -> None:
    """Nobody saw the compilations, so that it is not said that there were none; a note tells why."""
    jaxobs.uninstall()
    with jaxobs.request("predict"):
        answer(model(), 3)
    assert route().requests == {"unknown": {"ok": 1}}
    assert any("not installed" in note for note in jaxobs.snapshot().observer.notes)


def test_counts_are_exact_under_threads() -> None:
    def ask(n: int) -> None:
        for _ in range(200):
            with jaxobs.request(f"/{n % 2}"):
                pass

    at_once(16, ask)
    snapshot = jaxobs.snapshot()
    assert {name: each.total for name, each in routes().items()} == {"/0": 1600, "/1": 1600}
    assert snapshot.requests_in_flight == 0
    assert all(each.per_second for each in snapshot.routes)


def test_a_request_may_end_in_another_context_or_thread() -> None:
    """As frameworks do that run the two halves of a dependency in two worker threads: it is counted once."""
    scope = jaxobs.request("predict")
    contextvars.copy_context().run(scope.__enter__)
    elsewhere(lambda: scope.__exit__(None, None, None))
    scope.__exit__(None, None, None)
    assert route().requests == {"false": {"ok": 1}} and jaxobs.snapshot().requests_in_flight == 0
    assert "request" not in guard.internal_errors()


def test_a_scope_can_be_used_again_even_inside_itself() -> None:
    scope = jaxobs.request("predict")
    for _ in range(2):
        with scope, scope:
            compiled()
    with jaxobs.request("outer") as outer:
        scope.begin()
        outer.finish()
        outer.begin()
        compiled()
        outer.finish()
        scope.finish()
    assert route().requests == {"true": {"ok": 5}}


def test_the_state_may_be_forgotten_while_a_request_is_under_way() -> None:
    """As in a forked child: the request ends without a trace, the next is counted from nothing."""
    with jaxobs.request("before"):
        store.current().reset()
        store.current().installed = True
    with jaxobs.request("after"):
        compiled()
    assert [each.route for each in jaxobs.snapshot().routes] == ["after"]
    assert route("after").count(cold="true") == 1


def test_metrics_tell_cold_and_steady_apart() -> None:

    with jaxobs.request("predict", queue_seconds=0.5, batch=(3, 4)):
        compiled()
    for _ in range(3):
        with jaxobs.request("predict"):
            pass

    def value(name: str, **labels: str) -> float | None:
        return exposed(name, route="predict", **labels)

    assert value("jax_requests_total", cold="true", outcome="ok") == 1
    assert value("jax_requests_total", cold="false", outcome="ok") == 3
    assert value("jax_request_seconds_count", cold="true") == 1
    assert value("jax_request_seconds_bucket", cold="false", le="+Inf") == 3
    assert value("jax_request_waited_seconds_count") == 0
    assert value("jax_request_queue_seconds_sum") == 0.5
    assert value("jax_request_batch_rows_total", rows="padding") == 1
    assert exposed("jax_requests_in_flight") == 0


def test_percentiles_are_times_that_there_were() -> None:
    found = latency([float(n) for n in range(1, 101)])
    assert found is not None
    assert (found.count, found.p50, found.p90, found.p99, found.longest) == (100, 51.0, 91.0, 100.0, 100.0)
    assert latency([]) is None
    assert covered([(0.0, 4.0), (3.0, 6.0), (8.0, 9.0)], since=1.0) == 6.0
