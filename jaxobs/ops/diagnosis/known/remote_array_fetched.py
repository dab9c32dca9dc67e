"""A process asked for an array that lies on other processes as well."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Event, Knowledge, Line

KNOWN = Knowledge(
    title="The program fetched an array of which other processes hold parts",
    impact=ENDED,
    signs=(
        Line(r"spans non-addressable \(non process local\) devices"),
        Event("error:remote_array"),
    ),
    fix=("Gather it on all processes (multihost_utils.process_allgather), or use array.addressable_shards."),
    runbook="JaxFunctionErrors",
)
