"""A compiled program got an argument that it was not compiled for."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Event, Knowledge, Line

KNOWN = Knowledge(
    title="A compiled program got an argument of another size or layout",
    impact=ENDED,
    signs=(
        Line(
            r"Executable\(\S*\) expected parameter \d+ of size|got buffer with incompatible size|"
            r"Execution supplied \d+ buffers? but|ProgramInputMismatch|\bE0102\b"
        ),
        Event("error:program_mismatch"),
    ),
    fix="Compile or export it again: the checkpoint, the flags or the topology changed since.",
    runbook="JaxFunctionErrors",
)
