"""Values turned NaN or infinite."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import WRONG, Alert, Event, Knowledge, Line, Metric

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
)
