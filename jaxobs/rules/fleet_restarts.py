"""Processes of a job that begin again and again."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train"}


def _new_addresses(lives: int, minutes: int) -> dict[str, str]:
    """One process after the other, each at an address of its own."""
    return {
        _START.replace("a:", f"{number}:"): f"_x{number * minutes} {number * minutes * 60}x{minutes - 1} stale"
        for number in range(1, lives + 1)
    }


ALERT = Alert(
    name="JaxFleetRestarts",
    severity="warning",
    concern="availability",
    summary="Processes of a job begin again and again.",
    description="Processes of {{ $labels.job }} were restarted {{ $value | humanize }} times in the last hour.",
    expr=(
        "job:jax_process_restarts:max1h{@} >= <restarts>\n"
        "or\n"
        "job:jax_process_replacements:ratio1h{@} >= <restarts>"
    ),
    for_="1m",
    keep_firing_for="15m",
    thresholds={
        "restarts": Threshold(
            value=3, unit="count", least=1, most=1000,
            why="A deployment restarts each process once, and a mishap once more; three within an hour is a loop.",
        )
    },
    panel=("fleet", "restarts"),
    runbook=Runbook(
        meaning=(
            "Within an hour one address of the job had at least `<restarts>` restarts; or, where each restart has a "
            "new address, "
            "as many processes went for each one that is there now."
        ),
        impact=(
            "Each start costs initialisation and compilation, and what was not saved. A job that never reaches its "
            "next "
            "checkpoint does not get on at all."
        ),
        diagnosis=(
            Step(
                do="See which processes are young, and whether it is one or all.",
                query="time() - jax_process_start_timestamp_seconds{@} < 3600",
                answers=(
                    ("all of the job, equally old", "The job crashes as a whole: find the process that ends first."),
                    ("one", "Its host, or its part of the work."),
                ),
            ),
            Step(
                do="Read why the last ones ended.",
                command=(
                    "ls -t last-minutes-*.txt out-of-memory-*.txt | head -n 3 | xargs cat; kubectl describe pod POD | "
                    "grep -A 5 'Last State'"
                ),
                answers=(
                    ("RESOURCE_EXHAUSTED", "JaxOutOfMemory."),
                    ("`OOMKilled`", "The host's memory: JaxHostMemoryGrowth."),
                    ("an exception", "The program: its text, and what was deployed."),
                    (
                        "exit 137 without more",
                        "A probe that kills: the start takes longer than it allows, by compilation perhaps.",
                    ),
                ),
            ),
            Step(
                do="See how long they live before, against how long they take to start.",
                query=(
                    'sum by (job, instance, category) (jax_time_seconds_total{@, '
                    'category=~"init|compile|cache_load|step"})'
                ),
                answers=(
                    ("no `step` at all", "They end before their first step: the start, or a probe."),
                    ("always after as many steps", "One batch or one evaluation: look at what comes then."),
                ),
            ),
        ),
        mitigation=(
            "If a deployment brought it, roll back.",
            "Stop the loop if it makes no progress: it burns accelerators and may overwrite good checkpoints.",
            "Raise the start-up probe's time, or warm the compilation cache.",
            "Take a host out that ends its process each time.",
        ),
        look_alikes=(
            ("A deployment", "each process began once", "JaxDeploymentUnderWay"),
            ("The job is gone for good", "no process is seen", "JaxJobAbsent"),
            ("Scaling up and down", "the number of processes changes", "the autoscaler: it is too nervous"),
        ),
        evidence=(
            "The flight recorder's files of the last three ends.",
            "The scheduler's events.",
            "Versions before and after.",
        ),
        verify="No process of the job is restarted for an hour, and steps or requests are counted.",
    ),
    cases=(
        Case(
            kind="firing", at="42m", series={_START: "0x9 600x9 1200x9 1800x9 2400x90"},
            fires=(Fired(labels=_LABELS, values=("4",)),),
        ),
        Case(
            kind="firing", at="31m", series={_START: "0x9 600x9 1200x9 1800x90"},
            fires=(Fired(labels=_LABELS, values=("3",)),),
        ),
        Case(kind="pending", at="30m", series={_START: "0x9 600x9 1200x9 1800x90"}),
        Case(kind="healthy", at="40m", series={_START: "0x9 600x9 1200x90"}),
        Case(kind="healthy", at="40m", series={_START: "0x9 0.25x9 0x9 0.5x9 0x90"}),
        Case(
            kind="firing", at="44m", series=_new_addresses(4, 10),
            fires=(Fired(labels=_LABELS, values=("3",)),),
        ),
        Case(kind="healthy", at="34m", series=_new_addresses(3, 10)),
        Case(kind="recovering", at="110m", series={_START: "0x9 600x9 1200x9 1800x90"}),
        Case(kind="target_gone", at="120m", series={_START: "0x9 600x9 1200x9 1800x9 stale"}),
    ),
)  # fmt: skip
