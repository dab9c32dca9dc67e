"""XLA_FLAGS names a flag that this build does not know: it aborts the process."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="XLA_FLAGS names a flag that this build of XLA does not know",
    impact=ENDED,
    signs=(
        Line("Unknown flags? in XLA_FLAGS: ", passes=False),
        Line(r"Unknown command line flag '?\w+'?|unrecognized flag.{0,40}LIBTPU_INIT_ARGS", passes=False),
    ),
    fix="Remove or rename the flag; `jaxobs doctor` names those that this build does not know.",
)
