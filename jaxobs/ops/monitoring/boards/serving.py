"""Serving: what the callers of a model server wait for, and what its engine does meanwhile."""

from __future__ import annotations

from jaxobs.ops.monitoring.panel_queries import highest, share
from jaxobs.ops.monitoring.panel_types import Annotation, Board, Panel, Row, Target, Variable

_ROUTE = 'route=~"$route"'
_BY = "job, route"
_PERCENTILES = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))


def _percentiles(metric: str) -> tuple[Target, ...]:
    """Percentiles over all processes together: buckets may be added up, percentiles may not."""
    return tuple(
        Target(
            expr=highest(f"quantile_of({quantile}, {metric}{{@, {_ROUTE}}}, {_BY})"),
            legend=f"{{{{job}}}} {{{{route}}}} {name}",
        )
        for quantile, name in _PERCENTILES
    )


def _rate(counter: str, by: str) -> str:
    return f"sum by ({by}) (rate({counter}[$__rate_interval]))"


_REQUESTS = f"jax_requests_total{{@, {_ROUTE}}}"
_ERRORS = f'jax_requests_total{{@, {_ROUTE}, outcome="error"}}'
_COLD = f'jax_requests_total{{@, {_ROUTE}, cold="true"}}'
_KNOWN = f'jax_requests_total{{@, {_ROUTE}, cold=~"true|false"}}'
_ROWS = f"jax_request_batch_rows_total{{@, {_ROUTE}}}"
_USED = f'jax_request_batch_rows_total{{@, {_ROUTE}, rows="used"}}'

_LATENCY = Row(
    title="What callers wait for",
    panels=(
        Panel(
            key="first_token",
            title="Time to the first token",
            description=(
                "From the start of a request to its first output token, over all processes: the time in the queue "
                "(if the request is open by then), the prompt, and a compilation in cold requests. It rises first "
                "when the server has too much to do. Failed requests are left out."
            ),
            kind="timeseries", unit="s", width=8, needs="generation", good="low", least=0,
            targets=_percentiles("jax_request_first_token_seconds"),
        ),
        Panel(
            key="output_token",
            title="Time per output token",
            description=(
                "The mean time for each output token of a request after the first one. Larger batches raise it. "
                "People read at about 50 ms a token."
            ),
            kind="timeseries", unit="s", width=8, needs="generation", good="low", least=0,
            targets=_percentiles("jax_request_output_token_seconds"),
        ),
        Panel(
            key="latency",
            title="Latency of requests, end to end",
            description=(
                "From the start of a request to its last byte, whatever its outcome. The latency of text depends on "
                "how long it is: read it together with the tokens per request."
            ),
            kind="timeseries", unit="s", width=8, needs="serving", good="low", least=0,
            targets=_percentiles("jax_request_seconds"),
        ),
        Panel(
            key="inter_token",
            title="Time between tokens",
            description=(
                "From one output token to the next, for requests that report each. A p99 far above the p50 is a "
                "stream that stops now and then: for the prompt of another request, or a compilation."
            ),
            kind="timeseries", unit="s", width=8, needs="generation", good="low", least=0,
            targets=_percentiles("jax_request_inter_token_seconds"),
        ),
        Panel(
            key="first_token_heatmap",
            title="Times to the first token",
            description=(
                "How many requests waited how long for their first token. A second band above the first one means "
                "that some wait for something else: a place in the batch, a long prompt, a compilation."
            ),
            kind="heatmap", unit="s", width=8, needs="generation", good="none",
            targets=(
                Target(expr=f"buckets_of(jax_request_first_token_seconds{{@, {_ROUTE}}})", legend="{{le}}"),
            ),
        ),
        Panel(
            key="queue",
            title="Time in the queue",
            description=(
                "How long requests waited before they were computed, for those that report it. If it rises with the "
                "time to the first token, the server needs replicas; if it does not, prompts got longer."
            ),
            kind="timeseries", alert="JaxRequestQueueing", unit="s", width=8, needs="generation", good="low", least=0,
            targets=(
                *_percentiles("jax_request_queue_seconds"),
                Target(
                    expr=highest(f"job_instance_route:jax_request_queue_seconds:mean15m{{@, {_ROUTE}}}"),
                    legend="{{instance}} {{route}} mean, last 15 min",
                ),
            ),
        ),
    ),
)  # fmt: skip

_OUTCOMES = Row(
    title="Requests",
    panels=(
        Panel(
            key="requests",
            title="Requests per second",
            description="Completed requests, by outcome. Cancelled means that the client disconnected.",
            kind="timeseries", unit="reqps", width=6, needs="serving", good="none", least=0, stacked=True,
            colors={"ok": "green", "client_error": "yellow", "error": "red", "cancelled": "gray"},
            targets=(Target(expr=_rate(_REQUESTS, "outcome"), legend="{{outcome}}"),),
        ),
        Panel(
            key="errors",
            title="Requests that failed",
            description="Share of each route's requests that ended with a service error.",
            kind="timeseries", unit="percentunit", width=6, needs="serving", good="low", least=0,
            targets=(Target(expr=highest(share(_ERRORS, _REQUESTS, _BY)), legend="{{job}} {{route}}"),),
        ),
        Panel(
            key="finish_reasons",
            title="Why generations ended",
            description=(
                "Generations per second by the reason why they ended, for requests that report it. `length` means "
                "cut off at the limit: if its share grows, answers are incomplete."
            ),
            kind="timeseries", unit="reqps", width=6, needs="generation", good="none", least=0, stacked=True,
            colors={"stop": "green", "length": "yellow", "abort": "gray", "error": "red"},
            targets=(
                Target(
                    expr=_rate(f"jax_request_finish_reasons_total{{@, {_ROUTE}}}", "reason"), legend="{{reason}}"
                ),
            ),
        ),
        Panel(
            key="in_flight",
            title="Requests in flight",
            description="Requests that have started and not ended, by process: the busiest twenty.",
            kind="timeseries", unit="short", width=6, needs="serving", good="none", least=0,
            targets=(Target(expr=highest("jax_requests_in_flight{@}"), legend="{{instance}}"),),
        ),
    ),
)  # fmt: skip

