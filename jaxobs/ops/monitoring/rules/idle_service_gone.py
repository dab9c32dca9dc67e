"""A service that was kept although nobody used it, and is gone."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxIdleServiceGone",
    severity="warning",
    concern="availability",
    summary="A service without traffic is gone.",
    description=(
        "No replica of {{ $labels.job }} is visible any more ({{ $value | humanize }} service). It had no requests for "
        "an hour before, and was kept all the same."
    ),
    expr=(
        "last_over_time(job:jax_idle_service:bool{@}[6h]) == 1\n"
        "unless on (job) last_over_time(job:jax_processes_seen:count{@}[10m])"
    ),
    for_="10m",
    panel=("fleet", "processes"),
    texts=Beside(__name__),
)  # fmt: skip
