"""A job that puts little of its time into steps, for hours."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxGoodputLow",
    severity="warning",
    concern="performance",
    summary="A job has spent little of its time in steps for hours.",
    description=(
        "{{ $labels.job }} spent {{ $value | humanizePercentage }} of the time of its processes in "
        "steps and evaluations in the last 6 hours."
    ),
    expr="max without (instance) (job_instance:jax_goodput:ratio6h{@}) < <share>",
    for_="1h",
    keep_firing_for="30m",
    thresholds={
        "share": Threshold(
            value=0.5, unit="ratio", least=0.01, most=0.99,
            why=("With less than half, you pay more for waiting than for training. Well-run jobs "
                "reach 0.9 and more."),
        )
    },
    panel=("executive", "goodput"),
    texts=Beside(__name__),
)  # fmt: skip
