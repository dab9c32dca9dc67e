"""A call that ran out of memory."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxOutOfMemory",
    severity="critical",
    concern="availability",
    summary="A call ran out of memory, and its process has made no progress since.",
    description=(
        "{{ $labels.function }} of {{ $labels.instance }} ({{ $labels.job }}) ran out of memory in "
        'the last half hour; failed calls: {{ printf "%.0f" $value }}.'
    ),
    expr=(
        "sum without (device) "
        "(max_over_time(job_instance_function_device:jax_out_of_memory:increase30m{@fn}[10m])) > 0\n"
        "unless on (job, instance) (\n"
        "  sum by (job, instance) (increase(jax_steps_total{@}[5m])) > 0\n"
        '  or sum by (job, instance) (increase(jax_requests_total{@, outcome="ok"}[5m])) > 0\n'
        ")"
    ),
    for_="10m",
    panel=("oncall", "out_of_memory"),
    texts=Beside(__name__),
)
