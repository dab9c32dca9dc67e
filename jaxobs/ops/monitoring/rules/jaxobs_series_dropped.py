"""Something that a bound of jaxobs cut off."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxobsSeriesDropped",
    severity="warning",
    concern="info",
    summary="A bound of jaxobs cuts something off.",
    description=(
        "jaxobs in {{ $labels.instance }} ({{ $labels.job }}) cut {{ $value | humanize }} things off in the last half "
        "hour, for {{ $labels.reason }}."
    ),
    # A program that compiles or fails hundreds of times fills these two, and has alerts of its own for it.
    expr='job_instance_reason:jaxobs_dropped_series:increase30m{@, reason!~"signatures|errors"} >= <dropped>',
    for_="15m",
    keep_firing_for="30m",
    thresholds={
        "dropped": Threshold(
            value=10, unit="count", least=1, most=1_000_000_000,
            why="A few are what bounds are for; ten in half an hour mean that something is regularly missing.",
        )
    },
    panel=("oncall", "observer"),
    texts=Beside(__name__),
)  # fmt: skip
