"""Failures of jaxobs itself."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'jaxobs_internal_errors_total{job="train", instance="a:9464", where="sampler"}'
_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train", "instance": "a:9464", "where": "sampler"}

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
    runbook=Runbook(
        meaning=(
            "Some part of jaxobs raised at least `<errors>` times within half an hour. jaxobs "
            "swallows its own failures, so the program does not notice; it logs the first failure of "
            "each place and counts the rest."
        ),
        impact=(
            "The program is not affected. The data of that part is missing: alerts and panels that "
            "depend on it may be silent."
        ),
        diagnosis=(
            Step(
                do="See which part, and since when.",
                query="sum by (job, instance, where) (job_instance_where:jaxobs_internal_errors:increase30m{@}) > 0",
                answers=(
                    ("all processes of a version", ("That version of jaxobs with that version of JAX: "
                                                   "see the capabilities.")),
                    ("one process", "Its host: a full disk, a driver that does not respond."),
                ),
            ),
            Step(
                do="Read the first failure in the program's log.",
                command="grep -A 20 'jaxobs failed in' LOG | head -n 60",
                answers=(
                    ("a traceback", "It names the place; report it with the versions."),
                    ("`OSError`, `No space left`", "A disk that jaxobs writes to: make room."),
                ),
            ),
            Step(
                do="See what jaxobs cannot do with this JAX.",
                query="jaxobs_capability{@} == 0",
                answers=(("rows", "JaxobsCapabilityLost."),),
            ),
        ),
        mitigation=(
            "Leave the job alone: it is not affected.",
            "Update jaxobs, or disable that part with its setting (docs/reference/settings.md).",
        ),
        look_alikes=(
            ("A bound was reached", "`jaxobs_dropped_series_total` rises", "JaxobsSeriesDropped"),
            ("The program's own errors", "`jax_function_errors_total` rises", "JaxFunctionErrors"),
        ),
        evidence=("The traceback from the log.", "The row of `jax_build_info`, with all versions."),
        verify="The panel stays at 0 for half an hour of the program's normal work.",
    ),
    cases=(
        Case(
            kind="firing", at="27m",
            series={_SERIES: "_x20 3x60", _START: "0x80"},
            fires=(Fired(labels=_LABELS, values=("3",)),),
        ),
        Case(kind="pending", at="24m", series={_SERIES: "_x20 3x60", _START: "0x80"}),
        Case(kind="healthy", at="40m", series={_SERIES: "_x20 2x60", _START: "0x80"}),
        Case(kind="recovering", at="100m", series={_SERIES: "_x20 3x100", _START: "0x120"}),
        Case(kind="target_gone", at="80m", series={_SERIES: "_x20 3x10 stale", _START: "0x30 stale"}),
    ),
)  # fmt: skip
