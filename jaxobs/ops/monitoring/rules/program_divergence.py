"""Processes of one job that run different programs."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert

ALERT = Alert(
    name="JaxProgramDivergence",
    severity="critical",
    concern="availability",
    summary="Processes of one job run different programs.",
    description=(
        "{{ $value | humanize }} findings report that processes of {{ $labels.job }} compiled "
        "different programs, or the same in another order."
    ),
    expr='sum by (job) (jax_findings{@, finding="diverging_programs"}) > 0',
    for_="2m",
    keep_firing_for="30m",
    panel=("oncall", "findings"),
    texts=Beside(__name__),
)  # fmt: skip
