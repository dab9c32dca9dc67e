"""The requests of this process by route: what ended is appended on the request's thread, and counted a batch at a time.

A request is cold when something compiled inside it. One that compiled nothing may yet have been held up by a
compilation elsewhere: JAX lets a second caller of a program that is being compiled wait without a word, so that this
is inferred from the times (`RouteState.waited`).
"""

import functools
import heapq
import itertools
import math
import operator
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, NamedTuple, cast

from jaxobs.base import threads
from jaxobs.facts.compilations import OTHER, Compilation
from jaxobs.facts.requests import (
    EngineState,
    HttpRequests,
    Latency,
    RecentRequests,
    RequestCompilation,
    RequestFailure,
    RequestRecord,
    RouteState,
)
from jaxobs.metrics.buckets import BATCH_BOUNDS, HTTP_BOUNDS, QUEUE_BOUNDS, REQUEST_BOUNDS
from jaxobs.state.call_stats import MutableHistogram, label
from jaxobs.state.generations import Generation, Generations
from jaxobs.state.lately import Lately

MOST_ROUTES = 20
MOST_HTTP = 32
"""Methods, schemes and statuses of each route that have figures of their own; later ones count by class of status."""
MOST_RECENT = 512
"""Requests of each route that percentiles and rate rest on."""
MOST_COLD = 128
"""Cold requests of each route that their percentiles rest on."""
MOST_TOLD = 8
"""Cold requests, and slow ones, of each route that are reported one by one."""
MOST_COMPILED = 8
"""Compilations of one request that are reported."""
MOST_WAITING = 64
"""Requests that wait to be counted; the one that makes them so many counts them."""
MOST_INTERVALS = 256
RATE_SECONDS = 60.0
WINDOWS, ENOUGH = (120.0, 600.0), 20
"""Seconds of the shorter windows of `RouteState.recent`, and requests that suffice in one."""
HELD_UP_SHARE = 0.5
HELD_UP_FACTOR = 2.0
KNOWN_REQUESTS = 20
"""Steady requests from which on it is known how long a route usually takes."""

Interval = tuple[float, float]

open_request: ContextVar[Any] = ContextVar("jaxobs_request", default=None)
"""The request that is served in this context."""


class Ended(NamedTuple):
    """A request that has ended."""

    ended: float
    """By `time.perf_counter`."""
    seconds: float
    outcome: str
    cold: str
    queue_seconds: float | None = None
    batch: tuple[int, int] | None = None
    compiled: tuple[int, tuple[Compilation, ...]] | None = None
    """How many executables it brought, and the first of them; None if none."""
    generation: Generation | None = None
    waited: bool = False
    http: tuple[str, str, int] | None = None
    """Method, scheme and status."""


Fields = tuple[
    float, float, str, str, float | None, tuple[int, int] | None, tuple[int, tuple[Compilation, ...]] | None,
    Generation | None, bool, tuple[str, str, int] | None,
]  # fmt: skip
"""The fields of an `Ended`: a plain tuple costs the request a fifth of what a named one does."""
_named = functools.partial(tuple.__new__, Ended)


