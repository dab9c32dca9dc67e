"""A training job that vanished in the middle of its work."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

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
    texts=Beside(__name__),
)  # fmt: skip
