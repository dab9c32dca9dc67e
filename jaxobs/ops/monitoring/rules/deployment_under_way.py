"""A marker: many processes of a job have just begun."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxDeploymentUnderWay",
    severity="info",
    concern="info",
    summary="Many processes of a job have just started.",
    description=(
        "{{ $value | humanizePercentage }} of the processes of {{ $labels.job }} are younger than a quarter of an "
        "hour."
    ),
    expr=(
        "count by (job) (time() - jax_process_start_timestamp_seconds{@} < <seconds>)\n"
        "/ count by (job) (jax_process_start_timestamp_seconds{@})\n"
        "> <share>"
    ),
    for_="1m",
    thresholds={
        "seconds": Threshold(
            value=900, unit="seconds", least=60, most=86_400,
            why="Within a quarter of an hour most programs have compiled what they need.",
        ),
        "share": Threshold(
            value=0.1, unit="ratio", least=0, most=0.99,
            why="One crash-looping process among many must not silence the alerts of the whole job.",
        ),
    },
    panel=("fleet", "restarts"),
    texts=Beside(__name__),
)  # fmt: skip
