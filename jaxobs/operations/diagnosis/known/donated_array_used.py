"""An array was used after it was donated."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import ENDED, Event, Knowledge, Line

KNOWN = Knowledge(
    title="The program used an array after it was donated or deleted",
    impact=ENDED,
    signs=(
        Line("(?:Array|Buffer) has been deleted"),
        Line(
            "[Bb]uffer.{0,200}(?:deleted or donated|donated or deleted|has been (?:deleted|donated))|"
            "Donation requested for invalid buffer"
        ),
        Event("error:deleted_array"),
    ),
    fix="Use what the call returned, or do not donate that argument (donate_argnums).",
    runbook="JaxFunctionErrors",
)
