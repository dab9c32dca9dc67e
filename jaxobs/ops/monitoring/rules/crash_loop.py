"""A job whose processes crash again and again, and get nowhere."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxCrashLoop",
    severity="critical",
    concern="availability",
    summary="A job is in a crash loop.",
    description="Processes of {{ $labels.job }} crashed {{ $value | humanize }} times in the last hour.",
    expr="job:jax_crashes:max1h{@} >= <crashes>",
    for_="1m",
    keep_firing_for="15m",
    thresholds={
        "crashes": Threshold(
            value=5, unit="count", least=2, most=1000,
            why=(
                "A deployment restarts a process once, a schedule at most four times an hour; a process that crashes "
                "every nine minutes gets here within an hour."
            ),
        )
    },
    panel=("fleet", "crashes"),
    texts=Beside(__name__),
)  # fmt: skip
