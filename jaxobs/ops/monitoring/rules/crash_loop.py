"""A job whose processes crash again and again, and get nowhere."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train"}
_LOOP = "0x8 540x8 1080x8 1620x8 2160x8 2700x8 3240x120"
"""A process that lives nine minutes, and begins again."""

ALERT = Alert(
    name="JaxCrashLoop",
    severity="critical",
    concern="availability",
    summary="A job is in a crash loop.",
    description="Processes of {{ $labels.job }} crashed {{ $value | humanize }} times in the last hour.",
    expr="job:jax_crashes:max1h{@} >= <crashes>",
    for_="1m",
    keep_firing_for="15m",
    thresholds={
        "crashes": Threshold(
            value=5, unit="count", least=2, most=1000,
            why=(
                "A deployment restarts a process once, a schedule at most four times an hour; a process that crashes "
                "every nine minutes gets here within an hour."
            ),
        )
    },
    panel=("fleet", "crashes"),
    runbook=Runbook(
        meaning=(
            "Within an hour, one address of the job had at least `<crashes>` restarts, each within eight minutes of "
            "the last sign of life; or, if each restart has a new address, as many starts found that the one before "
            "them had crashed (`last_exit` of `jax_run_info`, which needs a directory that survives the process: the "
            "setting `event_log`). Ends known as normal, or by a signal such as a preemption's, do not count. From "
            "three on, JaxFleetRestarts opens a ticket."
        ),
        impact="The job makes no lasting progress: each life ends before, or soon after, its next checkpoint.",
        diagnosis=(
            Step(
                do="See how the processes ended, as the ones after them know.",
                query='count by (job, last_exit) (last_over_time(jax_run_info{@, last_exit!=""}[1h]))',
                answers=(
                    ("`error`", "An exception: read it in the next step."),
                    ("`out_of_memory`", "JaxOutOfMemory, or the host's memory: JaxHostMemoryGrowth."),
                    ("`killed`", "SIGKILL: a probe, the kernel, or the machine. See the next step."),
                    ("nothing", "No file says so: set `event_log` to a directory that survives the process."),
                ),
            ),
            Step(
                do="Read why the latest ones ended.",
                command=(
                    "ls -t last-minutes-*.txt out-of-memory-*.txt | head -n 3 | xargs cat; kubectl describe pod POD | "
                    "grep -A 5 'Last State'"
                ),
                answers=(
                    ("an exception", "The program: read its text, and see what was deployed."),
                    ("`OOMKilled`", "The host's memory: JaxHostMemoryGrowth."),
                    ("exit 137 and nothing else", "A probe kills it: the start takes longer than the probe allows."),
                ),
            ),
        ),
        mitigation=(
            "Stop the job, or scale it to zero: restarts repeat the same failure and wear out the scheduler.",
            "If a deployment caused it, roll back.",
            "If a checkpoint or a batch cannot be read, start from the one before it.",
        ),
        look_alikes=(
            ("A schedule that starts a job often", "it ends normally: `last_exit` is `normal`",
             "give it a directory for files, so that it can say so"),
            ("Preemptions", "`last_exit` is `signal`", "the scheduler; the job resumes"),
        ),
        evidence=("The flight recorder's files of the last three lives.", "The scheduler's events.",
                  "What was deployed last."),
        verify="No process of the job restarts for an hour, and steps or requests are counted.",
    ),
    cases=(
        Case(kind="firing", at="46m", series={_START: _LOOP}, fires=(Fired(labels=_LABELS, values=("5",)),)),
        Case(kind="pending", at="45m", series={_START: _LOOP}),
        Case(kind="healthy", at="50m", series={_START: "0x9 600x9 1200x9 1800x9 2400x90"}),
        Case(kind="healthy", at="140m", series={_START: " ".join(f"{n * 900}x4 _x10" for n in range(10))}),
        Case(
            kind="healthy", at="50m",
            series={_START: _LOOP, _START.replace("process_start_timestamp_seconds", "run_info").replace(
                "}", ', run_id="", last_exit="normal"}'): "1x120"},
        ),
        Case(kind="recovering", at="150m", series={_START: _LOOP}),
        Case(kind="target_gone", at="140m", series={_START: _LOOP.replace("3240x120", "3240x8 stale")}),
    ),
)  # fmt: skip
