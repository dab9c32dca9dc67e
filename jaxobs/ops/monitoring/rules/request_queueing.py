"""Requests that wait in a queue for longer than they take."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_WHOSE = 'job="serve", instance="a:9464", route="predict"'
_LABELS = {"job": "serve", "instance": "a:9464", "route": "predict"}


def _requests(queue: str, taken: str, count: str = "0+64x120") -> dict[str, str]:
    """64 requests a minute; seconds in the queue, and in work."""
    return {
        f"jax_request_queue_seconds_sum{{{_WHOSE}}}": queue,
        f"jax_request_queue_seconds_count{{{_WHOSE}}}": count,
        f'jax_request_seconds_sum{{{_WHOSE}, cold="false"}}': taken,
        f'jax_request_seconds_count{{{_WHOSE}, cold="false"}}': count,
    }


ALERT = Alert(
    name="JaxRequestQueueing",
    severity="warning",
    concern="saturation",
    summary="Requests wait in a queue longer than they take.",
    description=(
        "Requests of {{ $labels.route }} on {{ $labels.instance }} ({{ $labels.job }}) wait {{ "
        "$value | humanizeDuration }} in a queue, longer than their work takes."
    ),
    expr=(
        "job_instance_route:jax_request_queue_seconds:mean15m{@} > <seconds>\n"
        "and\n"
        "job_instance_route:jax_request_queue:ratio15m{@} > <share>"
    ),
    for_="10m",
    keep_firing_for="10m",
    thresholds={
        "seconds": Threshold(
            value=0.1, unit="seconds", least=0, most=86_400,
            why="A batch needs shorter waits to fill, and no caller notices them.",
        ),
        "share": Threshold(
            value=0.5, unit="ratio", least=0.01, most=1,
            why="Half of the time that a caller waits: the queue, not the model, decides the latency.",
        ),
    },
    panel=("serving", "queue"),
    runbook=Runbook(
        meaning=(
            "Over a quarter of an hour, the mean request waited more than `<seconds>` in the queue "
            "before it started, which was more than `<share>` of its caller's total wait. Only "
            "requests that report their queue time count."
        ),
        impact=(
            "Callers wait; if the queue is bounded, requests are rejected next. A growing queue does "
            "not shrink by itself."
        ),
        diagnosis=(
            Step(
                do="See whether all replicas queue.",
                query="job_instance_route:jax_request_queue_seconds:mean15m{@}",
                answers=(
                    ("one", "Its device is slow, or the load balancer is unfair."),
                    ("all", "Too few replicas, or each got slower: continue."),
                ),
            ),
            Step(
                do="See whether the load rose, or each request takes longer.",
                query='sum by (job) (rate(jax_requests_total{@}[5m]))',
                answers=(
                    ("higher than at the same hour on other days", "Load: add replicas."),
                    ("at its normal level", "Requests take longer: see compilations and devices."),
                ),
            ),
            Step(
                do="See whether compilations delay requests.",
                query='sum by (job, instance, route) (rate(jax_requests_total{@, cold="true"}[15m]))',
                answers=(
                    ("above 0", "JaxColdRequestsHigh: each compilation delays the whole queue."),
                    ("0", "The model, its batches or the device."),
                ),
            ),
            Step(
                do="See how full batches are.",
                query='sum by (job, rows) (rate(jax_request_batch_rows_total{@}[15m]))',
                answers=(
                    ("much `padding`", "Batches are dispatched too early, or the buckets are too coarse."),
                    ("nearly none", "The device is at its limit: add replicas."),
                ),
            ),
            Step(
                do="Look at a replica.",
                command="jaxobs top http://HOST:9464",
                answers=(
                    ("compilations in progress", "JaxColdRequestsHigh."),
                    ("none", "It works at its limit."),
                ),
            ),
        ),
        mitigation=(
            "Add replicas, warmed up before they take requests.",
            "Take a slow replica out.",
            "Reject early rather than late: bound the queue at the time that callers wait.",
        ),
        look_alikes=(
            ("Requests that take long themselves", "the share of the queue is small", "docs/slos.md: latency by route"),
            ("Waiting for a compilation", "`cold` requests, or `jax_request_waited_seconds`", "JaxColdRequestsHigh"),
        ),
        evidence=(
            "Requests per second and time in the queue over a day.",
            "Number of replicas, and their batch sizes.",
        ),
        verify="The mean time in the queue is below `<seconds>` for a quarter of an hour at normal load.",
    ),
    cases=(
        Case(
            kind="firing", at="18m", series=_requests("0+7.5x120", "0+5x120"),
            fires=(Fired(labels=_LABELS, values=("117.2ms",)),),
        ),
        Case(
            kind="firing", at="18m", series=_requests("0+16x120", "0+13x120"),
            fires=(Fired(labels=_LABELS, values=("250ms",)),),
        ),
        Case(kind="pending", at="8m", series=_requests("0+7.5x120", "0+5x120")),
        Case(kind="healthy", at="40m", series=_requests("0+6x120", "0+4x120")),
        Case(kind="healthy", at="40m", series=_requests("0+16x120", "0+18x120")),
        Case(kind="recovering", at="70m", series=_requests("0+16x30 480x90", "0+8x120")),
        Case(kind="target_gone", at="70m", series=_requests("0+16x30 stale", "0+8x30 stale", "0+64x30 stale")),
        Case(
            kind="counter_reset", at="40m", series=_requests("0+16x30 0+16x60", "0+8x30 0+8x60", "0+64x30 0+64x60"),
            fires=(Fired(labels=_LABELS, values=("250ms",)),),
        ),
    ),
    needs="serving",
)  # fmt: skip
