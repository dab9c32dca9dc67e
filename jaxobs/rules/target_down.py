"""A process that does not answer any more."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step

_UP = 'up{job="train", instance="a:9464"}'
_OTHER = 'jax_process_start_timestamp_seconds{job="train", instance="b:9464"}'
_LABELS = {"job": "train", "instance": "a:9464"}

ALERT = Alert(
    name="JaxTargetDown",
    severity="warning",
    concern="availability",
    summary="A process does not answer any more.",
    description="{{ $labels.instance }} ({{ $labels.job }}) does not answer: `up` is {{ $value | humanize }}.",
    expr="up{@} == 0 and on (job) last_over_time(job:jax_processes_seen:count{@}[6h])",
    for_="10m",
    keep_firing_for="5m",
    panel=("oncall", "targets"),
    runbook=Runbook(
        meaning=(
            "Prometheus has a target of a job that is, or was within six hours, observed by jaxobs, and gets no "
            "metrics from it. "
            "The other targets of Prometheus are not concerned."
        ),
        impact=(
            "The process has ended or hangs, or only its endpoint cannot be reached. While it lasts none of the other "
            "alerts can "
            "see this process."
        ),
        diagnosis=(
            Step(
                do="See how many of the job do not answer.",
                query="count by (job) (up{@} == 0)",
                answers=(
                    ("one of many", "Its host or process: go on."),
                    (
                        "all",
                        "The job has ended or crashed, or the network between it and Prometheus is cut: JaxJobAbsent.",
                    ),
                ),
            ),
            Step(
                do="Ask the process on its host.",
                command="curl -sm 5 http://127.0.0.1:9464/metrics | head -n 3; ps -C python -o pid,etime,stat,args",
                answers=(
                    ("it answers", "The network, or it listens on loopback only (the setting `addr`)."),
                    (
                        "it hangs",
                        "The interpreter is held by a call that does not let go: `py-spy dump --native --pid PID`.",
                    ),
                    ("no such process", "It ended: go on."),
                ),
            ),
            Step(
                do="Find out why it ended.",
                command=(
                    "ls -t last-minutes-*.txt | head -n 1 | xargs cat; dmesg -T | grep -iE 'killed process|oom' | tail"
                ),
                answers=(
                    ("`Killed process`", "The host had no memory left: JaxHostMemoryGrowth."),
                    ("an exception in the flight recorder's file", "The program: its text tells."),
                    (
                        "`Terminating process because the JAX distributed service detected fatal errors`",
                        "It is a victim: find the process that ended first.",
                    ),
                    ("nothing", "Killed from outside: the scheduler, a preemption, the host itself."),
                ),
            ),
        ),
        mitigation=(
            "If it ended by itself at its end, take the target off the list; dynamic discovery does so alone.",
            "If it crashed, let the scheduler restart the job from its last checkpoint.",
            "If the host is gone, take it out of scheduling.",
        ),
        look_alikes=(
            (
                "A job that is done",
                "all its targets ended together, after the last step",
                "nothing: remove the targets",
            ),
            ("Slow scrapes that time out", "`up` comes and goes", "JaxobsScrapeSlow"),
            ("A process that Prometheus never knew", "fewer targets than processes", "JaxProcessCountMismatch"),
        ),
        evidence=(
            "The flight recorder's file, `last-minutes-*.txt`.",
            "The last 100 lines of the log.",
            "`dmesg -T` of the host, and the scheduler's events.",
        ),
        verify="`up` is 1 again, or the target is gone for good reason.",
    ),
    cases=(
        Case(
            kind="firing", at="35m",
            series={_UP: "1x19 0x600", _OTHER: "0x600"},
            fires=(Fired(labels=_LABELS, values=("0",)),),
        ),
        Case(kind="pending", at="28m", series={_UP: "1x19 0x600", _OTHER: "0x600"}),
        Case(
            kind="firing", at="300m",
            series={_UP: "1x19 0x600", _OTHER: "0x30 stale"},
            fires=(Fired(labels=_LABELS, values=("0",)),),
        ),
        Case(kind="recovering", at="420m", series={_UP: "1x19 0x600", _OTHER: "0x30 stale"}),
        Case(kind="healthy", at="60m", series={_UP: "1x90", _OTHER: "0x90"}),
        Case(kind="healthy", at="60m", series={_UP: "0x90", _OTHER.replace("train", "other"): "0x90"}),
        Case(kind="recovering", at="60m", series={_UP: "1x19 0x20 1x60", _OTHER: "0x90"}),
        Case(kind="target_gone", at="60m", series={_UP: "1x19 0x20 stale", _OTHER: "0x90"}),
    ),
)  # fmt: skip
