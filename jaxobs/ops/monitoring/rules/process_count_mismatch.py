"""Processes of a job that are not seen."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxProcessCountMismatch",
    severity="warning",
    concern="availability",
    summary="Some processes of a job are not visible.",
    description=(
        "{{ $value | humanize }} processes of {{ $labels.job }} are not visible: JAX counts more "
        "than Prometheus scrapes."
    ),
    expr="max by (job) (job_run_id:jax_processes_missing:count{@}) > 0",
    for_="10m",
    panel=("fleet", "processes"),
    texts=Beside(__name__),
)  # fmt: skip
