"""The autotuner found that a kernel computes something else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import RAISED, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import WRONG, Knowledge, Line

_NONFINITE = re.compile(r"\b(?:nan|inf)\b", re.IGNORECASE)


def _with_a_result(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A candidate that fails is normally left out; it is the suspect if a result is no number, or if none is left."""
    wrong = any(_NONFINITE.search(each.text) or each.name.startswith("nonfinite:") for each in evidence.observations)
    return [
        each
        for each in signs
        if wrong or each.name == RAISED or not re.search("do not match the reference|All algorithms", each.text)
    ]


KNOWN = Knowledge(
    title="A kernel computes other values than the reference",
    impact=WRONG,
    signs=(
        Line(r"Results do not match the reference\. This is likely a bug/unexpected loss of precision", passes=False),
        Line(r"All algorithms tried for .{0,3000} failed", followed="do not match the reference", passes=False),
        Line(r"ptxas before 11\.1 is known to miscompile|can lead to silent data corruption", passes=False),
    ),
    narrow=_with_a_result,
    fix=(
        "Update CUDA's ptxas and jaxlib; until then rule the kernel out "
        "(XLA_FLAGS=--xla_gpu_autotune_level=0 or --xla_gpu_enable_triton_gemm=false), and check "
        "the results of the run."
    ),
)
