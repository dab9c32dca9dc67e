"""A process that does not answer any more."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_UP = 'up{job="train", instance="a:9464"}'
_OTHER = 'jax_process_start_timestamp_seconds{job="train", instance="b:9464"}'
_RUN = 'jax_run_info{job="train", instance="a:9464", run_id="r", last_exit=""}'
_PEER = _RUN.replace("a:9464", "b:9464")
_SERVED = 'jax_requests_in_flight{job="train", instance="a:9464"}'
_LABELS = {"job": "train", "instance": "a:9464"}

ALERT = Alert(
    name="JaxTargetDown",
    severity="warning",
    concern="availability",
    summary="A process no longer responds.",
    description="{{ $labels.instance }} ({{ $labels.job }}) does not respond: `up` is {{ $value | humanize }}.",
    expr=(
        'up{@, pod_phase!="Succeeded"} == 0\n'
        "and on (job) (\n"
        "  job:jax_processes_seen:count{@}\n"
        "  or last_over_time(job:jax_serving:bool{@}[6h])\n"
        '  or up{@, pod_phase="Failed"}\n'
        ")\n"
        "unless on (job, instance) (\n"
        '  job_instance:jax_run_over:bool{@} unless on (job, instance) up{@, pod_phase="Failed"}\n'
        "  unless on (job) last_over_time(job:jax_serving:bool{@}[6h])\n"
        ")"
    ),
    for_="10m",
    keep_firing_for="5m",
    panel=("oncall", "targets"),
    runbook=Runbook(
        meaning=(
            "Prometheus has a target of a job that jaxobs observes, and gets no metrics from it, while other processes "
            "of the job answer, or the job served requests within six hours, or its pod has failed. A training job "
            "of which all processes end together is taken for finished: JaxJobAbsent and JaxTrainingGone report those "
            "that were not. Pods that `Completed` do not count, nor do other targets of Prometheus."
        ),
        impact=(
            "The process has ended or hangs, or only its endpoint cannot be reached. Meanwhile no "
            "other alert can see this process."
        ),
        diagnosis=(
            Step(
                do="See how many processes of the job do not respond.",
                query="count by (job) (up{@} == 0)",
                answers=(
                    ("one of many", "Its host or process: continue."),
                    (
                        "all",
                        ("The job has ended or crashed, or the network between it and Prometheus is "
                        "down: JaxJobAbsent."),
                    ),
                ),
            ),
            Step(
                do="Ask the process on its host.",
                command="curl -sm 5 http://127.0.0.1:9464/metrics | head -n 3; ps -C python -o pid,etime,stat,args",
                answers=(
                    ("it responds", "The network, or it listens on loopback only (the setting `addr`)."),
                    (
                        "it hangs",
                        ("A call that does not release the GIL blocks the interpreter: `py-spy dump "
                        "--native --pid PID`."),
                    ),
                    ("no such process", "It ended: continue."),
                ),
            ),
            Step(
                do="Find out why it ended.",
                command=(
                    "ls -t last-minutes-*.txt | head -n 1 | xargs cat; dmesg -T | grep -iE 'killed process|oom' | tail"
                ),
                answers=(
                    ("`Killed process`", "The host had no memory left: JaxHostMemoryGrowth."),
                    ("an exception in the flight recorder's file", "The program: read its text."),
                    (
                        "`Terminating process because the JAX distributed service detected fatal errors`",
                        "It is a victim: find the process that ended first.",
                    ),
                    ("nothing", "Killed from outside: the scheduler, a preemption, or the host itself."),
                ),
            ),
        ),
        mitigation=(
            "If it ended normally, remove the target from the list; dynamic discovery does that automatically.",
            "If it crashed, let the scheduler restart the job from its last checkpoint.",
            "If the host is gone, take it out of scheduling.",
        ),
        look_alikes=(
            (
                "A job that has finished",
                "all its targets ended together, after the last step",
                "nothing: remove the targets",
            ),
            ("Slow scrapes that time out", "`up` alternates between 0 and 1", "JaxobsScrapeSlow"),
            ("A process that Prometheus never knew", "fewer targets than processes", "JaxProcessCountMismatch"),
        ),
        evidence=(
            "The flight recorder's file, `last-minutes-*.txt`.",
            "The last 100 lines of the log.",
            "`dmesg -T` of the host, and the scheduler's events.",
        ),
        verify="`up` is 1 again, or the target is gone for a good reason.",
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
            series={_UP: "1x19 0x600", _SERVED: "0x30 stale"},
            fires=(Fired(labels=_LABELS, values=("0",)),),
        ),
        Case(kind="recovering", at="420m", series={_UP: "1x19 0x600", _SERVED: "0x30 stale"}),
        Case(kind="job_finished", at="60m", series={_UP: "1x19 0x100", _OTHER: "0x19 stale"}),
        Case(
            kind="healthy", at="60m", series={_UP.replace("}", ', pod_phase="Succeeded"}'): "0x90", _OTHER: "0x90"}
        ),
        Case(
            kind="firing", at="35m", series={_UP.replace("}", ', pod_phase="Failed"}'): "_x20 0x90"},
            fires=(Fired(labels={**_LABELS, "pod_phase": "Failed"}, values=("0",)),),
        ),
        Case(kind="healthy", at="60m", series={_UP: "1x90", _OTHER: "0x90"}),
        Case(kind="healthy", at="60m", series={_UP: "0x90", _OTHER.replace("train", "other"): "0x90"}),
        Case(kind="healthy", at="60m", series={_UP: "1x19 0x600", _OTHER: "0x90", _RUN: "1x19 stale"}),
        Case(
            kind="firing", at="35m", series={_UP: "1x19 0x600", _OTHER: "0x90", _RUN: "1x19 stale", _PEER: "1x90"},
            fires=(Fired(labels=_LABELS, values=("0",)),),
        ),
        Case(
            kind="firing", at="35m",
            series={_UP: "1x19 0x600", _OTHER: "0x90", _RUN: "1x19 stale", _PEER.replace('"r"', '"s"'): "1x90",
                    _UP.replace("}", ', pod_phase="Failed"}'): "_x20 0x90"},
            fires=(
                Fired(labels=_LABELS, values=("0",)),
                Fired(labels={**_LABELS, "pod_phase": "Failed"}, values=("0",)),
            ),
        ),
        Case(kind="recovering", at="60m", series={_UP: "1x19 0x20 1x60", _OTHER: "0x90"}),
        Case(kind="target_gone", at="60m", series={_UP: "1x19 0x20 stale", _OTHER: "0x90"}),
    ),
)  # fmt: skip
