"""Requests that wait in a queue for longer than they take."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

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
    texts=Beside(__name__),
)  # fmt: skip
