"""Steps that take longer than in the last week."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxStepTimeRegression",
    severity="warning",
    concern="performance",
    summary="Steps take longer than in the last week.",
    description=(
        "The steps of {{ $labels.loop }} ({{ $labels.job }}) take {{ $value | humanizeDuration }} in "
        "the median process, far more than the median of the last week."
    ),
    expr=(
        "job_run_id_loop:jax_step_seconds:median30m{@}\n"
        "> <factor> * sum without (instance) (job_instance_run_id_loop:jax_step_seconds:median7d_median30m{@})\n"
        "unless max_over_time(job_run_id_loop:jax_step_seconds:ratio45m_recompiled{@}[7d])"
    ),
    for_="15m",
    keep_firing_for="15m",
    thresholds={
        "factor": Threshold(
            value=1.25, unit="factor", least=1.01, most=100,
            why=(
                "Step times of one program on the same devices vary by a few per cent; a quarter "
                "needs an explanation."
            ),
        )
    },
    panel=("debug", "step_time"),
    texts=Beside(__name__),
)  # fmt: skip
