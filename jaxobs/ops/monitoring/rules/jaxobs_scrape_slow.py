"""A scrape that takes long."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'jaxobs_collect_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train", "instance": "a:9464"}

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
    runbook=Runbook(
        meaning=(
            "Half of the scrapes of the process within 10 minutes took longer than `<seconds>`. A "
            "separate thread in the process renders the metrics, in Python."
        ),
        impact=(
            "That thread competes with the program for the GIL, so steps are launched late. Beyond "
            "the scrape timeout nothing is recorded at all, and the process appears to be down."
        ),
        diagnosis=(
            Step(
                do="See how many series the process has.",
                query="scrape_samples_scraped{@} and on (job, instance) jaxobs_collect_seconds{@}",
                answers=(
                    ("above 5,000", "Too many: find the labels, as below."),
                    ("a few hundred", "The number is fine: the host is busy, or a driver responds slowly."),
                ),
            ),
            Step(
                do="See which metrics have the most series.",
                command=(
                    "curl -s http://HOST:9464/metrics | grep -v '^#' | cut -d'{' -f1 | sort | uniq -c | sort -n | tail"
                ),
                answers=(
                    ("metrics by function", "Functions with generated names: give them fixed names."),
                    (
                        "metrics by device",
                        "A host with many devices: select fewer metrics in the scrape configuration.",
                    ),
                ),
            ),
            Step(
                do="See whether the host has cores left.",
                command="top -b -n 1 | head -n 15",
                answers=(
                    ("all cores busy", "The loader uses them: leave one free."),
                    (
                        "the process at 100 % of one core",
                        "Python itself is the bottleneck: the scrape waits for it.",
                    ),
                ),
            ),
        ),
        mitigation=(
            "Scrape less often: once a minute is enough for all alerts.",
            "Lower `max_functions`, or give functions fixed names.",
            "Leave a core for the process that the loader does not use.",
        ),
        look_alikes=(
            ("Slow on the way", "`scrape_duration_seconds` is high, this is low", "the network, or a proxy"),
            ("Scrapes that fail", "`up` is 0", "JaxTargetDown"),
        ),
        evidence=("The number of series and the time of scrapes over a day.", "The metrics with the most series."),
        verify="Collecting takes less than `<seconds>` on the panel for a quarter of an hour.",
    ),
    cases=(
        Case(
            kind="firing", at="40m",
            series={_SERIES: "0.1x19 2.25x60"},
            fires=(Fired(labels=_LABELS, values=("2.25s",)),),
        ),
        Case(kind="pending", at="33m", series={_SERIES: "0.1x19 2.25x60"}),
        Case(kind="healthy", at="60m", series={_SERIES: "1.75x90"}),
        Case(kind="healthy", at="60m", series={_SERIES: "0.1x19 9x4 0.1x60"}),
        Case(kind="recovering", at="80m", series={_SERIES: "0.1x19 3x25 0.1x60"}),
        Case(kind="target_gone", at="80m", series={_SERIES: "0.1x19 3x25 stale"}),
    ),
)  # fmt: skip
