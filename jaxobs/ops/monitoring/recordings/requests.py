"""How long requests wait before they begin, against what they take."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Group, Recording

_QUEUE = "job_instance_route:jax_request_queue_seconds:mean15m"
_ALL = "job_instance_route:jax_request_seconds:mean15m"

GROUP = Group(
    name="requests",
    rules=(
        Recording(
            name=_QUEUE,
            expr=(
                "rate(jax_request_queue_seconds_sum{@}[15m])\n"
                "/ (rate(jax_request_queue_seconds_count{@}[15m]) > 0)"
            ),
            why="For JaxRequestQueueing: how long a request waited in a queue, for requests that report it.",
        ),
        Recording(
            name=_ALL,
            expr="mean_of(jax_request_seconds{@}[15m], job, instance, route)",
            why="For the next one: how long a request took, from its start.",
        ),
        Recording(
            name="job_instance_route:jax_request_queue:ratio15m",
            expr=f"{_QUEUE}{{@}} / ({_QUEUE}{{@}} + {_ALL}{{@}} > 0)",
            why="For JaxRequestQueueing: the share of the caller's waiting time that was spent in the queue.",
        ),
    ),
)  # fmt: skip
