"""A marker: many processes of a job have just begun."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train"}


def _job(young: int, old: int, values: str = "_x30 1800x90", end: str = "") -> dict[str, str]:
    """Processes that begin at minute 30, among others that are there for long."""
    name = 'jax_process_start_timestamp_seconds{job="train", instance="%s:9464"}'
    return {
        **{name % f"young{number}": values + end for number in range(young)},
        **{name % f"old{number}": f"-9000x{40 if end else 120}{end}" for number in range(old)},
    }


ALERT = Alert(
    name="JaxDeploymentUnderWay",
    severity="info",
    concern="info",
    summary="Many processes of a job have just started.",
    description=(
        "{{ $value | humanizePercentage }} of the processes of {{ $labels.job }} are younger than a quarter of an "
        "hour."
    ),
    expr=(
        "count by (job) (time() - jax_process_start_timestamp_seconds{@} < <seconds>)\n"
        "/ count by (job) (jax_process_start_timestamp_seconds{@})\n"
        "> <share>"
    ),
    for_="1m",
    thresholds={
        "seconds": Threshold(
            value=900, unit="seconds", least=60, most=86_400,
            why="Within a quarter of an hour most programs have compiled what they need.",
        ),
        "share": Threshold(
            value=0.1, unit="ratio", least=0, most=0.99,
            why="One crash-looping process among many must not silence the alerts of the whole job.",
        ),
    },
    panel=("fleet", "restarts"),
    runbook=Runbook(
        meaning=(
            "More than `<share>` of the job's processes started less than `<seconds>` ago: a "
            "deployment, a start, or a restart of the job. This alert notifies nobody. Alertmanager "
            'uses it to silence the alerts of the same job with the label `phase="compile"`, because '
            "processes that have just started compile."
        ),
        impact="None by itself. Alerts about compilations of this job are silent while it lasts.",
        diagnosis=(
            Step(
                do="See how many processes are young.",
                query="count by (job) (time() - jax_process_start_timestamp_seconds{@} < 900)",
                answers=(
                    ("once, after a deployment", "This is expected."),
                    ("for hours", "Restarts: JaxFleetRestarts."),
                ),
            ),
            Step(
                do="See what it silences.",
                command="amtool alert query --inhibited 'phase=compile'",
                answers=(
                    ("alerts of this job", "They fire if they still hold when it is over."),
                    ("nothing", "Nothing is held back."),
                ),
            ),
        ),
        mitigation=(
            "There is nothing to do.",
            "If compile alerts must get through during a deployment, remove the inhibit rule in Alertmanager.",
        ),
        look_alikes=(
            ("Restarts that do not end", "it has held for an hour", "JaxFleetRestarts"),
            (
                "A compilation that does not end",
                "it fires anyway: it has no label `phase`",
                "JaxCompilationStuck",
            ),
        ),
        evidence=("The panel of restarts.", "The deployment's own log."),
        verify="It ends by itself when the processes are older than `<seconds>`.",
    ),
    cases=(
        Case(kind="firing", at="31m", series=_job(1, 7), fires=(Fired(labels=_LABELS, values=("12.5%",)),)),
        Case(kind="firing", at="43m", series=_job(2, 2), fires=(Fired(labels=_LABELS, values=("50%",)),)),
        Case(kind="recovering", at="46m", series=_job(2, 2)),
        Case(kind="pending", at="30m", series=_job(2, 2)),
        Case(
            kind="firing", at="32m", series=_job(10, 77),
            fires=(Fired(labels=_LABELS, values=("11.49%",)),),
        ),
        Case(kind="healthy", at="35m", series=_job(1, 10)),
        Case(kind="target_gone", at="45m", series=_job(2, 2, "_x30 1800x9", " stale")),
    ),
)  # fmt: skip
