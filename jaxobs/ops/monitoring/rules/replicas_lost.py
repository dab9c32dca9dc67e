"""A service that lost many of its replicas at once, while they were busy."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxReplicasLost",
    severity="warning",
    concern="availability",
    summary="A service lost many replicas at once.",
    description="{{ $value | humanizePercentage }} of the replicas of {{ $labels.job }} vanished within ten minutes.",
    expr=(
        "job:jax_serving_processes:lost10m{@} / on (job) (job:jax_serving_processes:max1h{@} >= <replicas>) > <share>\n"
        "and on (job)\n"
        "job:jax_requests_per_process:ratio2h{@} > <busy>"
    ),
    for_="3m",
    keep_firing_for="30m",
    thresholds={
        "share": Threshold(
            value=0.3, unit="ratio", least=0.05, most=0.99,
            why="A rolling deployment takes a quarter of the replicas away at a time, by Kubernetes' default.",
        ),
        "replicas": Threshold(
            value=4, unit="count", least=2, most=100_000,
            why="Of the most in the last hour: of fewer, one alone is a large share.",
        ),
        "busy": Threshold(
            value=0.7, unit="factor", least=0.05, most=10,
            why=(
                "An autoscaler takes replicas away because they have little to do; these were as busy as in the "
                "two hours before."
            ),
        ),
    },
    panel=("fleet", "replicas_lost"),
    texts=Beside(__name__),
)  # fmt: skip
