"""A TPU core stopped in the middle of a program."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="A TPU core halted in the middle of a program",
    impact=ENDED,
    signs=(
        Line(
            r"halted prematurely|halted unexpectedly|[Hh]alt is unexpected|TPU (?:core|chip|device) (?:has )?halt|"
            r"all pending programs will fail",
            passes=False,
        ),
        Line(r"!!!! FATAL ERROR !!!! for \[/dev/|Received Error Interrupt! fatal: true", passes=False),
        Line(
            r"(?:TPU|TensorCore|SparseCore|BarnaCore|HBM|ICI)\b.{0,80}(?:uncorrectable|unrecoverable|"
            r"hardware error|is in a bad state)|"
            r"[Ss]lice (?:health check failed|failure)|ICI (?:link|port).{0,60}(?:down|fail|error)",
            passes=False,
        ),
        Line(r"observed errors are: \[(?:Hardware|Power|User)\]"),
        Line(r"on-device check\W?fail|BoundsCheck \d+|\bE02\d\d: "),
        Line(r"TPU (?:session|device|chip|driver|core) error|SLICE_FAILURE|CHIP_DRIVER_ERROR", passes=False),
        Line("scheckne: (?!An unexpected)"),
        Line("likely caused by bad TPU|BAD_(?:TPU|SC)_CHIP", passes=False),
    ),
    follows=("programs_diverge",),
    fix=(
        "`observed errors are: [Hardware]` or `[Power]`: drain the host. `[User]` or a bounds "
        "check: fix the Pallas kernel. A host that Megascale's digest names: leave it out; if its "
        "program counter is 0, look at its input first. Else report it with the HLO."
    ),
    runbook="JaxDeviceLost",
)
