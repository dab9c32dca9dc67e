"""A TPU core stopped in the middle of a program."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="A TPU core halted in the middle of a program",
    impact=ENDED,
    signs=(
        Line("Accelerator device halted prematurely|halted unexpectedly at tag|TPU core halt"),
        Line(r"observed errors are: \[(?:Hardware|Power|User)\]"),
        Line("scheckne: (?!An unexpected)"),
    ),
    fix=(
        "`observed errors are: [Hardware]` or `[Power]`: drain the host. `[User]` or a bounds "
        "check: fix the Pallas kernel. Else report it with the HLO."
    ),
    runbook="JaxDeviceLost",
)
