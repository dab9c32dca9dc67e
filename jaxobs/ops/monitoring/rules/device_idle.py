"""A device with nothing to do although its process makes steps."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import Alert, Threshold

ALERT = Alert(
    name="JaxDeviceIdle",
    severity="warning",
    concern="capacity",
    summary="A device has little to do although its process makes steps.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) was busy for {{ $value | "
        "humanizePercentage }} of the time, while steps were made."
    ),
    expr=(
        "job_instance_device:accelerator_utilization_ratio:avg15m{@} < <share>\n"
        "and on (job, instance)\n"
        "sum by (job, instance) (increase(jax_steps_total{@}[15m])) > 0"
    ),
    for_="30m",
    keep_firing_for="15m",
    thresholds={
        "share": Threshold(
            value=0.2, unit="ratio", least=0.001, most=0.99,
            why=(
                "Google's guide for GKE considers less than this too little during training; a "
                "program that computes reaches far more."
            ),
        )
    },
    panel=("devices", "utilization"),
    texts=Beside(__name__),
)  # fmt: skip
