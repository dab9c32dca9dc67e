"""An objective of which nothing is counted any more, although its processes go on: its alert is blind."""

from __future__ import annotations

from jaxobs.ops.monitoring.burn_rates import TOTAL
from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_REQUESTS = 'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="false", outcome="ok"}'
_START = 'jax_process_start_timestamp_seconds{job="serve", instance="a:9464"}'
_LOST = {_REQUESTS: "0+60x120 stale", _START: "-90000x300"}
"""Counted until minute 120; what is made of it ends with minute 124."""
_YOUNG = {_REQUESTS: "0+60x120 stale", _START: "-90000x100 6000x200"}
"""The same, in a process that began at minute 100."""
_BACK = {_REQUESTS: "0+60x120 stale _x29 9000+60x100", _START: "-90000x300"}
_FIRED = tuple(Fired(labels={"job": "serve", "slo": each}) for each in ("cold-requests", "request-availability"))

ALERT = Alert(
    name="JaxSloNoData",
    severity="warning",
    concern="performance",
    summary="An objective no longer has data.",
    description=(
        "Nothing is counted for the objective {{ $labels.slo }} of {{ $labels.job }}, unlike an hour "
        "ago, although the job's processes have run for longer and are scraped. Its burn-rate alerts "
        "cannot fire."
    ),
    expr=(
        f'max by (job, slo) ({TOTAL}{{@, slo!="goodput"}} offset 1h)\n'
        f"unless on (job, slo) {TOTAL}{{@}}\n"
        "and on (job) time() - max by (job) (jax_process_start_timestamp_seconds{@}) > <age>"
    ),
    for_="15m",
    thresholds={
        "age": Threshold(
            value=3900, unit="seconds", least=3600,
            why="The youngest process is older than the data of an hour ago: none has started counting since.",
        ),
    },
    panel=("executive", "slo_state"),
    runbook=Runbook(
        meaning=(
            "The objective's total within five minutes has disappeared: it is not at 0, but has no "
            "series. The processes of the job have run for longer than `<age>` and are scraped."
        ),
        impact="None for users. But if something goes wrong now, the alerts of this objective cannot report it.",
        diagnosis=(
            Step(
                do=("See whether the processes still export it: the rule with that name as `slo` "
                   "shows which metric."),
                command="curl -s http://HOST:9464/metrics | grep -E '^jax_(steps|requests|time_seconds)_'",
                answers=(
                    ("It exists", "Prometheus drops it, or the rule fails. Continue."),
                    ("It does not exist", ("The process no longer does this: a route or a loop is gone. "
                                        "Was that intended?")),
                ),
            ),
            Step(
                do="See whether jaxobs drops series because of its bound.",
                query="sum by (job, instance, reason) (increase(jaxobs_dropped_series_total{@}[1h])) > 0",
                answers=(
                    ("Some", "The bound on series is reached: find which label has so many values."),
                    ("None", "Look at Prometheus' page of rules for an error in the group `jaxobs-slo`."),
                ),
            ),
        ),
        mitigation=(
            "Undo the change of scrape configuration, relabelling or rules that removed the series.",
            "If the job no longer does what the objective covers, turn it off in the site file: "
            "`[objectives.<name>]` with `enabled = false`.",
        ),
        look_alikes=(
            ("Nothing happens, at night", "the series exists, and is 0", ("nothing: the alert does "
                                                                           "not fire then")),
            ("The job is over", "no process is scraped any more", "nothing: the alert does not fire then"),
            ("The only process that had it was removed", ("other processes of the job never "
                                                            "counted such an event"),
             "docs/slos.md"),
        ),
        evidence=("The objective's name, and the `/metrics` of one process.", "Prometheus' page of the rules."),
        verify="The panel shows the objective again; the alert ends with it, or by itself after an hour.",
    ),
    cases=(
        Case(kind="pending", series=_LOST, at="139m"),
        Case(kind="firing", series=_LOST, at="141m", fires=_FIRED),
        Case(kind="recovering", series=_LOST, at="186m"),
        Case(kind="pending", series=_YOUNG, at="180m"),
        Case(kind="firing", series=_YOUNG, at="182m", fires=_FIRED[1:]),
        Case(kind="recovering", series=_BACK, at="153m"),
        Case(kind="healthy", series={_REQUESTS: "0+60x120", _START: "-90000x300"}, at="119m"),
        Case(kind="healthy", series={_REQUESTS: "0+0x160", _START: "-90000x300"}, at="150m"),
        Case(kind="healthy", series={_REQUESTS: "0+60x141 stale", _START: "-90000x141 stale"}, at="170m"),
        Case(kind="target_gone", series={_REQUESTS: "0+60x120 stale", _START: "-90000x145 stale"}, at="151m"),
        Case(kind="counter_reset", series={_REQUESTS: "0+60x80 0+60x80", _START: "-90000x80 4860x80"}, at="150m"),
    ),
)  # fmt: skip
