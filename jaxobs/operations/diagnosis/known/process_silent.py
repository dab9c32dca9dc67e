"""A process that logged its steps stopped without a word, and others report that something is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.operations.diagnosis.evidence import END, LINE, PROGRESS, Evidence, Observation
from jaxobs.operations.diagnosis.knowledge import ENDED, SYMPTOM, Knowledge, Silence

LEAST_SECONDS = 60.0
TIMES = 5.0
"""A pause is a silence if it is so many times as long as any before, and so long."""


def _stopped(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Those whose last line comes long before a line of another process that shows a fault."""
    found = []
    ended = {each.process for each in evidence.of_kind(END)}
    faults = [each for each in evidence.of_kind(LINE) if each.time is not None]
    broken = {each.process for each in faults}
    for last in signs:
        steps = [
            each.time for each in evidence.of_kind(PROGRESS) if each.process == last.process and each.time is not None
        ]
        if last.time is None or last.process in ended | broken or len(steps) < 2:
            continue
        usual = (max(steps) - min(steps)) / (len(steps) - 1)
        waited = max((each.time - last.time for each in faults if each.time is not None), default=0.0)
        if waited > max(LEAST_SECONDS, TIMES * usual):
            found.append(last)
    return found


KNOWN = Knowledge(
    title="A process stopped without a word",
    impact=ENDED,
    role=SYMPTOM,
    signs=(Silence(),),
    narrow=_stopped,
    follows=(
        "killed",
        "host_out_of_memory",
        "preemption",
        "time_limit",
        "gpu_hardware",
        "network_fault",
        "process_stuck",
    ),
    fix="Find out what became of it.",
    collect=(
        "What became of the process that stopped logging: its exit code, the state of its pod, "
        "and the kernel's messages of its host."
    ),
    runbook="JaxTargetDown",
)
