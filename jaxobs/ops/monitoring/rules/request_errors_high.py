"""A route of which many requests fail."""

from __future__ import annotations

from jaxobs.ops.monitoring.promql import PROBES
from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxRequestErrorsHigh",
    severity="warning",
    concern="availability",
    summary="Many requests of a route fail.",
    description=(
        "{{ $value | humanizePercentage }} of the requests of {{ $labels.route }} on {{ $labels.instance }} ({{ "
        "$labels.job }}) failed in the last 15 minutes."
    ),
    expr=(
        f'sum without (cold, outcome) (increase(jax_requests_total{{@, outcome="error", route!~"{PROBES}"}}[15m]))\n'
        "/\n"
        "(sum without (cold, outcome) (increase(jax_requests_total{@}[15m])) > <requests>)\n"
        "> <share>"
    ),
    for_="5m",
    keep_firing_for="10m",
    thresholds={
        "share": Threshold(
            value=0.05, unit="ratio", least=0.0001, most=1,
            why="One in twenty: callers notice, and it is more than a bad client or a single retry causes.",
        ),
        "requests": Threshold(
            value=30, unit="count", least=0, most=1_000_000_000,
            why="Two a minute: with fewer requests, a single failure would be a large share.",
        ),
    },
    panel=("oncall", "request_errors"),
    texts=Beside(__name__),
)  # fmt: skip
