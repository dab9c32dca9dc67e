"""A process that does not answer any more."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxTargetDown",
    severity="warning",
    concern="availability",
    summary="A process no longer responds.",
    description="{{ $labels.instance }} ({{ $labels.job }}) does not respond: `up` is {{ $value | humanize }}.",
    expr=(
        'up{@, pod_phase!="Succeeded"} == 0\n'
        "and on (job) (\n"
        "  job:jax_processes_seen:count{@}\n"
        "  or last_over_time(job:jax_serving:bool{@}[6h])\n"
        '  or up{@, pod_phase="Failed"}\n'
        ")\n"
        "unless on (job, instance) (\n"
        '  job_instance:jax_run_over:bool{@} unless on (job, instance) up{@, pod_phase="Failed"}\n'
        "  unless on (job) last_over_time(job:jax_serving:bool{@}[6h])\n"
        ")"
    ),
    for_="10m",
    keep_firing_for="5m",
    panel=("oncall", "targets"),
    texts=Beside(__name__),
)  # fmt: skip
