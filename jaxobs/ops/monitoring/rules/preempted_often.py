"""A run that is ended by signals again and again, as by preemptions, and gets nowhere."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxPreemptedOften",
    severity="warning",
    concern="availability",
    summary="A run is ended by signals again and again.",
    description="{{ $labels.job }} was ended by a signal {{ $value | humanize }} times in the last hour.",
    expr="max without (instance) (job_instance:jax_preemptions:max1h{@}) >= <preemptions>",
    for_="1m",
    keep_firing_for="15m",
    thresholds={
        "preemptions": Threshold(
            value=5, unit="count", least=2, most=1000,
            why=(
                "Capacity that is preempted now and then is normal, and a schedule starts a job at most four times an "
                "hour. A run that loses its machines every nine minutes gets here within an hour."
            ),
        )
    },
    panel=("fleet", "preemptions"),
    texts=Beside(__name__),
)  # fmt: skip
