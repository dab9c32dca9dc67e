"""An objective of which nothing is counted any more, although its processes go on: its alert is blind."""

from __future__ import annotations

from jaxobs.ops.monitoring.burn_rates import TOTAL
from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxSloNoData",
    severity="warning",
    concern="performance",
    summary="An objective no longer has data.",
    description=(
        "Nothing is counted for the objective {{ $labels.slo }} of {{ $labels.job }}, unlike an hour "
        "ago, although the job's processes have run for longer and are scraped. Its burn-rate alerts "
        "cannot fire."
    ),
    expr=(
        f'max by (job, slo) ({TOTAL}{{@, slo!="goodput"}} offset 1h)\n'
        f"unless on (job, slo) {TOTAL}{{@}}\n"
        "and on (job) time() - max by (job) (jax_process_start_timestamp_seconds{@}) > <age>"
    ),
    for_="15m",
    thresholds={
        "age": Threshold(
            value=3900, unit="seconds", least=3600,
            why="The youngest process is older than the data of an hour ago: none has started counting since.",
        ),
    },
    panel=("executive", "slo_state"),
    texts=Beside(__name__),
)  # fmt: skip
