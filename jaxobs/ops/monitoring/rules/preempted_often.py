"""A run that is ended by signals again and again, as by preemptions, and gets nowhere."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_WHOSE = 'job="train", instance="a:9464"'
_START = f"jax_process_start_timestamp_seconds{{{_WHOSE}}}"
_RUN = f'jax_run_info{{{_WHOSE}, run_id="r", last_exit="signal"}}'
_SERVED = f"jax_requests_in_flight{{{_WHOSE}}}"
_LABELS = {"job": "train"}
_LOOP = "0x8 540x8 1080x8 1620x8 2160x8 2700x8 3240x120"
"""A process that lives nine minutes, and begins again."""


def _new_addresses(lives: int, last_exit: str = "signal", index: int = 0) -> dict[str, str]:
    """One process after the other, ten minutes each, at addresses of their own; the first found nothing before it."""
    found = {}
    for number in range(1, lives + 1):
        whose = f'job="train", instance="{number}:9464"'
        values = f"_x{number * 10} 1x9 stale"
        known = last_exit if number > 1 else ""
        found[f'jax_run_info{{{whose}, run_id="r", last_exit="{known}"}}'] = values
        found[f'jax_process_info{{{whose}, process_index="{index}", process_count="1"}}'] = values
    return found


ALERT = Alert(
    name="JaxPreemptedOften",
    severity="warning",
    concern="availability",
    summary="A run is ended by signals again and again.",
    description="{{ $labels.job }} was ended by a signal {{ $value | humanize }} times in the last hour.",
    expr="max without (instance) (job_instance:jax_preemptions:max1h{@}) >= <preemptions>",
    for_="1m",
    keep_firing_for="15m",
    thresholds={
        "preemptions": Threshold(
            value=5, unit="count", least=2, most=1000,
            why=(
                "Capacity that is preempted now and then is normal, and a schedule starts a job at most four times an "
                "hour. A run that loses its machines every nine minutes gets here within an hour."
            ),
        )
    },
    panel=("fleet", "preemptions"),
    runbook=Runbook(
        meaning=(
            "Within an hour, at least `<preemptions>` times a process of the job found that a signal had ended the one "
            "before it: SIGTERM, as a preemption or a drained node sends it. Processes know that from their files "
            "(`last_exit` of `jax_run_info`), which need a directory that survives them: the setting `event_log` or "
            "`flight_recorder`. Crashes count for JaxCrashLoop instead, and replicas of a service do not count."
        ),
        impact=(
            "Each life initializes, compiles and loads a checkpoint first. If it ends before the next checkpoint, the "
            "run makes no progress and keeps its accelerators."
        ),
        diagnosis=(
            Step(
                do="See how much of a life goes into its start.",
                query=(
                    'sum by (job, instance, category) (jax_time_seconds_total{@, '
                    'category=~"init|unattributed|compile|cache_load|step"})'
                ),
                answers=(
                    ("mostly `step`", "It makes some progress: see the next step."),
                    ("mostly `init` and `compile`", "It makes no progress: warm the persistent cache, or move it."),
                ),
            ),
            Step(
                do="Ask the scheduler who sends the signal.",
                command="kubectl get events -A --sort-by=.lastTimestamp | tail -n 30; kubectl get nodes",
                answers=(
                    ("`Preempted`, `TerminationByKubelet`", "Capacity: spot machines, or a job of a higher priority."),
                    ("`Killing`, `Unhealthy`", "A liveness probe: the process does not answer in time."),
                    ("`Evicted`", "Memory or disk of the node: JaxHostMemoryGrowth."),
                ),
            ),
        ),
        mitigation=(
            "Move the run to capacity that is not preempted, or raise its priority.",
            "Save more often than it is preempted, and warm the persistent cache, so that each life gets somewhere.",
            "If a probe kills it, allow it more time.",
        ),
        look_alikes=(
            ("The program crashes", "`last_exit` is `error` or `killed`", "JaxCrashLoop"),
            ("The run does not come back", "no process is seen", "JaxTrainingGone"),
        ),
        evidence=("The scheduler's events of the last hour.", "Steps and checkpoints of the last three lives."),
        verify="No process of the job was ended by a signal for an hour, and the step of the last checkpoint rises.",
    ),
    cases=(
        Case(
            kind="firing", at="46m", series={_START: _LOOP, _RUN: "1x200"},
            fires=(Fired(labels=_LABELS, values=("5",)),),
        ),
        Case(kind="pending", at="45m", series={_START: _LOOP, _RUN: "1x200"}),
        Case(
            kind="healthy", at="50m", series={_START: "0x9 600x9 1200x9 1800x9 2400x90", _RUN: "1x200"},
        ),
        Case(kind="healthy", at="50m", series={_START: _LOOP, _RUN.replace("signal", "normal"): "1x200"}),
        Case(kind="healthy", at="50m", series={_START: _LOOP, _RUN: "1x200", _SERVED: "0x200"}),
        Case(kind="firing", at="64m", series=_new_addresses(6), fires=(Fired(labels=_LABELS, values=("5",)),)),
        Case(kind="healthy", at="64m", series=_new_addresses(6, "error")),
        Case(kind="healthy", at="64m", series=_new_addresses(6, index=1)),
        Case(kind="recovering", at="150m", series={_START: _LOOP, _RUN: "1x200"}),
        Case(
            kind="target_gone", at="140m",
            series={_START: _LOOP.replace("3240x120", "3240x8 stale"), _RUN: "1x62 stale"},
        ),
    ),
)  # fmt: skip
