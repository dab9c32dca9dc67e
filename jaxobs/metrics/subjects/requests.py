"""Served requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

from jaxobs.facts.histograms import Histogram
from jaxobs.facts.requests import (
    ENGINE_STATES,
    FINISH_REASONS,
    REQUEST_COLD,
    REQUEST_OUTCOMES,
    TOKEN_DIRECTIONS,
    RouteState,
)
from jaxobs.metrics.metric import Labels, Metric, Read, Value, per


def _routes(read: Callable[[RouteState], Iterable[tuple[Labels, Value | None]]]) -> Read:
    return per(attrgetter("routes"), attrgetter("route"), read)


def _histogram(name: str, read: Callable[[RouteState], Histogram | None], help: str, unit: str = "seconds") -> Metric:
    """Returns the histogram of a figure that requests of a route may report."""
    return Metric(
        name=name, kind="histogram", labels=("route",), unit=unit, read=_routes(lambda r: [((), read(r))]), help=help
    )


METRICS = (
    Metric(
        name="jax_requests_total", kind="counter", labels=("route", "cold", "outcome"),
        values=(("cold", REQUEST_COLD), ("outcome", REQUEST_OUTCOMES)),
        read=_routes(
            lambda r: [((c, o), n) for c, by_outcome in r.requests.items() for o, n in by_outcome.items()]
        ),
        help=("Completed requests; cold says whether something compiled, or was loaded from the "
             "cache, during the request."),
    ),
    Metric(
        name="jax_request_seconds", kind="histogram", labels=("route", "cold"), unit="seconds",
        values=(("cold", REQUEST_COLD),), read=_routes(lambda r: [((c,), h) for c, h in r.seconds.items()]),
        help="Time from the start of a request to its last byte.",
    ),
    Metric(
        name="jax_request_waited_seconds", kind="summary", labels=("route",), unit="seconds",
        read=_routes(lambda r: [((), (r.waited, r.waited_seconds))]),
        help="Requests that are not cold but were delayed by a compilation elsewhere in the process.",
    ),
    _histogram("jax_request_queue_seconds", lambda r: r.queue,
               "Time that requests spent in a queue, for those that report it."),
    _histogram("jax_request_first_token_seconds", lambda r: r.first_token_seconds,
               "Time from the start of a request to its first output token, for requests that did not fail."),
    _histogram("jax_request_output_token_seconds", lambda r: r.output_token_seconds,
               "Mean time for each output token after the first, one value for each successful request."),
    _histogram("jax_request_inter_token_seconds", lambda r: r.inter_token_seconds,
               "Time between two reports of output tokens, for requests that report them one after another."),
    Metric(
        name="jax_request_tokens_total", kind="counter", labels=("route", "direction"),
        values=(("direction", TOKEN_DIRECTIONS),),
        read=_routes(
            lambda r: [(("input",), r.input_tokens), (("output",), r.output_tokens)]
            if r.input_tokens or r.output_tokens else []
        ),
        help="Tokens of prompts and generated tokens that requests report, while they run.",
    ),
    Metric(
        name="jax_request_finish_reasons_total", kind="counter", labels=("route", "reason"),
        values=(("reason", FINISH_REASONS),),
        read=_routes(lambda r: [((reason,), n) for reason, n in r.finish_reasons.items()]),
        help="Completed requests by the reason why the generation ended, for those that report it.",
    ),
    _histogram("jax_request_batch_size", lambda r: r.batch_sizes,
               "Rows in use in the batch of a request, for requests that report it.", unit=""),
    Metric(
        name="jax_request_batch_rows_total", kind="counter", labels=("route", "rows"),
        values=(("rows", ("used", "padding")),),
        read=_routes(
            lambda r: [(("used",), r.batch_used), (("padding",), max(0, r.batch_size - r.batch_used))]
            if r.batches else []
        ),
        help="Rows in the batches of requests that report them: those in use, and the rest.",
    ),
    Metric(
        name="jax_requests_in_flight", kind="gauge",
        read=lambda s: [] if s.requests_in_flight is None else [((), s.requests_in_flight)],
        help="Requests that have started and not ended.",
    ),
    Metric(
        name="jax_engine_requests", kind="gauge", labels=("engine", "state"), values=(("state", ENGINE_STATES),),
        read=lambda s: [
            ((each.engine, state), number)
            for each in s.engines
            for state, number in (("running", each.running), ("waiting", each.waiting)) if number is not None
        ],
        help="Requests in the batch of an inference engine, and those waiting for a place in it, as it reports them.",
    ),
    Metric(
        name="jax_engine_kv_cache_ratio", kind="gauge", labels=("engine",), unit="ratio",
        read=lambda s: [((each.engine,), each.kv_cache_ratio) for each in s.engines if each.kv_cache_ratio is not None],
        help="Share of an inference engine's key-value cache that is in use, as it reports it.",
    ),
)  # fmt: skip
