"""Processes of a job that begin again and again."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train"}


def _new_addresses(lives: int, minutes: int, last_exit: str = "error") -> dict[str, str]:
    """One process after the other, each at an address of its own; the first found nothing before it."""
    found = {}
    for number in range(1, lives + 1):
        whose = f'job="train", instance="{number}:9464"'
        values = f"_x{number * minutes} 1x{minutes - 1} stale"
        known = last_exit if number > 1 else ""
        found[f'jax_run_info{{{whose}, run_id="r", last_exit="{known}"}}'] = values
        found[f'jax_process_info{{{whose}, process_index="0", process_count="1"}}'] = values
    return found


ALERT = Alert(
    name="JaxFleetRestarts",
    severity="warning",
    concern="availability",
    summary="Processes of a job keep restarting.",
    description="Processes of {{ $labels.job }} were restarted {{ $value | humanize }} times in the last hour.",
    expr=(
        "job:jax_crashes:max1h{@} >= <restarts>"
    ),
    for_="1m",
    keep_firing_for="15m",
    thresholds={
        "restarts": Threshold(
            value=3, unit="count", least=1, most=1000,
            why=("A deployment restarts each process once, and an accident once more; three restarts "
                "within an hour are a loop."),
        )
    },
    panel=("fleet", "crashes"),
    runbook=Runbook(
        meaning=(
            "Within an hour, one address of the job had at least `<restarts>` restarts, each within eight minutes of "
            "the last sign of life; or, if each restart has a new address, as many starts found that the one before "
            "them had crashed (`last_exit` of `jax_run_info`). Ends known as normal, or by a signal such as a "
            "preemption's, do not count; nor does a job that a schedule starts again after a pause. From five on, "
            "JaxCrashLoop pages."
        ),
        impact=(
            "Each start costs initialization, compilation and unsaved work. A job that never reaches "
            "its next checkpoint makes no progress."
        ),
        diagnosis=(
            Step(
                do="See which processes are young, and whether it is one or all.",
                query="time() - jax_process_start_timestamp_seconds{@} < 3600",
                answers=(
                    ("all of the job, equally old", "The whole job crashes: find the process that ends first."),
                    ("one", "Its host, or its part of the work."),
                ),
            ),
            Step(
                do="Read why the latest ones ended.",
                command=(
                    "ls -t last-minutes-*.txt out-of-memory-*.txt | head -n 3 | xargs cat; kubectl describe pod POD | "
                    "grep -A 5 'Last State'"
                ),
                answers=(
                    ("RESOURCE_EXHAUSTED", "JaxOutOfMemory."),
                    ("`OOMKilled`", "The host's memory: JaxHostMemoryGrowth."),
                    ("an exception", "The program: read its text, and see what was deployed."),
                    (
                        "exit 137 and nothing else",
                        ("A probe kills it: the start takes longer than the probe allows, perhaps "
                        "because of compilation."),
                    ),
                ),
            ),
            Step(
                do="Compare how long they live with how long they take to start.",
                query=(
                    'sum by (job, instance, category) (jax_time_seconds_total{@, '
                    'category=~"init|unattributed|compile|cache_load|step"})'
                ),
                answers=(
                    ("no `step` at all", "They end before their first step: the start, or a probe."),
                    ("always after the same number of steps", "One batch or one evaluation: look at what comes then."),
                ),
            ),
        ),
        mitigation=(
            "If a deployment caused it, roll back.",
            "Stop the loop if it makes no progress: it wastes accelerators and may overwrite good checkpoints.",
            "Raise the time limit of the start-up probe, or warm the persistent cache.",
            "Take out a host that ends its process each time.",
        ),
        look_alikes=(
            ("A deployment", "each process started once", "JaxDeploymentUnderWay"),
            ("The job is gone for good", "no process is seen", "JaxJobAbsent"),
            ("Scaling up and down", "the number of processes changes", "the autoscaler reacts too strongly"),
        ),
        evidence=(
            "The flight recorder's files of the last three endings.",
            "The scheduler's events.",
            "Versions before and after.",
        ),
        verify="No process of the job restarts for an hour, and steps or requests are counted.",
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
        Case(kind="healthy", at="50m", series=_new_addresses(5, 10, "normal")),
        Case(kind="recovering", at="110m", series={_START: "0x9 600x9 1200x9 1800x90"}),
        Case(kind="target_gone", at="120m", series={_START: "0x9 600x9 1200x9 1800x9 stale"}),
    ),
)  # fmt: skip
