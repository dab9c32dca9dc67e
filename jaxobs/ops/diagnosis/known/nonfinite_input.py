"""The data had NaN or infinite values before any result had."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import Evidence, Observation, is_before
from jaxobs.ops.diagnosis.knowledge import WRONG, Event, Knowledge, Line, Metric


def _comes_first(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Data that turned non-finite after results did is none of the cause."""
    others = [each for each in evidence.of_kind("event") if each.name.startswith("nonfinite:") and each not in signs]
    return [each for each in signs if not any(is_before(other, each) is True for other in others)]


_INPUT = "(?i:.*(?:input|batch|data|image|feature|pixel|token|sample|label|target).*)"

KNOWN = Knowledge(
    title="The input data contains NaN or infinite values",
    impact=WRONG,
    signs=(
        Event(f"nonfinite:{_INPUT}"),
        Metric("jax_nonfinite_total", labels=(("name", _INPUT),)),
        Line(
            "(?:NaN|nan|inf|[Nn]on-?finite)s? (?:values? )?(?:in|found in|"
            "detected in) (?:the )?(?:input|batch|data|features?|labels?|images?)",
            passes=False,
        ),
    ),
    narrow=_comes_first,
    needs=("log", "event-log", "metrics-file", "target", "prometheus"),
    fix=(
        "Look at the batch of that step: a damaged record, a division by a standard deviation of "
        "0, missing values. Drop or fix it in the input pipeline, and check there."
    ),
    runbook="JaxNonFiniteValues",
)
