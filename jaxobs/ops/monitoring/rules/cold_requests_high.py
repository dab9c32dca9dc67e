"""Requests that wait for a compilation."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxColdRequestsHigh",
    severity="warning",
    concern="performance",
    summary="Too many requests wait for a compilation.",
    description=(
        "{{ $value | humanizePercentage }} of the requests for {{ $labels.route }} at {{ "
        "$labels.instance }} ({{ $labels.job }}) in the last 30 minutes had to compile or load a "
        "program before they were answered."
    ),
    expr=(
        'sum without (cold, outcome) (increase(jax_requests_total{@, cold="true"}[30m]))\n'
        "/\n"
        "(sum without (cold, outcome) (increase(jax_requests_total{@}[30m])) > <requests>)\n"
        "> <share>\n"
        "unless on (job, instance) time() - last_over_time(jax_process_start_timestamp_seconds{@}[30m]) < 2700"
    ),
    for_="10m",
    keep_firing_for="15m",
    labels={"phase": "compile"},
    thresholds={
        "share": Threshold(
            value=0.01,
            unit="ratio",
            least=0.0001,
            most=1,
            why="The default objective for cold requests: 99 % of the requests find their program compiled.",
        ),
        "requests": Threshold(
            value=100,
            unit="count",
            least=1,
            most=10_000_000,
            why="With fewer requests, a single cold one would exceed the share.",
        ),
    },
    panel=("oncall", "cold_share"),
    texts=Beside(__name__),
)
