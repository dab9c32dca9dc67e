"""The program raised an exception that nothing caught."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.operations.diagnosis.evidence import EVENT, Evidence, Observation
from jaxobs.operations.diagnosis.knowledge import ENDED, Event, Knowledge, Raised

_FIRST = ("jax._src.source_info_util.JaxStackTraceBeforeTransformation", "jax.errors.SimplifiedTraceback")
"""What JAX tells before the exception itself."""
_ENDS = (*_FIRST, "KeyboardInterrupt", "SystemExit", "GeneratorExit", "asyncio.CancelledError", "CancelledError")


def _uncaught(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """The last lines of tracebacks, and what jaxobs saw leave the program."""
    return [
        each
        for each in signs
        if not each.text.startswith(_ENDS) and (each.kind != EVENT or each.data.get("uncaught") == "yes")
    ]


KNOWN = Knowledge(
    title="The program raised an exception that nothing caught",
    impact=ENDED,
    general=3,
    signs=(
        Raised(),
        Event("error:.*"),
    ),
    narrow=_uncaught,
    fix="Read the traceback above that line: it names the line of the program.",
    runbook="JaxFunctionErrors",
)
