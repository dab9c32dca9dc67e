"""A job that is gone although it was not done."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step

_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_UNSAVED = 'jax_run_lost_seconds{job="train", instance="a:9464", cause="at_risk"}'
_REQUESTS = 'jax_requests_in_flight{job="train", instance="a:9464"}'
_LABELS = {"job": "train"}

ALERT = Alert(
    name="JaxJobAbsent",
    severity="critical",
    concern="availability",
    summary="A job is gone although it was not done.",
    description=(
        "No process of {{ $labels.job }} is seen any more ({{ $value | humanize }} means that it served requests, or "
        "had work unsaved)."
    ),
    expr=(
        "last_over_time(job:jax_unfinished:bool{@}[6h]) == 1\n"
        "unless on (job)\n"
        "last_over_time(job:jax_processes_seen:count{@}[5m])"
    ),
    for_="10m",
    panel=("oncall", "targets"),
    runbook=Runbook(
        meaning=(
            "Within the last six hours the job was observed, and now none of its processes is. When last seen it "
            "served requests, "
            "or had more than ten minutes of work that no checkpoint held. A training job that saved at its end, or "
            "has no "
            "`run_id`, is taken for finished. It ends after six hours even if nothing was done."
        ),
        impact="The service does not answer, or the run has stopped and lost what it had not saved.",
        diagnosis=(
            Step(
                do="See whether Prometheus still knows targets of it.",
                query="up{@}",
                answers=(
                    ("targets with 0", "The processes ended, or cannot be reached."),
                    ("no targets", "The scheduler removed them: a deletion, a preemption, or a discovery that broke."),
                ),
            ),
            Step(
                do="Ask the scheduler what became of it.",
                command="kubectl get pods -l app=JOB -o wide; kubectl get events --sort-by=.lastTimestamp | tail -n 30",
                answers=(
                    ("`OOMKilled`", "The host's memory: JaxHostMemoryGrowth."),
                    ("`Preempted`, `Evicted`, node not ready", "The cluster: it starts again when there is room."),
                    ("`Error`, `CrashLoopBackOff`", "The program: its log, and the flight recorder's file."),
                    ("`Running`", "It lives, and is not observed: the network or the discovery."),
                    ("`Completed`", "It ended by itself: see whether it was to end."),
                ),
            ),
            Step(
                do="Read what the flight recorder wrote when it ended.",
                command="ls -t last-minutes-*.txt | head -n 1 | xargs cat",
                answers=(
                    ("an exception", "That is why."),
                    ("no file", "Killed at once: SIGKILL, or the host is gone."),
                ),
            ),
        ),
        mitigation=(
            "Start it again, from the last checkpoint. Find the process that ended first: the others are victims.",
            "If the cluster has no room, ask for it, or reduce the number of hosts.",
            "If it is not observed only, repair the discovery.",
        ),
        look_alikes=(
            ("Some processes are left", "the job is still seen", "JaxTargetDown, JaxProcessCountMismatch"),
            ("A service that was taken down on purpose", "the deployment says so", "silence it for six hours"),
            ("Prometheus itself was away", "other jobs have a gap as well", "its own alerts"),
        ),
        evidence=(
            "The flight recorder's files of all hosts.",
            "The scheduler's events.",
            "Work at risk when it was last seen: `jax_run_lost_seconds`.",
        ),
        verify="Processes of the job are seen, and make steps or answer requests.",
    ),
    cases=(
        Case(
            kind="firing", at="37m", series={_START: "0x19 stale", _UNSAVED: "900x19 stale"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="pending", at="32m", series={_START: "0x19 stale", _UNSAVED: "900x19 stale"}),
        Case(
            kind="firing", at="300m", series={_START: "0x19 stale", _REQUESTS: "0x19 stale"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="target_gone", at="420m", series={_START: "0x19 stale", _REQUESTS: "0x19 stale"}),
        Case(kind="job_finished", at="45m", series={_START: "0x19 stale", _UNSAVED: "900x15 5x3 stale"}),
        Case(kind="healthy", at="45m", series={_START: "0x90", _UNSAVED: "900x90"}),
        Case(kind="healthy", at="60m", series={_START: "0x19 stale _x13 2000x60", _REQUESTS: "0x19 stale _x13 0x60"}),
        Case(
            kind="recovering", at="70m",
            series={_START: "0x19 stale _x30 3000x60", _REQUESTS: "0x19 stale _x30 0x60"},
        ),
    ),
)  # fmt: skip