class Route:
    """Requests of one route. The hot path appends to `waiting`: exact under threads, since that is atomic."""

    def __init__(self, name: str, intervals: deque[Interval]) -> None:
        self.name = name
        self._intervals = intervals
        self._lock = threads.RLock()
        self.waiting: list[Fields] = []
        """Requests that have ended and are still to be counted."""
        self._since = time.perf_counter()
        self._totals = Lately(self._since)
        self._requests: dict[str, Counter[str]] = {}
        self._http: dict[tuple[str, str, int], MutableHistogram] = {}
        self._seconds: dict[str, MutableHistogram] = {}
        self._recent: deque[Fields] = deque(maxlen=MOST_RECENT)
        self._cold: deque[Ended] = deque(maxlen=MOST_COLD)
        self._waited = MutableHistogram(())
        self._queue = MutableHistogram(QUEUE_BOUNDS)
        self._batches = MutableHistogram(BATCH_BOUNDS)
        self._batch_size = 0
        self.generations = Generations()
        self.failure: RequestFailure | None = None
        """As in `RouteState`."""
        self.told_until = -math.inf
        """Time by `time.perf_counter` until which no further exception is reported: a request pays for its text."""

    def drain(self) -> None:
        """Counts the requests that wait for it, a field of all of them at a time."""
        with self._lock:
            waiting = self.waiting[:]
            del self.waiting[: len(waiting)]
            if not waiting:
                return
            ended, seconds, outcomes, colds, queued, batches, compiled, generations, _, web = zip(*waiting, strict=True)
            for (cold, outcome), requests in Counter(zip(colds, outcomes, strict=True)).items():
                if cold not in self._requests:
                    self._requests[cold], self._seconds[cold] = Counter(), MutableHistogram(REQUEST_BOUNDS)
                self._requests[cold][outcome] += requests
            if colds.count(colds[0]) == len(colds):
                self._seconds[colds[0]].observe_all(seconds)
            else:
                for cold, took in zip(colds, seconds, strict=True):
                    self._seconds[cold].observe(took)
            for kind, took in zip(web, seconds, strict=True):
                if kind is not None:
                    if kind not in self._http and len(self._http) >= MOST_HTTP:
                        kind = "_OTHER", "http", kind[2] // 100 * 100
                    self._http.setdefault(kind, MutableHistogram(HTTP_BOUNDS)).observe(took)
            self._queue.observe_all([wait for wait in queued if wait is not None])
            for batch in filter(None, batches):
                self._batches.observe(batch[0])
                self._batch_size += batch[1]
            if any(generations):
                for at, generation in enumerate(generations):
                    if generation is not None:
                        self.generations.ended(ended[at] - seconds[at], ended[at], outcomes[at], generation)
            compiled_at = self._intervals[-1][1] if self._intervals else -math.inf
            if any(compiled) or min(ended) - max(seconds) < compiled_at:
                for record in map(_named, waiting):
                    self._take(record, compiled_at)
            else:
                self._recent.extend(waiting)

    def _take(self, record: Ended, compiled_at: float) -> None:
        """Takes in a request around the latest compilation."""
        if record.compiled:
            self._cold.append(record)
        elif record.ended - record.seconds < compiled_at and self._held_up(record):
            record = record._replace(waited=True)
            self._waited.observe(record.seconds)
        self._recent.append(record)

    def _latest(self) -> deque[Ended]:
        """Returns the recent requests, with names for their fields from now on."""
        recent = deque((each if type(each) is Ended else _named(each) for each in self._recent), MOST_RECENT)
        self._recent = cast("deque[Fields]", recent)
        return recent

    def _held_up(self, each: Ended) -> bool:
        """Whether compilations elsewhere took most of its time, and it far longer than its route usually takes."""
        began, intervals = each.ended - each.seconds, tuple(self._intervals)
        overlap = covered([interval for interval in intervals if began < interval[1] < each.ended], began)
        if overlap <= HELD_UP_SHARE * each.seconds:
            return False
        usual = sorted(other.seconds for other in self._latest() if not other.compiled and not other.waited)
        return len(usual) < KNOWN_REQUESTS or each.seconds >= HELD_UP_FACTOR * usual[len(usual) // 2]

    def frozen(self) -> RouteState:
        """How it stands."""
        self.drain()
        now, wall = time.perf_counter(), time.time()
        with self._lock:
            steady = [each for each in self._latest() if not each.compiled]
            generations = self.generations
            first_token_seconds, output_token_seconds, inter_token_seconds = generations.histograms()
            return RouteState(
                route=self.name, recent=self._counts(now),
                requests={cold: dict(by_outcome) for cold, by_outcome in self._requests.items()},
                seconds={cold: histogram.frozen() for cold, histogram in self._seconds.items()},
                http=tuple(HttpRequests(*kind, histogram.frozen()) for kind, histogram in self._http.items()),
                failure=self.failure, waited=sum(self._waited.counts), waited_seconds=self._waited.sum,
                per_second=self._rate(now),
                warm=latency([each.seconds for each in steady if not each.waited]),
                cold=latency([each.seconds for each in self._cold]), queued=(queued := sum(self._queue.counts)),
                queue_seconds=self._queue.sum, queue=self._queue.frozen() if queued else None,
                batches=(batches := sum(self._batches.counts)), batch_used=round(self._batches.sum),
                batch_size=self._batch_size, batch_sizes=self._batches.frozen() if batches else None,
                input_tokens=generations.input, output_tokens=generations.output,
                output_tokens_per_second=self._token_rate(now), finish_reasons=dict(generations.finish_reasons),
                first_token_seconds=first_token_seconds, output_token_seconds=output_token_seconds,
                inter_token_seconds=inter_token_seconds, request_tokens=generations.request_tokens(),
                first_token=latency(self._of_tokens(lambda told, began, _: told.until_first_token(began))),
                output_token=latency(self._of_tokens(Generation.for_each_token)),
                latest_cold=_told(reversed([*self._cold][-MOST_TOLD:]), wall - now),
                slowest=_told(heapq.nlargest(MOST_TOLD, steady, key=lambda each: each.seconds), wall - now),
            )  # fmt: skip

    def _counts(self, now: float) -> RecentRequests:
        total = sum(each.total() for each in self._requests.values())
        totals = {"total": total, "failed": sum(each["error"] for each in self._requests.values())}
        windows = [self._totals.added(now, totals, seconds) for seconds in WINDOWS]
        short = [each for each in windows if each[1]["total"] >= ENOUGH]
        length, counts = short[0] if short else (now - self._since, totals)
        return RecentRequests(seconds=length, total=round(counts["total"]), failed=round(counts["failed"]))

    def cold_since(self, ended: float) -> list[Ended]:
        """The cold requests that ended after that, by `time.perf_counter`, as far as they are kept."""
        self.drain()
        with self._lock:
            return [each for each in self._cold if each.ended > ended]

    def _rate(self, now: float) -> float | None:
        ended, since = self._lately(now)
        return len(ended) / since if since > 0 else None

    def _token_rate(self, now: float) -> float | None:
        ended, since = self._lately(now)
        told = [each.generation.output for each in ended if each.generation is not None and each.generation.output]
        return sum(told) / since if since > 0 and (told or self.generations.output) else None

    def _lately(self, now: float) -> tuple[list[Ended], float]:
        """Requests of the last minute, as far as they are kept, and the seconds that these are of."""
        ended = [each for each in self._latest() if now - each.ended <= RATE_SECONDS]
        full = len(ended) == MOST_RECENT
        return ended, now - min(each.ended for each in ended) if full else min(RATE_SECONDS, now - self._since)

    def _of_tokens(self, read: Callable[[Generation, float, float], float | None]) -> list[float]:
        """Returns one figure of the latest successful requests that have it."""
        found = (
            read(each.generation, each.ended - each.seconds, each.ended)
            for each in self._latest() if each.generation is not None and each.outcome == "ok"
        )  # fmt: skip
        return [seconds for seconds in found if seconds is not None]


class Routes:
    """All routes, and how many requests are under way."""

    def __init__(self) -> None:
        self._lock = threads.RLock()
        self.known: dict[str, Route] = {}
        """Routes by name; `<other>` stands for all that are too many."""
        self._intervals: deque[Interval] = deque(maxlen=MOST_INTERVALS)
        self._begun, self._ended = _Tally(), _Tally()
        self.begun = self._begun.add
        """Takes in that a request begins."""
        self.ended = self._ended.add
        """Takes in that a request which had begun ends."""
        self.engines = Engines()

    def compiled(self, began: float, ended: float) -> None:
        """Something compiled in this process, whoever asked for it."""
        self._intervals.append((began, ended))

    def route(self, name: str) -> Route:
        """The route of that name; `<other>` where there are too many."""
        found = self.known.get(name)
        return found if found is not None else self._new(label(str(name)))

    def _new(self, name: str) -> Route:
        with self._lock:
            if name not in self.known and len(self.known) - (OTHER in self.known) >= MOST_ROUTES:
                name = OTHER
            if name not in self.known:
                self.known[name] = Route(name, self._intervals)
            return self.known[name]

    def cold_since(self, ended: float) -> list[tuple[str, Ended]]:
        """The cold requests that ended after that, by `time.perf_counter`, each with its route; the earliest first."""
        with self._lock:
            routes = list(self.known.values())
        found = [(route.name, each) for route in routes for each in route.cold_since(ended)]
        return sorted(found, key=lambda each: each[1].ended)

    def in_flight(self) -> int | None:
        """Requests that have begun and not ended; None before the first."""
        # Read in this order: one that ends between the two would else be missing from both.
        ended = self._ended.count
        begun = self._begun.count
        return max(0, begun - ended) if begun else None

    def frozen(self) -> tuple[RouteState, ...]:
        """The routes in the order in which they were first asked for."""
        with self._lock:
            routes = list(self.known.values())
        return tuple(route.frozen() for route in routes)


class _Tally:
    """Counts exactly under threads, without a lock: one step of an iterator in C."""

    __slots__ = ("_left", "add")

    def __init__(self) -> None:
        self._left = itertools.repeat(None, sys.maxsize)
        self.add = self._left.__next__

    @property
    def count(self) -> int:
        return sys.maxsize - operator.length_hint(self._left)


def covered(intervals: Iterable[Interval], since: float) -> float:
    """Seconds that lie in any of the intervals and after `since`; where intervals overlap they count once."""
    total = 0.0
    for began, ended in sorted(intervals):
        total += max(0.0, ended - max(began, since))
        since = max(since, ended)
    return total


def latency(seconds: list[float]) -> Latency | None:
    """Percentiles by nearest rank: each is the time of a request that there was. None of nothing."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    last = len(ordered) - 1
    p50, p90, p99 = (ordered[min(last, int(share * len(ordered)))] for share in (0.5, 0.9, 0.99))
    return Latency(count=len(ordered), p50=p50, p90=p90, p99=p99, longest=ordered[-1])


def _told(requests: Iterable[Ended], to_epoch: float) -> tuple[RequestRecord, ...]:
    return tuple(_record(each, to_epoch) for each in requests)


def _record(each: Ended, to_epoch: float) -> RequestRecord:
    compilations, compiled = each.compiled or (0, ())
    generation = each.generation or Generation()
    return RequestRecord(
        time=each.ended + to_epoch, seconds=each.seconds, outcome=each.outcome, cold=each.cold, waited=each.waited,
        queue_seconds=each.queue_seconds, first_token_seconds=generation.until_first_token(each.ended - each.seconds),
        input_tokens=generation.input or None, output_tokens=generation.output or None, finish_reason=generation.reason,
        compilations=compilations, compiled=tuple(_short(event) for event in compiled),
    )  # fmt: skip


def _short(event: Compilation) -> RequestCompilation:
    return RequestCompilation(
        function=event.function,
        cause=event.cause,
        reason=event.reason,
        cache=event.cache,
        seconds=sum(event.phases.values()),
    )


MOST_ENGINES = 8


class Engines:
    """The engines of this process, by name."""

    def __init__(self) -> None:
        self._lock = threads.RLock()
        self._engines: dict[str, EngineState] = {}

    def report(self, name: str, running: int | None, waiting: int | None, kv_cache: float | None) -> bool:
        """Takes what is not None; False where there are too many engines for another."""
        name = label(name)
        with self._lock:
            known = self._engines.get(name)
            if known is None:
                if len(self._engines) >= MOST_ENGINES:
                    return False
                known = EngineState(engine=name)
            self._engines[name] = EngineState(
                engine=name,
                running=known.running if running is None else running,
                waiting=known.waiting if waiting is None else waiting,
                kv_cache_ratio=known.kv_cache_ratio if kv_cache is None else kv_cache,
            )
        return True

    def frozen(self) -> tuple[EngineState, ...]:
        """In the order in which they first reported."""
        with self._lock:
            return tuple(self._engines.values())
