"""An alert fires that no diagnosis explains."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import SLOW, SYMPTOM, AnyAlert, Knowledge

KNOWN = Knowledge(
    title="An alert fires, and nothing that was read shows why",
    impact=SLOW,
    role=SYMPTOM,
    general=5,
    signs=(AnyAlert(),),
    needs=("prometheus",),
    fix="Follow the runbook of the alert.",
    collect="What the runbook of the alert asks for, the event log, or the address of the process that it is about.",
)
