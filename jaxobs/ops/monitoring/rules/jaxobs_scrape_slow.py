"""A scrape that takes long."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxobsScrapeSlow",
    severity="warning",
    concern="info",
    summary="Scraping a process takes long.",
    description=(
        "Collecting the metrics of {{ $labels.instance }} ({{ $labels.job }}) took {{ $value | humanizeDuration }}."
    ),
    expr="quantile_over_time(0.5, jaxobs_collect_seconds{@}[10m]) > <seconds>",
    for_="10m",
    keep_firing_for="15m",
    thresholds={
        "seconds": Threshold(
            value=2, unit="seconds", least=0.05, most=300,
            why="A fifth of Prometheus' default timeout of 10 s; a thousand series take some 15 ms.",
        )
    },
    panel=("fleet", "series_and_scrape"),
    texts=Beside(__name__),
)  # fmt: skip
