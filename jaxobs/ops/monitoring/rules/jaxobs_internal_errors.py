"""Failures of jaxobs itself."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxobsInternalErrors",
    severity="warning",
    concern="info",
    summary="A part of jaxobs keeps failing.",
    description=(
        "{{ $labels.where }} of jaxobs in {{ $labels.instance }} ({{ $labels.job }}) failed {{ $value | humanize }} "
        "times in the last half hour."
    ),
    expr="job_instance_where:jaxobs_internal_errors:increase30m{@} >= <errors>",
    for_="5m",
    keep_firing_for="30m",
    thresholds={
        "errors": Threshold(
            value=3, unit="count", least=1, most=1_000_000,
            why=("A single failure may be a coincidence, such as a file that was removed; repeated "
                "failures are a defect."),
        )
    },
    panel=("oncall", "observer"),
    texts=Beside(__name__),
)  # fmt: skip
