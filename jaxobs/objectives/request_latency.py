"""Latency of requests in which nothing compiled."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.objective_types import Example, Guide, Objective
from jaxobs.promql import increase
from jaxobs.rule_types import Step

_ALL = 'jax_request_seconds_count{@, cold="false"}'
_GOOD = 'jax_request_seconds_bucket{@, cold="false", le="0.5"}'

OBJECTIVE = Objective(
    name="request-latency",
    title="Latency in the steady state",
    description="Requests in which nothing compiled are answered within 0.5 s.",
    service="serving",
    target=Decimal("0.99"),
    # The threshold is a bucket of the histogram: one that is none returns nothing.
    bad=(
        f"sum by (job) ({increase(_ALL)})\n"
        f"- sum by (job) ({increase(_GOOD)})"
    ),
    total=f"sum by (job) ({increase(_ALL)})",
    unit="requests",
    least=Decimal(100),
    needs="serving",
    guide=Guide(
        impact="Callers wait longer than they were promised, although the programs are compiled.",
        diagnosis=(
            Step(
                do="Ask which route and which process are slow.",
                query=(
                    "histogram_quantile(0.99, sum by (job, instance, route, le) "
                    '(rate(jax_request_seconds_bucket{@, cold="false"}[10m])))'
                ),
                answers=(
                    ("One instance", "Its device throttles, or another process shares it: see the devices."),
                    ("One route", "Its inputs have grown: see the batch fill and the step before it."),
                    ("All of them", "More requests than it can take: go on with the queue."),
                ),
            ),
            Step(
                do="Ask how much of it is waiting for its turn.",
                query=(
                    "sum by (job, instance) (rate(jax_request_queue_seconds_sum{@}[10m]))\n"
                    "/ (sum by (job, instance) (rate(jax_request_queue_seconds_count{@}[10m])) > 0)"
                ),
                answers=(
                    ("Near the latency", "Saturated: add a process, or make the batches fuller."),
                    ("Near nothing", "The program itself is slow: capture a trace with `jaxobs.capture`."),
                ),
            ),
            Step(
                do="See the slowest requests in the process itself.",
                command="curl -s http://HOST:9464/api/v1/snapshot | python -m json.tool | grep -A40 '\"routes\"'",
                answers=(("`cold` requests", "They count for the other objective, JaxSloColdRequestsBurn."),),
            ),
        ),
        mitigation=("Add processes.", "Let the batcher wait less.", "Shed or queue what cannot be answered in time."),
        look_alikes=(
            ("Requests that compile", "`cold` is `true`", "JaxSloColdRequestsBurn"),
            ("A slow network", "the process's own latency is fine", "the load balancer in front of it"),
        ),
    ),
    example=Example(
        good={
            'jax_request_seconds_count{job="serve", instance="a:9464", route="predict", cold="false"}': 60,
            'jax_request_seconds_bucket{job="serve", instance="a:9464", route="predict", cold="false", le="0.5"}': 60,
        },
        bad={
            'jax_request_seconds_count{job="serve", instance="a:9464", route="predict", cold="false"}': 60,
            'jax_request_seconds_bucket{job="serve", instance="a:9464", route="predict", cold="false", le="0.5"}': 30,
        },
        share=Decimal("0.5"),
    ),
)  # fmt: skip
