"""Processes that are slower than the others of their job, or hold them up."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxStraggler",
    severity="warning",
    concern="performance",
    summary="Processes are slower than the others of their job, or delay them.",
    description=(
        "{{ $value | humanize }} processes of {{ $labels.job }} take longer for their steps than the "
        "median process, or the others wait for them."
    ),
    expr=(
        "count by (job) (job_instance_run_id_loop:jax_step_seconds:ratio_median30m{@} > <factor>)\n"
        'or sum by (job) (jax_findings{@, finding="straggler"}) > 0'
    ),
    for_="10m",
    keep_firing_for="15m",
    thresholds={
        "factor": Threshold(
            value=1.25, unit="factor", least=1.01, most=100,
            why=(
                "Processes of one job with equal devices differ by a few per cent; the finding "
                "`straggler` uses a quarter as well."
            ),
        )
    },
    panel=("oncall", "stragglers"),
    texts=Beside(__name__),
)  # fmt: skip
