"""Something that jaxobs could see in a job, and cannot any more."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = 'jaxobs_capability{job="train", instance="a:9464", name="compile_events"}'
_LABELS = {"job": "train", "name": "compile_events"}

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
    runbook=Runbook(
        meaning=(
            "At startup, jaxobs probes what the installed JAX allows it to observe. In the last week "
            "all processes of the job could observe this, and now some cannot: typically JAX was "
            "updated and a non-public part has moved. The alert ends after a week, or when the "
            "capability is back."
        ),
        impact=(
            "The program is not affected. Metrics that depend on the capability are absent or less "
            "exact, and their alerts are silent (docs/how-it-works.md says which)."
        ),
        diagnosis=(
            Step(
                do="See which processes lack what.",
                query="jaxobs_capability{@} == 0",
                answers=(
                    ("all processes of the job", "A new version."),
                    ("some", "The processes differ: JaxVersionSkew."),
                ),
            ),
            Step(
                do="See which versions run now, and which ran before.",
                query="count by (job, jaxobs, jax, jaxlib) (jax_build_info{@})",
                answers=(
                    ("another jax than last week", "Look for a version of jaxobs that supports it."),
                    ("the same", "Another platform or plugin, or a setting."),
                ),
            ),
            Step(
                do="Look at the warning in the program's log.",
                command="grep -i 'jaxobs' LOG | grep -iE 'capab|not seen|without' | head",
                answers=(("a sentence", "It says what is missing."),),
            ),
        ),
        mitigation=(
            "Leave the job alone: it works.",
            "Update jaxobs in the next deployment, or return to the previous JAX if you need what was lost.",
            "If there is no newer jaxobs, report the versions.",
        ),
        look_alikes=(
            (
                "Never available in this job",
                "it was 0 in all of the last week",
                "no alert: the table in docs/how-it-works.md",
            ),
            ("A part that fails occasionally", "internal errors are counted", "JaxobsInternalErrors"),
        ),
        evidence=("The rows of `jax_build_info` from before and after.", "The warning from the log."),
        verify="`jaxobs_capability` is 1 again for that name, or you have decided to do without.",
    ),
    cases=(
        Case(kind="firing", at="40m", series={_SERIES: "1x19 0x60"}, fires=(Fired(labels=_LABELS, values=("0",)),)),
        Case(kind="pending", at="30m", series={_SERIES: "1x19 0x60"}),
        Case(kind="healthy", at="60m", series={_SERIES: "0x90"}),
        Case(kind="healthy", at="60m", series={_SERIES: "1x90"}),
        Case(kind="recovering", at="60m", series={_SERIES: "1x19 0x30 1x60"}),
        Case(kind="target_gone", at="60m", series={_SERIES: "1x19 0x30 stale"}),
    ),
)  # fmt: skip
