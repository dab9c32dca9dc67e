"""An array was used after it was donated."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Event, Knowledge, Line

KNOWN = Knowledge(
    title="The program used an array after it was donated or deleted",
    impact=ENDED,
    signs=(
        Line("(?:Array|Buffer) has been deleted"),
        Line(
            "[Bb]uffer.{0,200}(?:deleted or donated|donated or deleted|has been (?:deleted|donated))|"
            "Donation requested for invalid buffer"
        ),
        Line(
            "Attempt to (?:donate (?:the same buffer twice|a buffer which is also used)|use a buffer that was "
            "previously donated)"
        ),
        Event("error:deleted_array"),
    ),
    fix=(
        "Use what the call returned, or do not donate that argument (donate_argnums). An array that is in two "
        "arguments of one call cannot be donated: copy it."
    ),
    runbook="JaxFunctionErrors",
)
