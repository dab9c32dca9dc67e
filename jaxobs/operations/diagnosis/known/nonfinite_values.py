"""Values turned NaN or infinite."""

from __future__ import annotations

from jaxobs.operations.diagnosis.evidence import EVENT, METRIC, Evidence, Observation
from jaxobs.operations.diagnosis.knowledge import WRONG, Alert, Event, Knowledge, Line, Metric

_SHARE = 0.0006
"""Of the steps: loss scaling in 16 bits overflows in one of 2,000, as it is meant to. As in JaxNonFiniteValues."""


def _by_loss_scaling(evidence: Evidence, sign: Observation) -> bool:
    """Whether the process has so few of them that they come from loss scaling."""
    if sign.kind not in (EVENT, METRIC) or not sign.process:
        return False
    own = [each for each in evidence.of_kind(METRIC) if each.process == sign.process and each.value is not None]
    steps = sum(each.value or 0.0 for each in own if each.name == "jax_steps_total")
    values = [each.value or 0.0 for each in own if each.name == "jax_nonfinite_total"]
    return bool(values) and max(values) < _SHARE * steps


KNOWN = Knowledge(
    title="Values turned NaN or infinite",
    impact=WRONG,
    signs=(
        Event("nonfinite:.*"),
        Line(r"FloatingPointError: invalid value \((?:nan|inf)\) encountered in", passes=False),
        Line(r"""loss\b[\"']?\s*[:=]?\s*[-+]?(?:nan|NaN|NAN|inf)\b""", info=True, passes=False),
        Line(
            "[Nn]on-?finite (?:loss|grad)|NaN (?:loss|detected|encountered)|[Ll]oss (?:is|became|"
            "turned) (?:NaN|nan|not finite)",
            passes=False,
        ),
        Metric("jax_nonfinite_total"),
        Alert("JaxNonFiniteValues", weak=False),
    ),
    follows=("nonfinite_input", "wrong_kernel", "gpu_hardware"),
    needs=(
        "log",
        "event-log",
        "metrics-file",
        "target",
        "prometheus",
    ),
    fix=(
        "Go back to the last good checkpoint. Find the operation with jax_debug_nans on a single "
        "process: a logarithm or root of 0, a division by 0, an overflow in 16 bits, a learning "
        "rate too high."
    ),
    runbook="JaxNonFiniteValues",
    beside=("jax_steps_total",),
    ordinary=_by_loss_scaling,
)
