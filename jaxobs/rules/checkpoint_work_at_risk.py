"""A run with far more unsaved work than usual."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'jax_run_lost_seconds{job="train", instance="a:9464", cause="at_risk"}'
_LABELS = {"job": "train"}

ALERT = Alert(
    name="JaxCheckpointWorkAtRisk",
    severity="warning",
    concern="availability",
    summary="A run has far more unsaved work than usual.",
    description=(
        "{{ $labels.job }} would lose {{ $value | humanizeDuration }} of work if it ended now: no checkpoint was "
        "saved for that long."
    ),
    expr=(
        "(job:jax_run_unsaved_seconds:max{@} > <factor> * job:jax_run_unsaved_seconds:median1d_max{@}) > <seconds>\n"
        "or\n"
        "job:jax_run_unsaved_seconds:max{@} > <most>"
    ),
    for_="5m",
    thresholds={
        "factor": Threshold(
            value=4, unit="factor", least=2.1, most=1000,
            why="Between checkpoints the median is half of the interval: four times it is one checkpoint missed.",
        ),
        "seconds": Threshold(
            value=1800, unit="seconds", least=0, most=2_592_000,
            why="Less than half an hour is not worth getting up for.",
        ),
        "most": Threshold(
            value=14_400, unit="seconds", least=60, most=2_592_000,
            why="Four hours of a job's accelerators, whatever is usual: also for runs that never saved.",
        ),
    },
    panel=("debug", "checkpoints"),
    runbook=Runbook(
        meaning=(
            "The work of the run since its last checkpoint is more than `<factor>` times its median of the last day "
            "and more than "
            "`<seconds>`; or more than `<most>`, whatever is usual. Only runs with a `run_id` tell it."
        ),
        impact=(
            "Nothing is lost yet. If a host dies now, all of that work is done again, on all accelerators of the job."
        ),
        diagnosis=(
            Step(
                do="See when checkpoints were last made, and how long they took.",
                query="sum by (job, instance, operation) (increase(jax_checkpoint_seconds_count{@}[6h]))",
                answers=(
                    (
                        "`save` and `save_async` at 0",
                        "The program does not save any more: an error that it swallowed, or its schedule.",
                    ),
                    ("`save_async` as usual", "They begin and do not end: see the next step."),
                ),
            ),
            Step(
                do="See whether the program waits for a save that does not end.",
                query='sum by (job, instance) (rate(jax_time_seconds_total{@, category="checkpoint"}[15m]))',
                answers=(
                    ("near 1", "It hangs in saving: the storage is slow or gone."),
                    ("near 0", "It trains on, and does not save."),
                ),
            ),
            Step(
                do="Look for what the checkpointer says.",
                command="grep -iE 'checkpoint|orbax|No space|Permission|Quota' LOG | tail -n 30",
                answers=(
                    ("`No space`, `Quota`", "Make room: delete old checkpoints."),
                    ("`Permission`, `403`", "Credentials ran out."),
                    ("nothing", "Look at the schedule: by steps, while steps got slower?"),
                ),
            ),
        ),
        mitigation=(
            "Repair the storage or its credentials; most checkpointers try again at the next interval.",
            "If the program has a signal or a switch for saving now, use it once the storage works.",
            "Do not stop the job before it has saved.",
            "If steps got slower, save by time rather than by steps.",
        ),
        look_alikes=(
            ("Steps do not end either", "`jax_steps_total` stands still", "JaxStepsStalled"),
            (
                "Saving takes long, but succeeds",
                "the work at risk falls back each time",
                "JaxGoodputLow, if it costs too much",
            ),
            ("A run that was told to save less often", "the median follows within a day", "raise the threshold"),
        ),
        evidence=(
            "The panel over a day.",
            "The checkpointer's last messages.",
            "Free space and rights of the directory or bucket.",
        ),
        verify="The work at risk has fallen back to a few minutes: a checkpoint was committed.",
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
