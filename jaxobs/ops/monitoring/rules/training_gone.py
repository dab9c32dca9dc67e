"""A training job that vanished in the middle of its work."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_WHOSE = 'job="train", instance="a:9464"'
_START = f"jax_process_start_timestamp_seconds{{{_WHOSE}}}"
_STEPS = f'jax_steps_total{{{_WHOSE}, loop="train"}}'
_SAVING = f'jax_time_seconds_total{{{_WHOSE}, category="checkpoint"}}'
_UP = f"up{{{_WHOSE}}}"
_COUNT = f"jax_processes{{{_WHOSE}}}"
_LABELS = {"job": "train"}


def _trained(minutes: int = 60, **more: str) -> dict[str, str]:
    """Steps for so long, and then nothing at all; `up` and `saving` are values of their own."""
    named = {_UP: more.get("up", f"1x{minutes} stale"), _SAVING: more.get("saving", f"0x{minutes} stale")}
    return {_START: f"0x{minutes} stale", _STEPS: f"0+60x{minutes} stale", _COUNT: f"2x{minutes} stale", **named}


ALERT = Alert(
    name="JaxTrainingGone",
    severity="warning",
    concern="availability",
    summary="A training job vanished in the middle of its work.",
    description=(
        "All processes of {{ $labels.job }} and their targets are gone ({{ $value | humanize }} job). They were making "
        "steps when they were last seen, and neither saved nor evaluated, as a job does that ends."
    ),
    expr=(
        "last_over_time(job:jax_trained:bool{@}[1h]) == 1\n"
        "unless on (job) last_over_time(job:jax_processes_seen:count{@}[10m])\n"
        "unless on (job) last_over_time(up{@}[10m])\n"
        "unless on (job) last_over_time(job:jax_serving:bool{@}[6h])"
    ),
    for_="5m",
    panel=("fleet", "processes"),
    runbook=Runbook(
        meaning=(
            "A training job of several processes that had run for half an hour, or one of a single process that had "
            "run for six hours, and in its last five minutes made steps but no checkpoint and no evaluation, is not "
            "visible any more, and its targets are gone from Prometheus as well. A pod that ended stays a target for "
            "as long as it exists, so these were deleted, evicted or lost with their node. "
            "With a `run_id`, JaxJobAbsent pages as soon as ten minutes of work are lost. The alert ends after an hour."
        ),
        impact="The run has stopped, and its work since the last checkpoint is lost.",
        diagnosis=(
            Step(
                do="Ask the scheduler what became of it.",
                command="kubectl get events --sort-by=.lastTimestamp | tail -n 30; kubectl get nodes",
                answers=(
                    ("`Preempted`, `Evicted`, a node that is not ready", "The cluster: does the job come back?"),
                    ("`Killing`", "Somebody deleted it: ask who."),
                    ("`Completed`", "It ended: keep ended targets for ten minutes, so that this is visible."),
                ),
            ),
            Step(
                do="See when it was last seen, and with how many processes.",
                query="count by (job) (last_over_time(jax_process_start_timestamp_seconds{@}[1h]))",
                answers=(("all at once", "The job was deleted."), ("one after the other", "A process ended first.")),
            ),
        ),
        mitigation=(
            "Restart it from its last checkpoint.",
            "Set a `run_id`, so that what is lost is known.",
        ),
        look_alikes=(
            ("A service", "it answered requests", "JaxJobAbsent"),
            ("A job that was stopped on purpose", "somebody says so", "nothing: the alert ends by itself"),
            ("A job that finished", "its targets remain, or it saved at its end", "nothing: this alert knows"),
        ),
        evidence=("The scheduler's events.", "The flight recorder's files from all hosts, if the disks are left."),
        verify="Processes of the job are visible and make steps, or somebody stopped it on purpose.",
    ),
    cases=(
        Case(kind="firing", at="80m", series=_trained(), fires=(Fired(labels=_LABELS, values=("1",)),)),
        Case(kind="firing", at="110m", series=_trained(), fires=(Fired(labels=_LABELS, values=("1",)),)),
        Case(kind="pending", at="74m", series=_trained()),
        Case(kind="pending", at="74m", series={name: each for name, each in _trained().items() if name != _UP}),
        Case(kind="pending", at="77m", series=_trained(up="1x64 stale")),
        Case(kind="healthy", at="80m", series={**_trained(), _COUNT: "1x60 stale"}),
        Case(
            kind="firing", at="390m", series={**_trained(370), _COUNT: "1x370 stale"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="healthy", at="370m", series={**_trained(350), _COUNT: "1x350 stale"}),
        Case(kind="healthy", at="60m", series=_trained(90)),
        Case(kind="healthy", at="45m", series=_trained(20)),
        Case(kind="healthy", at="80m", series={**_trained(), _START: "0x60 stale _x8 4000x40"}),
        Case(kind="healthy", at="80m", series={**_trained(), f"jax_requests_in_flight{{{_WHOSE}}}": "0x60 stale"}),
        Case(kind="healthy", at="320m", series={**_trained(300), f"jax_requests_in_flight{{{_WHOSE}}}": "0x60 stale"}),
        Case(kind="job_finished", at="80m", series=_trained(up="1x60 0x60")),
        Case(kind="job_finished", at="80m", series=_trained(saving="0x50 30+30x9 stale")),
        Case(kind="recovering", at="90m", series={**_trained(), _START: "0x60 stale _x21 5000x40"}),
        Case(kind="target_gone", at="125m", series=_trained()),
        Case(
            kind="counter_reset", at="80m", series={**_trained(), _STEPS: "0+60x40 0+60x18 stale"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
    ),
    needs="steps",
)  # fmt: skip
