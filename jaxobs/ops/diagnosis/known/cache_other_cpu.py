"""The cache holds programs compiled for another CPU."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import SLOW, Knowledge, Line

KNOWN = Knowledge(
    title="The persistent cache holds programs that were compiled for another CPU",
    impact=SLOW,
    signs=(
        Line(
            "doesn't match the machine type for execution|could lead to execution errors such as SIGILL", passes=False
        ),
        Line(r"Target machine feature \S+ is not +supported on the host machine", passes=False),
    ),
    fix="Use one cache directory for each model of CPU.",
    runbook="JaxPersistentCacheIneffective",
)
