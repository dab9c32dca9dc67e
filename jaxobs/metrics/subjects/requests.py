"""Served requests."""

from collections import Counter
from collections.abc import Callable, Iterable
from operator import attrgetter

from jaxobs.facts.functions import Histogram
from jaxobs.facts.requests import (
    ENGINE_STATES,
    FINISH_REASONS,
    HTTP_METHODS,
    REQUEST_COLD,
    REQUEST_OUTCOMES,
    STATUS_CLASSES,
    TOKEN_DIRECTIONS,
    RouteState,
)
from jaxobs.metrics.metric import Labels, Metric, Read, Value, per


def _routes(read: Callable[[RouteState], Iterable[tuple[Labels, Value | None]]]) -> Read:
    return per(attrgetter("routes"), attrgetter("route"), read)


def _histogram(name: str, read: Callable[[RouteState], Histogram | None], help: str) -> Metric:
    """Returns the histogram of a figure that requests of a route may report."""
    return Metric(name, help, _routes(lambda r: [((), read(r))]), ("route",), kind="histogram")


def _by_class(route: RouteState) -> Iterable[tuple[Labels, int]]:
    found: Counter[tuple[str, str]] = Counter()
    for each in route.http:
        found[each.method, f"{each.status // 100}xx" if 100 <= each.status < 600 else ""] += sum(each.seconds.counts)
    return found.items()


METRICS = (
    Metric("jax_requests_total",
           ("Completed requests; cold says whether something compiled, or was loaded from the cache, during the "
            "request."),
           _routes(lambda r: [((c, o), n) for c, by_outcome in r.requests.items() for o, n in by_outcome.items()]),
           ("route", "cold", "outcome"), values=(("cold", REQUEST_COLD), ("outcome", REQUEST_OUTCOMES))),
    Metric("jax_http_requests_total",
           "Completed requests of a middleware, by method and status class; the class is empty without an answer.",
           _routes(_by_class), ("route", "method", "status"),
           values=(("method", HTTP_METHODS), ("status", STATUS_CLASSES))),
    Metric("jax_request_seconds", "Time from the start of a request to its last byte.",
           _routes(lambda r: [((c,), h) for c, h in r.seconds.items()]), ("route", "cold"), kind="histogram",
           values=(("cold", REQUEST_COLD),)),
    Metric("jax_request_waited_seconds",
           "Wait of requests that are not cold but were delayed by a compilation elsewhere in the process.",
           _routes(lambda r: [((), (r.waited, r.waited_seconds))]), ("route",), kind="summary"),
    _histogram("jax_request_queue_seconds", lambda r: r.queue,
               "Time that requests spent in a queue, for those that report it."),
    _histogram("jax_request_first_token_seconds", lambda r: r.first_token_seconds,
               "Time from the start of a request to its first output token, for requests that did not fail."),
    _histogram("jax_request_output_token_seconds", lambda r: r.output_token_seconds,
               "Mean time for each output token after the first, one value for each successful request."),
    _histogram("jax_request_inter_token_seconds", lambda r: r.inter_token_seconds,
               "Time between two reports of output tokens, for requests that report them one after another."),
    Metric("jax_request_tokens_total", "Tokens of prompts and generated tokens that requests report, while they run.",
           _routes(
               lambda r: [(("input",), r.input_tokens), (("output",), r.output_tokens)]
               if r.input_tokens or r.output_tokens else []
           ),
           ("route", "direction"), values=(("direction", TOKEN_DIRECTIONS),)),
    Metric("jax_request_finish_reasons_total",
           "Completed requests by the reason why the generation ended, for those that report it.",
           _routes(lambda r: [((reason,), n) for reason, n in r.finish_reasons.items()]), ("route", "reason"),
           values=(("reason", FINISH_REASONS),)),
    _histogram("jax_request_batch_size", lambda r: r.batch_sizes,
               "Rows in use in the batch of a request, for requests that report it."),
    Metric("jax_request_batch_rows_total",
           "Rows in the batches of requests that report them: those in use, and the rest.",
           _routes(
               lambda r: [(("used",), r.batch_used), (("padding",), max(0, r.batch_size - r.batch_used))]
               if r.batches else []
           ),
           ("route", "rows"), values=(("rows", ("used", "padding")),)),
    Metric("jax_requests_in_flight", "Requests that have started and not ended.",
           lambda s: [] if s.requests_in_flight is None else [((), s.requests_in_flight)]),
    Metric("jax_engine_requests",
           "Requests in the batch of an inference engine, and those waiting for a place in it, as the engine reports.",
           lambda s: [
               ((each.engine, state), number)
               for each in s.engines
               for state, number in (("running", each.running), ("waiting", each.waiting)) if number is not None
           ],
           ("engine", "state"), values=(("state", ENGINE_STATES),)),
    Metric("jax_engine_kv_cache_ratio",
           "Share of an inference engine's key-value cache that is in use, as the engine reports it.",
           lambda s: [((each.engine,), each.kv_cache_ratio) for each in s.engines if each.kv_cache_ratio is not None],
           ("engine",)),
)  # fmt: skip
