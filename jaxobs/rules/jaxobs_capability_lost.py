"""Something that jaxobs could see in a job, and cannot any more."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = 'jaxobs_capability{job="train", instance="a:9464", name="compile_events"}'
_LABELS = {"job": "train", "name": "compile_events"}

ALERT = Alert(
    name="JaxobsCapabilityLost",
    severity="warning",
    concern="info",
    summary="The observer cannot see any more what it saw in the last week.",
    description=(
        "jaxobs in {{ $labels.job }} has lost {{ $labels.name }}: its capability is {{ $value | humanize }} in some "
        "process, and was 1 in the last week."
    ),
    expr="job_name:jaxobs_capability:min{@} == 0 and max_over_time(job_name:jaxobs_capability:min{@}[7d]) == 1",
    for_="15m",
    panel=("oncall", "observer"),
    runbook=Runbook(
        meaning=(
            "jaxobs probes at its start what the installed JAX lets it see. In the last week all processes of the job "
            "could see "
            "this, and now some cannot: usually JAX was updated, and moved a part that is not public. It ends after a "
            "week, or "
            "when it is seen again."
        ),
        impact=(
            "The program is not disturbed. Metrics that rest on the capability are absent or less exact, and their "
            "alerts silent "
            "(docs/how-it-works.md tells which)."
        ),
        diagnosis=(
            Step(
                do="See which processes lack what.",
                query="jaxobs_capability{@} == 0",
                answers=(
                    ("all processes of the job", "A new version."),
                    ("some", "Processes differ: JaxVersionSkew."),
                ),
            ),
            Step(
                do="See which versions run, and which ran before.",
                query="count by (job, jaxobs, jax, jaxlib) (jax_build_info{@})",
                answers=(
                    ("another jax than last week", "Look for a version of jaxobs that knows it."),
                    ("the same", "Another platform or plugin, or a setting."),
                ),
            ),
            Step(
                do="Look at the warning in the program's log.",
                command="grep -i 'jaxobs' LOG | grep -iE 'capab|not seen|without' | head",
                answers=(("a sentence", "It says what is done without."),),
            ),
        ),
        mitigation=(
            "Leave the job alone: it works.",
            "Update jaxobs in the next deployment, or go back to the JAX of before if you need what was lost.",
            "Report the versions, if there is no newer jaxobs.",
        ),
        look_alikes=(
            (
                "Never seen in this job",
                "it was 0 in all of the last week",
                "no alert: the table in docs/how-it-works.md",
            ),
            ("A part that fails now and then", "internal errors are counted", "JaxobsInternalErrors"),
        ),
        evidence=("The rows of `jax_build_info` of before and after.", "The warning from the log."),
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
