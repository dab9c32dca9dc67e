"""Processes of a job that begin again and again."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxFleetRestarts",
    severity="warning",
    concern="availability",
    summary="Processes of a job keep restarting.",
    description="Processes of {{ $labels.job }} were restarted {{ $value | humanize }} times in the last hour.",
    expr=(
        "job:jax_crashes:max1h{@} >= <restarts>"
    ),
    for_="1m",
    keep_firing_for="15m",
    thresholds={
        "restarts": Threshold(
            value=3, unit="count", least=1, most=1000,
            why=("A deployment restarts each process once, and an accident once more; three restarts "
                "within an hour are a loop."),
        )
    },
    panel=("fleet", "crashes"),
    texts=Beside(__name__),
)  # fmt: skip
