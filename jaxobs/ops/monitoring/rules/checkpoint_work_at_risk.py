"""A run with far more unsaved work than usual."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'jax_run_lost_seconds{job="train", instance="a:9464", cause="at_risk"}'
_LABELS = {"job": "train"}

ALERT = Alert(
    name="JaxCheckpointWorkAtRisk",
    severity="warning",
    concern="availability",
    summary="A run has far more unsaved work than it typically has.",
    description=(
        "{{ $labels.job }} would lose {{ $value | humanizeDuration }} of work if it ended now: no "
        "checkpoint was saved for that long."
    ),
    expr=(
        "(job:jax_run_unsaved_seconds:max{@}\n"
        "  > <factor> * sum without (instance) (job_instance:jax_run_unsaved_seconds:median1d_max{@})) > <seconds>\n"
        "or\n"
        "job:jax_run_unsaved_seconds:max{@} > <most>"
    ),
    for_="5m",
    thresholds={
        "factor": Threshold(
            value=4, unit="factor", least=2.1, most=1000,
            why=("Between checkpoints, the median is half of the interval: four times that means that "
                "one checkpoint was missed."),
        ),
        "seconds": Threshold(
            value=1800, unit="seconds", least=0, most=2_592_000,
            why="Less than half an hour of work is not worth getting up for.",
        ),
        "most": Threshold(
            value=14_400, unit="seconds", least=60, most=2_592_000,
            why="Four hours of a job's accelerators is too much in any case, even for runs that never saved.",
        ),
    },
    panel=("debug", "checkpoints"),
    runbook=Runbook(
        meaning=(
            "The work since the run's last checkpoint is more than `<factor>` its median of "
            "the last day and more than `<seconds>`; or more than `<most>`, whatever the median. "
            "Only runs with a `run_id` report this."
        ),
        impact=(
            "Nothing is lost yet. If a host dies now, all of that work must be repeated, on all "
            "accelerators of the job."
        ),
        diagnosis=(
            Step(
                do="See when checkpoints were last made, and how long they took.",
                query="sum by (job, instance, operation) (increase(jax_checkpoint_seconds_count{@}[6h]))",
                answers=(
                    (
                        "`save` and `save_async` at 0",
                        "The program no longer saves: an error that it swallowed, or its schedule.",
                    ),
                    ("`save_async` at its typical rate", "Saves start but do not end: see the next step."),
                ),
            ),
            Step(
                do="See whether the program waits for a save that does not end.",
                query='sum by (job, instance) (rate(jax_time_seconds_total{@, category="checkpoint"}[15m]))',
                answers=(
                    ("near 1", "It hangs while saving: the storage is slow or gone."),
                    ("near 0", "It continues to train without saving."),
                ),
            ),
            Step(
                do="Look for messages of the checkpointer.",
                command="grep -iE 'checkpoint|orbax|No space|Permission|Quota' LOG | tail -n 30",
                answers=(
                    ("`No space`, `Quota`", "Make room: delete old checkpoints."),
                    ("`Permission`, `403`", "The credentials have expired."),
                    ("nothing", "Look at the schedule: does it count steps, and did steps get slower?"),
                ),
            ),
        ),
        mitigation=(
            "Repair the storage or its credentials; most checkpointers retry at the next interval.",
            "If the program has a signal or a switch to save immediately, use it once the storage works.",
            "Do not stop the job before it has saved.",
            "If steps got slower, save by time rather than by steps.",
        ),
        look_alikes=(
            ("Steps do not complete either", "`jax_steps_total` does not rise", "JaxStepsStalled"),
            (
                "Saving takes long but succeeds",
                "the work at risk drops each time",
                "JaxGoodputLow, if it costs too much",
            ),
            ("A run that was configured to save less often", "the median follows within a day", "raise the threshold"),
        ),
        evidence=(
            "The panel over a day.",
            "The checkpointer's latest messages.",
            "Free space and permissions of the directory or bucket.",
        ),
        verify="The work at risk has dropped to a few minutes: a checkpoint was committed.",
    ),
    cases=(
        Case(
            kind="firing", at="118m",
            series={_SERIES: "600x110 2500x90"},
            fires=(Fired(labels=_LABELS, values=("41m 40s",)),),
        ),
        Case(kind="pending", at="114m", series={_SERIES: "600x110 2500x90"}),
        Case(kind="healthy", at="130m", series={_SERIES: "600x110 2100x90"}),
        Case(
            kind="firing", at="120m",
            series={_SERIES: "100x110 2000x90"},
            fires=(Fired(labels=_LABELS, values=("33m 20s",)),),
        ),
        Case(kind="healthy", at="120m", series={_SERIES: "100x110 1600x90"}),
        Case(
            kind="firing", at="30m",
            series={_SERIES: "15000x90"},
            fires=(Fired(labels=_LABELS, values=("4h 10m 0s",)),),
        ),
        Case(kind="healthy", at="30m", series={_SERIES: "13000x90"}),
        Case(kind="recovering", at="130m", series={_SERIES: "600x110 2500x9 10x90"}),
        Case(kind="target_gone", at="140m", series={_SERIES: "600x110 2500x9 stale"}),
    ),
    needs="run_id",
)  # fmt: skip
