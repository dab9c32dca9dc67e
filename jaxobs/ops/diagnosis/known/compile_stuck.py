"""A compilation does not end."""

from __future__ import annotations

from jaxobs.ops.diagnosis.evidence import Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import STUCK, Alert, Knowledge, Line, Metric

_OLDEST = "jax_compilation_oldest_start_timestamp_seconds"
_SECONDS = 3600.0
"""As in JaxCompilationStuck."""


def _is_short(_: Evidence, sign: Observation) -> bool:
    """Whether a compilation had been in progress for an ordinary time when the sample was taken."""
    if sign.name != _OLDEST:
        return False
    return not sign.history or sign.history[-1][0] - (sign.value or 0.0) < _SECONDS


KNOWN = Knowledge(
    title="A compilation does not end",
    impact=STUCK,
    signs=(
        Line(r"\[Compiling module .{0,200}\] Very slow compile\?", weak=True, info=True),
        Alert("JaxCompilationStuck", weak=False),
        Metric(_OLDEST),
    ),
    refuted_by=(Line(r"The operation took \d", info=True),),
    needs=("log", "prometheus"),
    fix=(
        "See what compiles (`jaxobs top`) and where it is (`py-spy dump --native`): a large "
        "unrolled module, autotuning, or processes that wait for each other with different "
        "programs."
    ),
    collect=(
        "Whether that compilation ended, and the native stacks of the process (`py-spy dump --native --pid PID`)."
    ),
    runbook="JaxCompilationStuck",
    ordinary=_is_short,
)
