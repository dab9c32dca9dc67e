"""A run with far more unsaved work than usual."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

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
    texts=Beside(__name__),
)  # fmt: skip
