"""A process that waits for its input for a large part of its steps."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxInputBound",
    severity="warning",
    concern="performance",
    summary="A process spends a large part of its steps waiting for input.",
    description=(
        "{{ $labels.instance }} ({{ $labels.job }}) waited for batches for {{ $value | "
        "humanizePercentage }} of the time of its steps in the last half hour."
    ),
    expr="job_instance:jax_input_wait:ratio30m{@} > <share>",
    for_="15m",
    keep_firing_for="15m",
    thresholds={
        "share": Threshold(
            value=0.25, unit="ratio", least=0.01, most=1,
            why=(
                "A loader that keeps up costs a few per cent of waiting; here, a faster loader would "
                "shorten the run by a quarter."
            ),
        )
    },
    panel=("debug", "input_wait"),
    texts=Beside(__name__),
)  # fmt: skip
