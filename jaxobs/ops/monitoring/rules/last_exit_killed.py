"""A process whose predecessor was killed, or ran out of memory, before it could be scraped."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxLastExitKilled",
    severity="warning",
    concern="availability",
    summary="The process before this one was killed or ran out of memory.",
    description=(
        "The process before {{ $labels.instance }} ({{ $labels.job }}) ended with {{ $labels.last_exit }}; this one "
        "has run for {{ $value | humanizeDuration }}."
    ),
    expr=(
        "(time() - jax_process_start_timestamp_seconds{@} < <seconds>)\n"
        "* on (job, instance) group_left (run_id, last_exit)\n"
        'jax_run_info{@, last_exit=~"killed|out_of_memory"}'
    ),
    for_="2m",
    thresholds={
        "seconds": Threshold(
            value=3600, unit="seconds", least=300, most=86_400,
            why="The new process says it for as long as it lives; an hour is enough for a ticket to be written.",
        )
    },
    panel=("fleet", "restarts"),
    texts=Beside(__name__),
)  # fmt: skip
