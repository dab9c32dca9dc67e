"""Something that a bound of jaxobs cut off."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'jaxobs_dropped_series_total{job="train", instance="a:9464", reason="max_functions"}'
_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train", "instance": "a:9464", "reason": "max_functions"}

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
    runbook=Runbook(
        meaning=(
            "jaxobs keeps everything bounded, and at least `<dropped>` functions, loops, findings or "
            "series did not fit within half an hour. They are counted together under `<other>`, or "
            "left out."
        ),
        impact=(
            "The program is not affected. Panels and alerts by function or loop miss what was left "
            "out; sums over everything are correct if there is `<other>`."
        ),
        diagnosis=(
            Step(
                do="See which bound, and on which processes.",
                query="sum by (job, instance, reason) (job_instance_reason:jaxobs_dropped_series:increase30m{@}) > 0",
                answers=(
                    (
                        "`signatures`, `errors`",
                        "A program that compiles, or fails, very often; this alert is not about "
                        "that: see JaxRecompilationStorm and JaxFunctionErrors.",
                    ),
                    ("`max_functions`", "The program names very many functions: see the next step."),
                    ("`findings`", "Very many findings: see which with `jaxobs explain`."),
                    ("`event_log_write`", "The event log cannot be written: its disk is full, or read-only."),
                    (
                        "`other_processes`",
                        "The coordination service does not respond, so processes cannot compare each other.",
                    ),
                    ("others", "docs/reference/metrics.md and docs/reference/settings.md name the bound."),
                ),
            ),
            Step(
                do="See whether function names are generated at run time.",
                command=(
                    "curl -s http://HOST:9464/metrics | grep -o 'function=\"[^\"]*\"' | sort | uniq -c | sort -n | "
                    "tail"
                ),
                answers=(
                    ("names with numbers or addresses", "Give the functions fixed names."),
                    ("many plain names", "Raise the bound: each function takes some ten series."),
                ),
            ),
        ),
        mitigation=(
            "Leave the job alone: it can wait until the morning.",
            "Raise the bound in the settings if Prometheus can take it.",
            "Jit functions once, outside of loops, so that they do not reappear under new names.",
        ),
        look_alikes=(
            ("Parts of jaxobs that fail", "internal errors are counted", "JaxobsInternalErrors"),
            ("Prometheus that drops samples", "its own `sample_limit`", "its page of targets"),
        ),
        evidence=("The reasons and numbers, from the first query.", "The number of functions of the program."),
        verify="The panel stays at 0 for half an hour of the program's usual work.",
    ),
    cases=(
        Case(
            kind="firing", at="37m",
            series={_SERIES: "_x20 10x60", _START: "0x80"},
            fires=(Fired(labels=_LABELS, values=("10",)),),
        ),
        Case(kind="pending", at="30m", series={_SERIES: "_x20 10x60", _START: "0x80"}),
        Case(
            kind="firing", at="37m",
            series={_SERIES: "_x20 11x60", _START: "0x80"},
            fires=(Fired(labels=_LABELS, values=("11",)),),
        ),
        Case(kind="healthy", at="45m", series={_SERIES: "_x20 9x60", _START: "0x80"}),
        Case(
            kind="healthy", at="45m",
            series={_SERIES.replace("max_functions", "signatures"): "_x20 900x60", _START: "0x80"},
        ),
        Case(kind="recovering", at="100m", series={_SERIES: "_x20 10x100", _START: "0x120"}),
        Case(kind="target_gone", at="90m", series={_SERIES: "_x20 10x20 stale", _START: "0x40 stale"}),
    ),
)  # fmt: skip