_ENGINE = Row(
    title="Throughput and engine",
    panels=(
        Panel(
            key="tokens",
            title="Tokens per second",
            description=(
                "Tokens of prompts (input) and generated tokens (output) of all processes. Counted while requests "
                "run, if the program reports each token."
            ),
            kind="timeseries", unit="cps", width=8, needs="generation", good="high", least=0,
            targets=(
                Target(expr=_rate(f"jax_request_tokens_total{{@, {_ROUTE}}}", "direction"), legend="{{direction}}"),
            ),
        ),
        Panel(
            key="tokens_per_request",
            title="Tokens per request",
            description=(
                "Mean length of prompts and answers. Longer prompts raise the time to the first token, longer "
                "answers the latency, without anything being wrong."
            ),
            kind="timeseries", unit="short", width=8, needs="generation", good="none", least=0,
            targets=(
                Target(
                    expr=(
                        f"{_rate(f'jax_request_tokens_total{{@, {_ROUTE}}}', 'job, route, direction')}\n"
                        "/ on (job, route) group_left ()\n"
                        f"({_rate(_REQUESTS, _BY)} > 0)"
                    ),
                    legend="{{job}} {{route}} {{direction}}",
                ),
            ),
        ),
        Panel(
            key="running_and_waiting",
            title="Requests running and waiting",
            description=(
                "Requests in the batch of each engine, and those waiting for a place in it, as the engine reports "
                "them. A queue that only grows needs more replicas."
            ),
            kind="timeseries", unit="short", width=8, needs="generation", good="none", least=0,
            targets=(
                Target(
                    expr=highest("sum by (instance, engine, state) (jax_engine_requests{@})"),
                    legend="{{instance}} {{engine}} {{state}}",
                ),
            ),
        ),
        Panel(
            key="kv_cache",
            title="KV cache in use",
            description=(
                "Share of each engine's key-value cache that is in use. When it is full, requests wait, or are "
                "preempted and computed again."
            ),
            kind="timeseries", unit="percentunit", width=8, needs="generation", good="low", least=0, most=1,
            targets=(
                Target(expr=highest("jax_engine_kv_cache_ratio{@}"), legend="{{instance}} {{engine}}"),
            ),
        ),
        Panel(
            key="batch_size",
            title="Batch size",
            description=(
                "Rows in use in the batches of requests that report them. Small batches use a device badly; large "
                "ones make each token slower."
            ),
            kind="timeseries", unit="short", width=8, needs="generation", good="none", least=0,
            targets=_percentiles("jax_request_batch_size"),
        ),
        Panel(
            key="batch_fill",
            title="How full the batches are",
            description="Share of the batches' rows that is in use; the rest is padding, computed for nothing.",
            kind="timeseries", unit="percentunit", width=8, needs="generation", good="high", least=0, most=1,
            targets=(Target(expr=highest(share(_USED, _ROWS, _BY)), legend="{{job}} {{route}}"),),
        ),
    ),
)  # fmt: skip

_COMPILATIONS = Row(
    title="Compilations that callers wait for",
    panels=(
        Panel(
            key="cold_share",
            title="Cold requests",
            description=(
                "Share of each route's requests during which something compiled or was loaded from the cache. Should "
                "be 0 after the warm-up."
            ),
            kind="timeseries", unit="percentunit", width=8, needs="serving", good="low", least=0,
            targets=(Target(expr=highest(share(_COLD, _KNOWN, _BY)), legend="{{job}} {{route}}"),),
        ),
        Panel(
            key="cold_and_warm",
            title="Latency of cold and of warm requests",
            description=(
                "The median latency of requests that compiled something, and of the others. The distance between "
                "both is what warming up would save."
            ),
            kind="timeseries", unit="s", width=8, needs="serving", good="low", least=0,
            targets=(
                Target(
                    expr=highest(f"quantile_of(0.5, jax_request_seconds{{@, {_ROUTE}}}, route, cold)"),
                    legend="{{route}} cold={{cold}}",
                ),
            ),
        ),
        Panel(
            key="delayed",
            title="Requests delayed by a compilation elsewhere",
            description=(
                "Warm requests per second that waited while another request, or the program itself, compiled."
            ),
            kind="timeseries", unit="reqps", width=8, needs="serving", good="low", least=0,
            targets=(
                Target(
                    expr=highest(_rate(f"jax_request_waited_seconds_count{{@, {_ROUTE}}}", _BY)),
                    legend="{{job}} {{route}}",
                ),
            ),
        ),
    ),
)  # fmt: skip

BOARD = Board(
    name="serving",
    title="JAX: serving",
    description=(
        "What the callers of a model server wait for, first token, each token, the whole answer, and what its engine "
        "does: queue, batch, KV cache, tokens."
    ),
    variables=(Variable(name="route", label="Route", query="label_values(jax_requests_total{@}, route)"),),
    annotations=(
        Annotation(
            name="Process starts", expr="max by (job) (jax_process_start_timestamp_seconds{@}) * 1000",
            title="{{job}}: a process started", color="blue", value_is_time=True,
        ),
    ),
    rows=(_LATENCY, _OUTCOMES, _ENGINE, _COMPILATIONS),
)  # fmt: skip
