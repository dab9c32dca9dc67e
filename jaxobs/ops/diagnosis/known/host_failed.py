"""A host of the job failed or left the cluster."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="A host of the job failed or left the cluster",
    impact=ENDED,
    signs=(
        Line(
            r"DUE TO NODE FAIL|NODE_FAIL\b|NodeNotReady|[Nn]ode (?:is )?not ready|NodeLost|"
            r"node\.kubernetes\.io/(?:unreachable|"
            r"not-ready)\b.{0,40}(?:evict|delet)|Node \S+ status is now: NodeNotReady",
            info=True,
            passes=False,
        ),
        Line(
            r"[Nn]ode (?:\S+ )?(?:it was running on )?(?:is dead|was lost|died|has died|is unavailable|was terminated|"
            r"has been marked dead|has been rebooted|"
            r"became unreachable)|NodeDiedError|[Nn]ode failure on|[Ll]ost (?:connection to )?node",
            info=True,
            passes=False,
        ),
        Line(
            r"[Kk]ernel panic|mce: \[Hardware Error\]|EDAC .{0,60}\bUE\b|compute\.instances\.(?:hostError|"
            r"automaticRestart)|"
            r"Remounting filesystem read-only",
            info=True,
            passes=False,
        ),
        Line(
            r"[Tt]he node it was running on died|its node has died|\bUNHEALTHY_(?:MAINTENANCE|TENSORFLOW)\b",
            info=True,
            passes=False,
        ),
        Line(
            r"\b[Nn]odes? \S+ not responding|killed due node failure|EvictedDueToNodeFailures|"
            r"launch failed requeued held|start barrier timeout waiting for \d+/\d+ nodes",
            info=True,
            passes=False,
        ),
        Line(
            r"[Nn]ode (?:with|id\b).{0,200}\b(?:has been|was) marked dead\b|"
            "Unexpected termination: health check failed",
            unless=r"\b[Ee]xpected termination|\bEXPECTED_TERMINATION|\bidle\b",
            info=True,
            passes=False,
        ),
        Line(r"is (?:not HEALTHY|UNHEALTHY)\b"),
    ),
    follows=("preemption",),
    fix=(
        "Take the host out of the pool (`kubectl cordon`, `scontrol update state=drain`), and restart from the "
        "checkpoint."
    ),
    runbook="JaxTargetDown",
)
