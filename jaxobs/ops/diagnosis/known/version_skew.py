"""Processes of one job run different versions or flags."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import ALERT, START, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import WRONG, Alert, Event, Knowledge

_COMPARED = ("version:jax", "version:jaxlib", "version:libtpu", "flag:XLA_FLAGS", "flag:LIBTPU_INIT_ARGS")


def _differing(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Beside an error of a job of several processes: the manifests that differ from that of the first process."""
    starts = [each for each in evidence.of_kind(START) if each.data.get("count", "1") not in ("", "1")]
    told = {each.process: tuple(each.data.get(key, "") for key in _COMPARED) for each in starts}
    differ = len(set(told.values())) > 1
    return [each for each in signs if each.kind == ALERT or (differ and each.process in told)]


KNOWN = Knowledge(
    title="The processes of the job run different versions or flags",
    impact=WRONG,
    signs=(
        Event("finding:(?:diverging_programs|stuck)"),
        Event("error:(?:programs_differ|hang|program_mismatch)"),
        Alert("JaxVersionSkew", weak=False),
    ),
    narrow=_differing,
    needs=("event-log",),
    fix=("Deploy one image to all processes, and start them with the same XLA_FLAGS and LIBTPU_INIT_ARGS."),
    runbook="JaxVersionSkew",
)
