"""A service whose processes take requests and finish none."""

from __future__ import annotations

from jaxobs.ops.monitoring.promql import PROBES
from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold


def _finished(window: str) -> str:
    chosen = f'jax_requests_total{{@, route!~"{PROBES}"}}'
    return f"sum by (job, instance) (increase({chosen}[{window}))"


ALERT = Alert(
    name="JaxRequestsStalled",
    severity="critical",
    concern="availability",
    summary="A service takes requests and finishes none.",
    description=(
        "{{ $value | humanizePercentage }} of the processes of {{ $labels.job }} have had requests in flight for 15 "
        "minutes and finished none; before, they did."
    ),
    expr=(
        "count by (job) (\n"
        "  (min_over_time(jax_requests_in_flight{@}[15m]) > 0)\n"
        "  >= avg_over_time(jax_requests_in_flight{@}[1h] offset 15m)\n"
        f"  and on (job, instance) {_finished('15m]')} == 0\n"
        f"  and on (job, instance) {_finished('1h] offset 15m')} > <requests>\n"
        ")\n"
        "/ on (job) (count by (job) (jax_requests_in_flight{@}) > 0) >= <share>"
    ),
    for_="2m",
    keep_firing_for="5m",
    thresholds={
        "share": Threshold(
            value=0.3, unit="ratio", least=0.001, most=1,
            why="Of the processes of a service: a load balancer routes around fewer.",
        ),
        "requests": Threshold(
            value=20, unit="count", least=1, most=1_000_000_000,
            why="In the hour before: a service with fewer may well have a request that takes a quarter of an hour.",
        ),
    },
    panel=("serving", "in_flight"),
    texts=Beside(__name__),
)  # fmt: skip
