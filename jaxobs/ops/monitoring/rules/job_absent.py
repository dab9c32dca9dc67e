"""A job that is gone although it was not done."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_UNSAVED = 'jax_run_lost_seconds{job="train", instance="a:9464", cause="at_risk"}'
_REQUESTS = 'jax_requests_total{job="train", instance="a:9464", route="/predict", cold="false", outcome="ok"}'
_LABELS = {"job": "train"}

ALERT = Alert(
    name="JaxJobAbsent",
    severity="critical",
    concern="availability",
    summary="A job is gone although it had not finished.",
    description=(
        "No process of {{ $labels.job }} is visible any more ({{ $value | humanize }} means that it "
        "served requests, or had unsaved work)."
    ),
    expr=(
        "last_over_time(job:jax_unfinished:bool{@}[6h]) == 1\n"
        "unless on (job)\n"
        "last_over_time(job:jax_processes_seen:count{@}[5m])"
    ),
    for_="10m",
    panel=("fleet", "processes"),
    runbook=Runbook(
        meaning=(
            "The job was observed within the last six hours, and now none of its processes is. When "
            "last observed, it had answered requests within five minutes, or had more than ten minutes of unsaved "
            "work. A training job that saved at its end, or has no `run_id`, is assumed to have finished; a service "
            "that was idle, to have been scaled to zero. "
            "The alert ends after six hours even if nothing was done."
        ),
        impact="The service does not respond, or the run has stopped and lost its unsaved work.",
        diagnosis=(
            Step(
                do="See whether Prometheus still knows its targets.",
                query="up{@}",
                answers=(
                    ("targets with 0", "The processes have ended, or cannot be reached."),
                    ("no targets", ("The scheduler removed them: a deletion, a preemption, or a "
                                   "broken discovery.")),
                ),
            ),
            Step(
                do="Ask the scheduler what happened to it.",
                command=(
                    "kubectl get pods -A -l app.kubernetes.io/name=JOB -o wide; "
                    "kubectl get events -A --sort-by=.lastTimestamp | tail -n 30"
                ),
                answers=(
                    ("`OOMKilled`", "The host's memory: JaxHostMemoryGrowth."),
                    ("`Preempted`, `Evicted`, node not ready", ("The cluster: the job restarts when "
                                                               "there is room.")),
                    ("`Error`, `CrashLoopBackOff`", "The program: see its log, and the flight recorder's file."),
                    ("`Running`", "It is alive but not observed: the network or the discovery."),
                    ("`Completed`", "It ended by itself: see whether that was intended."),
                ),
            ),
            Step(
                do="Read what the flight recorder wrote at the end.",
                command="ls -t last-minutes-*.txt | head -n 1 | xargs cat",
                answers=(
                    ("an exception", "That is the cause."),
                    ("no file", "Killed instantly: SIGKILL, or the host is gone."),
                ),
            ),
        ),
        mitigation=(
            "Restart it from the last checkpoint. Find the process that ended first: the others are victims.",
            "If the cluster has no room, request some, or reduce the number of hosts.",
            "If it is only not observed, repair the discovery.",
        ),
        look_alikes=(
            ("Some processes remain", "the job is still visible", "JaxTargetDown, JaxProcessCountMismatch"),
            ("A service that was taken down on purpose", "the deployment says so", "silence it for six hours"),
            ("Prometheus itself was down", "other jobs have a gap as well", "its own alerts"),
        ),
        evidence=(
            "The flight recorder's files from all hosts.",
            "The scheduler's events.",
            "Work at risk when it was last seen: `jax_run_lost_seconds`.",
        ),
        verify="Processes of the job are visible, and make steps or answer requests.",
    ),
    cases=(
        Case(
            kind="firing", at="37m", series={_START: "0x19 stale", _UNSAVED: "900x19 stale"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="pending", at="32m", series={_START: "0x19 stale", _UNSAVED: "900x19 stale"}),
        Case(
            kind="firing", at="300m", series={_START: "0x19 stale", _REQUESTS: "0+60x19 stale"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="target_gone", at="420m", series={_START: "0x19 stale", _REQUESTS: "0+60x19 stale"}),
        Case(kind="healthy", at="45m", series={_START: "0x19 stale", _REQUESTS: "0+60x12 720x6 stale"}),
        Case(
            kind="counter_reset", at="45m",
            series={_START: "0x10 600x15 stale", _REQUESTS: "0+60x10 0+60x15 stale"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="job_finished", at="45m", series={_START: "0x19 stale", _UNSAVED: "900x15 5x3 stale"}),
        Case(kind="healthy", at="45m", series={_START: "0x90", _UNSAVED: "900x90"}),
        Case(
            kind="healthy", at="60m",
            series={_START: "0x19 stale _x13 2000x60", _REQUESTS: "0+60x19 stale _x13 0+60x60"},
        ),
        Case(
            kind="recovering", at="70m",
            series={_START: "0x19 stale _x30 3000x60", _REQUESTS: "0+60x19 stale _x30 0+60x60"},
        ),
    ),
)  # fmt: skip
