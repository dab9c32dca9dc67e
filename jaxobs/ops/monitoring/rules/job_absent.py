"""A job that is gone although it was not done."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxJobAbsent",
    severity="critical",
    concern="availability",
    summary="A job is gone although it had not finished.",
    description=(
        "No process of {{ $labels.job }} is visible any more ({{ $value | humanize }} means that it "
        "served requests, or had unsaved work)."
    ),
    expr=(
        "last_over_time(job:jax_unfinished:bool{@}[6h]) == 1\n"
        "unless on (job)\n"
        "last_over_time(job:jax_processes_seen:count{@}[5m])"
    ),
    for_="10m",
    panel=("fleet", "processes"),
    texts=Beside(__name__),
)  # fmt: skip
