"""Processes of one job that run different versions."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxVersionSkew",
    severity="warning",
    concern="availability",
    summary="Processes of one job run different versions.",
    description=(
        "The processes of {{ $labels.job }} run {{ $value | humanize }} different combinations of jax, jaxlib, plugin "
        "and runtime."
    ),
    expr=(
        "max by (job) (count by (job, run_id) (count by (job, run_id, jax, jaxlib, plugin, runtime) (\n"
        '  jax_build_info{@} * on (job, instance) group_left (run_id) jax_run_info{@, run_id!=""}\n'
        "))) > 1\n"
        "or\n"
        "count by (job) (count by (job, jax, jaxlib, plugin, runtime) (\n"
        "  jax_build_info{@} and on (job, instance) jax_requests_in_flight{@}\n"
        ")) > 1\n"
        "unless on (job) time() - jax_process_start_timestamp_seconds{@} < 86400"
    ),
    for_="30m",
    panel=("fleet", "versions"),
    texts=Beside(__name__),
)  # fmt: skip
