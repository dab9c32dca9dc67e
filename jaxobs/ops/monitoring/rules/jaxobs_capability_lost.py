"""Something that jaxobs could see in a job, and cannot any more."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxobsCapabilityLost",
    severity="warning",
    concern="info",
    summary="A capability of jaxobs that worked in the last week is gone.",
    description=(
        "jaxobs in {{ $labels.job }} has lost {{ $labels.name }}: its capability is {{ $value | humanize }} in some "
        "process, and was 1 in the last week."
    ),
    expr="job_name:jaxobs_capability:min{@} == 0 and max_over_time(job_name:jaxobs_capability:min{@}[7d]) == 1",
    for_="15m",
    panel=("oncall", "observer"),
    texts=Beside(__name__),
)  # fmt: skip
