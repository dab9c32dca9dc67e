"""One process stopped making steps outside of JAX; the others wait for it."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ANY_END, STUCK, Event, Knowledge


def _outside(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A process inside JAX waits for another one."""
    return [each for each in signs if each.data.get("inside_jax") == "False"]


KNOWN = Knowledge(
    title="One process stopped making steps in its own code",
    impact=STUCK,
    signs=(Event("finding:stuck"),),
    narrow=_outside,
    follows=("storage_unavailable", "input_worker_died", ANY_END),
    needs=("event-log", "target"),
    fix=(
        "See at which line its main thread is (in the evidence), and what it waits for there: "
        "storage, a lock, a child process, a queue."
    ),
    runbook="JaxProcessStuck",
)
