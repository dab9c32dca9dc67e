"""A value that must be the same on all processes is not."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Event, Knowledge, Line

KNOWN = Knowledge(
    title="The processes of the job were given different values where these must be equal",
    impact=ENDED,
    signs=(
        Line("AssertionError: .{0,300}Expected: .{0,300}; got: ", unless="sync_global_devices name mismatch"),
        Event("error:inputs_differ"),
    ),
    fix=("Look at how each process computes that value: seeds, the order of files, the shard of the data."),
    runbook="JaxProgramDivergence",
)
